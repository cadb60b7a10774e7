"""JSON lines: one object a line, absent members are NULL, and malformed lines are told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nestream.source import EventReader, SourceError, read_events
from nestream.source.json_table import FEWEST


def opened(tmp_path: Path, *lines: str | bytes | dict[str, Any], **options: Any) -> EventReader:
    texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in texts) + b"\n")
    return read_events(path, **options)


def event(**members: Any) -> dict[str, Any]:
    return {"ts": 1, "type": "A", **members}


@pytest.mark.parametrize(
    ("values", "expected", "read"),
    [
        ([1, 2], "int64", [1, 2]),
        ([1, 2.5], "double", [1.0, 2.5]),
        ([1, "x"], "string", ["1", "x"]),
        ([1.5, "x"], "string", ["1.5", "x"]),
        ([True, False], "bool", [True, False]),
        ([True, 1], "string", ["true", "1"]),
        (["1", "2"], "string", ["1", "2"]),
        ([10**20, 1], "string", ["100000000000000000000", "1"]),
        ([None, 1], "int64", [None, 1]),
        ([None, None], "null", [None, None]),
        ([{"a": [1]}, 2], "string", ['{"a":[1]}', "2"]),
    ],
)
def test_a_column_has_the_narrowest_type_that_holds_all_its_values(
    tmp_path: Path, values: list[Any], expected: str, read: list[Any]
) -> None:
    table = opened(tmp_path, *(event(x=value) for value in values)).read_all()
    assert str(table.schema.field("x").type) == expected
    assert table["x"].to_pylist() == read


def test_types_widen_over_the_whole_file(tmp_path: Path) -> None:
    lines = [event(x=i) for i in range(40_000)]
    assert opened(tmp_path, *lines, event(x=0.5)).read_all()["x"][-2:].to_pylist() == [39_999.0, 0.5]
    assert opened(tmp_path, *lines, event(x="z")).read_all()["x"][-2:].to_pylist() == ["39999", "z"]


def test_members_may_come_and_go(tmp_path: Path) -> None:
    table = opened(tmp_path, event(a=1), event(b="x"), event(a=2)).read_all()
    assert table.column_names == ["ts", "type", "a", "b"]
    assert table["a"].to_pylist() == [1, None, 2]
    assert table["b"].to_pylist() == [None, "x", None]


def test_text_that_is_always_iso_becomes_a_timestamp(tmp_path: Path) -> None:
    table = opened(tmp_path, event(ts="2026-01-01T00:00:00Z", due="2026-01-02")).read_all()
    assert table.schema.field("ts").type == pa.timestamp("us", "UTC")
    assert table.schema.field("due").type == pa.timestamp("us")


def test_every_malformed_line_is_counted_with_its_line_and_reason(tmp_path: Path) -> None:
    reader = opened(
        tmp_path,
        event(),
        '{"ts": 2, "type": "A"',
        "[1, 2]",
        "",
        "null",
        {"type": "A"},
        {"ts": None, "type": "A"},
        {"ts": "soon", "type": "A"},
        {"ts": 1.5, "type": "A"},
        {"ts": "2026-01-01", "type": "A"},
        {"ts": 3},
        {"ts": 3, "type": ["A"]},
        {"ts": 3, "type": ""},
        '{"ts": 4, "type": "A", "x": NaN}',
        b'{"ts": 5, "type": "\xff"}',
        '{"ts": 6, "type": "A", "x": "\\ud800"}',
        '{"ts": 7, "type": "A"} {"ts": 8, "type": "A"}',
        "[" * 100_000,
        event(ts=9),
        dead_letter=True,
    )
    assert reader.read_all()["ts"].to_pylist() == [1, 9]
    assert reader.malformed == 16
    lines = (tmp_path / "events.jsonl.dead.jsonl").read_text().splitlines()
    reasons = {letter["line"]: letter["reason"] for letter in map(json.loads, lines)}
    assert reasons == {
        2: "invalid JSON at column 22: expecting ',' delimiter",
        3: "expected a JSON object, found an array",
        5: "expected a JSON object, found null",
        6: "time is missing",
        7: "time is missing",
        8: "time 'soon' is neither an integer nor an ISO-8601 timestamp",
        9: "time '1.5' is not an integer of 64 bits; count in a finer unit or write ISO-8601",
        10: "time '2026-01-01' is not like the others: they are integers",
        11: "type is missing",
        12: "type is an array, but text is needed",
        13: "type is missing",
        14: "invalid JSON: NaN is not JSON",
        15: "not valid UTF-8 at byte 20 of the line",
        16: "a value is not valid Unicode",
        17: "invalid JSON at column 24: extra data",
        18: "invalid JSON: nested too deeply",
    }


def test_a_malformed_line_adds_no_column(tmp_path: Path) -> None:
    reader = opened(tmp_path, event(), {"ts": "soon", "type": "A", "surprise": 1})
    assert reader.read_all().column_names == ["ts", "type"]


def test_two_halves_of_an_object_are_two_malformed_lines(tmp_path: Path) -> None:
    reader = opened(tmp_path, event(), '{"ts": 2, "type": "A", "x": [{}', "{}]}", '{"ts":3,"type":"B"}')
    assert reader.read_all()["ts"].to_pylist() == [1, 3]
    assert reader.malformed == 2


def test_a_declared_type_makes_a_value_that_does_not_fit_malformed(tmp_path: Path) -> None:
    reader = opened(tmp_path, event(x="1"), event(x="n/a"), schema={"x": pa.int64()})
    assert reader.read_all()["x"].to_pylist() == [1]
    assert [(letter.line, letter.reason) for letter in reader.examples] == [
        (2, "x 'n/a' is not of type int64")
    ]


def test_an_integer_type_becomes_text(tmp_path: Path) -> None:
    assert opened(tmp_path, event(type=7), event(type="B")).read_all()["type"].to_pylist() == ["7", "B"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"ts": 1, "type": "A"}]', "is a JSON array, not JSON lines"),
        ("ts,type\n1,A", "is not JSON lines: no line is a JSON object"),
        (
            '{"time": 1, "type": "A"}',
            "has no time column 'ts'; its columns are: time, type. Did you mean 'time'?",
        ),
        ('{"ts": 1, "typ": "A"}', "has no type column 'type'"),
    ],
)
def test_a_file_that_is_not_json_lines_of_events_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        opened(tmp_path, text)
    assert message in str(caught.value)


def test_an_object_with_two_members_of_one_name_is_malformed(tmp_path: Path) -> None:
    deep = '{"ts":2,"type":"A","x":{"y":1,"y":2}}'
    reader = opened(tmp_path, '{"ts":1,"type":"A","x":1,"x":2}', deep, event(x=3))
    assert reader.read_all()["x"].to_pylist() == [3]
    assert [letter.line for letter in reader.examples] == [1, 2]
    assert all("several members named" in letter.reason for letter in reader.examples)


DECLARED = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("type", pa.string()),
        ("id", pa.int32()),
        ("float", pa.float32()),
        ("flag", pa.bool_()),
        ("note", pa.string()),
        ("moment", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("amount", pa.decimal128(10, 2)),
    ]
)
MEMBERS = {
    "id": "1",
    "float": "1.5",
    "flag": "true",
    "note": '"x"',
    "moment": '"2026-01-05T08:00:00Z"',
    "day": '"2026-01-05"',
    "amount": '"1.25"',
}
VALUES = [
    *("1", "-0", "1.5", "1e3", "4294967296", "9007199254740993", "9223372036854775808", "NaN"),
    *(
        "true",
        "null",
        "[1]",
        "{}",
        '"x"',
        '""',
        '"{"',
        '"2026-01-05T08:00:00Z"',
        '"2026-01-05"',
        '" 7 "',
        '"\\u0041"',
    ),
    *('"é"', '"a', '"\\u0041"'),
    *('1}{"ts":1,"type":"A"', "1}null{", "01", '1,"id":2'),
]


def test_a_line_of_declared_columns_is_read_among_many_as_among_few(tmp_path: Path) -> None:
    good = 0
    for name in ("ts", "type", *MEMBERS, "other"):
        for value in VALUES:
            changed = _object({"ts": '"2026-01-05T08:00:00Z"', "type": '"A"', **MEMBERS, name: value})
            others = [_object(MEMBERS, second) for second in range(FEWEST)]
            few, many = _declared(tmp_path, [changed, others[0]]), _declared(tmp_path, [changed, *others])
            assert many[0][: len(few[0])] == few[0], value
            assert (many[1], len(many[0]) - len(few[0])) == (few[1], FEWEST - 1), value
            good += not few[1]
    assert good > 40


def _object(members: dict[str, str], second: int | None = None) -> str:
    if second is not None:
        members = {"ts": f'"2026-01-05T08:00:{second:02}Z"', "type": '"A"', **members}
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"


def _declared(folder: Path, lines: list[str]) -> tuple[list[Any], list[str]]:
    """The events, and why lines are none."""
    path, dead = folder / "events.jsonl", folder / "dead.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    dead.unlink(missing_ok=True)
    reader = read_events(str(path), "ts", "type", dead, schema=DECLARED, closed=True)
    events = [row for batch in reader for row in batch.to_pylist()]
    letters = dead.read_text(encoding="utf-8").splitlines() if dead.exists() else []
    return events, [json.loads(letter)["reason"] for letter in letters]
