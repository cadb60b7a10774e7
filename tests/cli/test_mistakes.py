"""Mistakes of a new user: each is answered by a sentence and a code, never by a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nestream
from tests.cli.commands import call

QUERY = "SEQ(A a, B b) WITHIN 5"
EVENTS = "ts,type,id,x\n1,A,1,2\n2,B,1,3\n"
FILES: dict[str, bytes] = {
    "e.csv": EVENTS.encode(),
    "e.txt": EVENTS.encode(),
    "e": EVENTS.encode(),
    "binary.csv": bytes(range(128, 256)),
    "binary.jsonl": bytes(range(128, 256)),
    "binary.parquet": bytes(range(128, 256)),
    "binary.neel": bytes(range(128, 256)),
    "wide.csv": EVENTS.encode("utf-16"),
    "wide.jsonl": '{"ts":1,"type":"A"}'.encode("utf-16"),
    "wide.neel": QUERY.encode("utf-16"),
    "latin.neel": 'SEQ(A a, B b, a.x = "caf\xe9") WITHIN 5'.encode("latin-1"),
    "empty.neel": b"",
    "empty.csv": b"",
    "semicolons.csv": b"ts;type\n1;A\n",
    "twice.csv": b"ts,type,ts\n1,A,1\n",
    "array.json": b'[{"ts":1,"type":"A"}]',
    "bad.csv": b"ts,type\nx,A\ny,B\n",
    "bad.jsonl": b'{"ts":"x","type":"A"}\n{"ts":null,"type":"B"}\n',
    "set/q.neel": QUERY.encode(),
    "wrong/q.neel": b"SEQ(A a",
}
MISTAKES: list[tuple[list[str], int, str]] = [
    (["run", QUERY, "nope.csv"], 1, "cannot read nope.csv: no such file"),
    (["run", "nope.neel", "e.csv"], 2, "there is no file 'nope.neel'"),
    (["run", QUERY, "folder"], 1, "the folder folder names no files of events"),
    (["run", QUERY, "*.none"], 1, "the pattern *.none names no files of events"),
    (["run", QUERY, "binary.csv"], 1, "not valid UTF-8"),
    (["run", QUERY, "binary.jsonl"], 1, "is not JSON lines"),
    (["run", QUERY, "binary.parquet"], 1, "is not a Parquet file"),
    (["run", QUERY, "wide.csv"], 1, "is UTF-16 text. Convert it"),
    (["run", QUERY, "wide.jsonl"], 1, "is UTF-16 text. Convert it"),
    (["run", QUERY, "empty.csv"], 1, "is empty. It needs a header line"),
    (["run", QUERY, "semicolons.csv"], 1, "separated by semicolons"),
    (["run", QUERY, "twice.csv"], 1, "more than one column 'ts'"),
    (["run", QUERY, "array.json"], 1, "is a JSON array, not JSON lines"),
    (["run", QUERY, "e.txt"], 1, "cannot tell the format of e.txt"),
    (["run", QUERY, "e"], 1, "cannot tell the format of e:"),
    (["run", QUERY, "-"], 2, "add --input-format"),
    (["run", QUERY, "e.csv", "--input-format", "parquet"], 1, "is not a Parquet file"),
    (["run", QUERY, "e.csv", "--input-format", "jsonl"], 1, "is not JSON lines"),
    (["run", QUERY, "bad.csv"], 3, "every row is malformed"),
    (["run", QUERY, "bad.jsonl"], 3, "every row is malformed"),
    (["run", "set", "bad.csv", "--each", "out"], 3, "every row is malformed"),
    (["run", "", "e.csv"], 2, "it is empty"),
    (["run", " ", "e.csv"], 1, "the query is empty"),
    (["run", "empty.neel", "e.csv"], 1, "the query is empty"),
    (["run", "e.csv", "set/q.neel"], 2, "is a file of events. The query comes first"),
    (["check", "e.csv"], 2, "is a file of events. The query comes first"),
    (["run", "folder", "e.csv"], 2, "there is no .neel file"),
    (["run", "binary.neel", "e.csv"], 2, "is not UTF-8 text"),
    (["run", "wide.neel", "e.csv"], 2, "is not UTF-8 text"),
    (["run", "latin.neel", "e.csv"], 2, "is not UTF-8 text"),
    (["run", "SEQ(A a, B b WITHIN 5", "e.csv"], 1, "error:"),
    (["run", f"'{QUERY}'", "e.csv"], 1, "error:"),
    (["run", "SEQ(A a, B b)", "e.csv"], 1, "WITHIN"),
    (["run", f"{QUERY} minutes", "e.csv"], 1, "is a duration"),
    (["run", "SEQ(A a, B b, a.nope = 1) WITHIN 5", "e.csv"], 1, "have no attribute `nope`"),
    (["run", QUERY, "e.csv", "--time", "when"], 1, "Did you mean 'ts'?"),
    (["run", QUERY, "e.csv", "--type", "kind"], 1, "Did you mean 'type'?"),
    (["run", QUERY, "e.csv", "--type", "ts"], 1, "cannot both be column 'ts'"),
    (["run", QUERY, "e.csv", "--output", "folder"], 2, "is a folder"),
    (["run", QUERY, "e.csv", "--output", "no/such.csv"], 2, "there is no folder"),
    (["run", QUERY, "e.csv", "--output", "x.xlsx"], 2, "'x.xlsx' has no known suffix"),
    (["run", QUERY, "e.csv", "--output", "e.csv"], 2, "this file holds the events"),
    (["run", QUERY, "e.csv", "--each", "out"], 2, "it needs a folder of queries"),
    (["run", QUERY, "e.csv", "--dead-letter", "folder"], 2, "is a folder"),
    (["run", QUERY, "e.csv", "--dead-letter", "no/such.jsonl"], 2, "there is no folder"),
    (["run", QUERY, "e.csv", "--dead-letter", "e.csv"], 2, "this file holds the events"),
    (["run", QUERY, "e.csv", "--limit", "-1"], 2, "--limit"),
    (["run", QUERY, "e.csv", "--strategy", "fast"], 2, "is not one of"),
    (["run", QUERY, "e.csv", "--without", "speed"], 2, "is not one of"),
    (["run", QUERY, "e.csv", "--format", "xml"], 2, "--format"),
    (["run", QUERY], 2, "EVENTS"),
    (["why", QUERY, "e.csv", "--events", "99"], 1, "there is no event 99"),
    (["why", QUERY, "e.csv", "--events", "x"], 2, "is not a row number"),
    (["why", QUERY, "e.csv", "--events", ""], 2, "it needs at least one event"),
    (["why", QUERY, "e.csv", "--events", "0,0"], 1, "was picked twice"),
    (["why", QUERY, "e.csv", "--events", "z=0"], 1, "has no variable `z`"),
    (["why", QUERY, "e.csv", "--events", "0", "--by", "nope"], 1, "have no column `nope`"),
    (["why", "set", "e.csv", "--events", "0"], 2, "it is a folder"),
    (["stream", QUERY, "--from", "set", "--to", "set"], 2, "where files are read as events"),
    (["stream", QUERY, "--from", "set", "--to", "set/out"], 2, "where files are read as events"),
    (["stream", QUERY, "--local", "--from", "set", "--to", "set"], 2, "where files are read as events"),
    (["stream", QUERY, "--from", "set", "--to", "x", "--late", "set/x"], 2, "where files are read as events"),
    (
        ["stream", QUERY, "--from", "set", "--to", "x", "--checkpoint", "set"],
        2,
        "where files are read as events",
    ),
    (["stream", QUERY, "--from", "set", "--to", "x", "--checkpoint", "e.csv"], 2, "is not a folder"),
    (["stream", QUERY, "--from", "set", "--to", "x", "--late", "-"], 2, "--late: '-' is not a folder"),
    (["stream", QUERY, "--from", "set", "--to", "x", "--late", "e.csv"], 2, "is not a folder"),
    (
        ["stream", QUERY, "--local", "--from", "set/*.jsonl", "--to", "set/m.jsonl"],
        2,
        "is named by the pattern of the events",
    ),
    (["check", "nope.neel"], 2, "there is no file"),
    (["check", QUERY, "--events", "nope.csv"], 1, "cannot read nope.csv"),
    (["check", "folder"], 2, "there is no .neel file"),
    (["demo", "hospital", "--rules", "nope", "--folder", "made"], 2, "nope"),
    (["demo", "hospital", "--rules", "wrong", "--folder", "made"], 1, "error:"),
    (["demo", "hospital", "--rules", "folder", "--folder", "made"], 1, "there is no .neel file"),
]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("arguments", "code", "said"), MISTAKES, ids=lambda value: str(value)[:60])
def test_a_mistake_is_answered_by_a_sentence(place: Path, arguments: list[str], code: int, said: str) -> None:
    result = call(*arguments)
    shown = " ".join((result.stdout + result.stderr).replace("│", " ").split())
    assert (result.exit_code, said in shown) == (code, True), shown
    assert "Traceback" not in shown
    assert (place / "e.csv").read_text() == EVENTS
    assert not (place / "made").exists()


def test_line_ends_and_marks_of_windows_are_no_mistake(place: Path) -> None:
    (place / "w.neel").write_bytes(b"\xef\xbb\xbfSEQ(A a,\r\n B b)\r\nWITHIN 5\r\n")
    (place / "w.csv").write_bytes(b"\xef\xbb\xbfts,type\r\n1,A\r\n2,B\r\n")
    result = call("run", "w.neel", "w.csv")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)


def match(events: Any, **options: Any) -> pa.Table:
    return nestream.query(QUERY).match(events, **options)


def why(picked: Any) -> object:
    return nestream.query(QUERY).why(ONE, picked)


ONE = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]
LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP: Any = 1
for _ in range(5_000):
    DEEP = [DEEP]
IN_PYTHON: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "a path that is not there": (lambda: match("nope.csv"), nestream.EventError, "cannot read nope.csv"),
    "a number for events": (lambda: match(5), nestream.EventError, "cannot read events"),
    "rows that are lists": (lambda: match([[1, "A"]]), nestream.EventError, "not a dictionary"),
    "no time": (lambda: match([{"type": "A"}]), nestream.EventError, "no column `ts`"),
    "a time that is text": (
        lambda: match([{"ts": "x", "type": "A"}]),
        nestream.EventError,
        "not an ISO 8601 timestamp",
    ),
    "a type that is a number": (
        lambda: match([{"ts": 1, "type": 1}]),
        nestream.EventError,
        "a type must be a string",
    ),
    "an unknown strategy": (lambda: match([], strategy="fast"), ValueError, "unknown strategy"),
    "an unknown order": (lambda: match([], order="random"), ValueError, "unknown order"),
    "an unknown option": (lambda: match([], options={"fast": True}), ValueError, "unknown option"),
    "an empty query": (lambda: nestream.query(""), nestream.QueryError, "empty"),
    "a folder that is none": (
        lambda: nestream.queries("nope"),
        FileNotFoundError,
        "is not a folder of queries",
    ),
    "no queries": (lambda: nestream.queries([]), ValueError, "at least one"),
    "a type column that is a list": (lambda: match(ONE, type=["type"]), nestream.EventError, "no column"),
    "options that are a text": (lambda: match(ONE, options="memory"), TypeError, "must be a mapping"),
    "options that are a list": (lambda: match(ONE, options=["memory"]), TypeError, "must be a mapping"),
    "negative memory": (lambda: match(ONE, options={"memory": -1}), ValueError, "a number of at least 1"),
    "types that are a text": (lambda: match(ONE, types="A(id)"), TypeError, "types must map"),
    "types that are a list": (lambda: match(ONE, types=["A"]), TypeError, "types must map"),
    "attributes that are a text": (lambda: match(ONE, types={"A": "id"}), TypeError, r"\["),
    "attributes that are none": (lambda: match(ONE, types={"A": None}), TypeError, "a list of names"),
    "declared attributes that are a text": (
        lambda: nestream.query(QUERY).with_types({"A": "id"}),
        TypeError,
        "a list of names, not 'id'",
    ),
    "a value that holds itself": (lambda: match([{**ONE[0], "x": LOOP}]), nestream.EventError, "levels deep"),
    "a value too deep": (lambda: match([{**ONE[0], "x": DEEP}]), nestream.EventError, "levels deep"),
    "no state": (
        lambda: nestream.query(QUERY).stream().restore(None),
        nestream.StateError,
        "not a saved state",
    ),
    "a text for a state": (
        lambda: nestream.query(QUERY).stream().restore("state"),
        nestream.StateError,
        "not a saved state",
    ),
    "a handler that is a text": (
        lambda: nestream.query(QUERY).stream(dead_letter="dead.jsonl"),  # type: ignore[arg-type]
        TypeError,
        "dead_letter must be a function",
    ),
    "a handler that is a list": (
        lambda: nestream.queries([QUERY]).stream(late=[]),  # type: ignore[arg-type]
        TypeError,
        "late must be a function",
    ),
    "a schema that is a dictionary": (
        lambda: nestream.query(QUERY).stream(schema={"ts": "int"}),
        TypeError,
        "the schema must be an Arrow schema",
    ),
    "a set of nothing": (lambda: nestream.queries(None), TypeError, "a list of queries"),
    "a set of one query": (lambda: nestream.queries(nestream.query(QUERY)), TypeError, "a list of queries"),
    "a name that is a number": (lambda: nestream.queries({1: QUERY}), TypeError, "must be a string, not 1"),
    "one row to explain": (lambda: why(3), nestream.EventError, "does not pick events"),
    "a text of rows to explain": (lambda: why("01"), nestream.EventError, "does not pick events"),
    "nothing to explain": (lambda: why(None), nestream.EventError, "does not pick events"),
    "half a row": (lambda: why([0.5]), nestream.EventError, "not the number of a row"),
    "a truth for a row": (lambda: why([True]), nestream.EventError, "not the number of a row"),
    "an event for a row": (lambda: why(ONE), nestream.EventError, "not the number of a row"),
    "rows for a variable": (lambda: why({"a": [0]}), nestream.EventError, "not the number of a row"),
    "columns that are a list": (
        lambda: nestream.query(QUERY).check(["ts"]),
        TypeError,
        "an Arrow schema",
    ),
    "a function named as an operator": (
        lambda: nestream.function("seq", len, returns="integer"),
        ValueError,
        "SEQ is a word of the language",
    ),
    "a function without a name": (
        lambda: nestream.function(5, len, returns="integer"),  # type: ignore[arg-type]
        ValueError,
        "not the name of a function",
    ),
    "null types": (
        lambda: match(pa.table({"ts": [1], "type": pa.array([None], pa.string())})),
        nestream.EventError,
        "has no type",
    ),
}


@pytest.mark.parametrize("mistake", IN_PYTHON)
def test_a_mistake_in_python_is_answered_by_a_sentence(mistake: str) -> None:
    act, kind, said = IN_PYTHON[mistake]
    with pytest.raises(kind, match=said):
        act()
