"""CSV: stable types, malformed rows with line and reason, and one meaning for the fast and the slow path."""

from __future__ import annotations

import datetime
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nestream.source import EventReader, SourceError, read_events, read_table


def written(tmp_path: Path, text: str | bytes, name: str = "events.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def opened(tmp_path: Path, text: str | bytes, **options: Any) -> EventReader:
    return read_events(written(tmp_path, text), **options)


def letters(reader: EventReader) -> list[tuple[int, str, str]]:
    return [(letter.line, letter.reason, letter.raw) for letter in reader.examples]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2", ""], "int64"),
        (["1", "2.5"], "double"),
        (["1", "-7"], "int64"),
        (["1", "x"], "string"),
        (["1.5", "n/a"], "string"),
        (["007", "8"], "string"),
        (["0", "-0.5"], "double"),
        (["12345678901234567890"], "string"),
        (["9223372036854775807"], "int64"),
        (["true", "False"], "bool"),
        (["true", "1"], "string"),
        (["2026-01-01", "2026-01-01T10:00:00.5"], "timestamp[us]"),
        (["2026-01-01T10:00:00Z"], "timestamp[us, tz=UTC]"),
        (["2026-01-01T10:00:00.123456789"], "timestamp[ns]"),
        (["2026-01-01", "yesterday"], "string"),
        (["", ""], "null"),
    ],
)
def test_a_column_has_the_narrowest_type_that_holds_all_its_values(
    tmp_path: Path, values: list[str], expected: str
) -> None:
    text = "ts,type,x\n" + "".join(f"{i},A,{value}\n" for i, value in enumerate(values))
    assert str(opened(tmp_path, text).schema.field("x").type) == expected


def test_the_type_of_a_column_is_decided_by_the_whole_file(tmp_path: Path) -> None:
    rows = [f"{i},A,{i}" for i in range(400_000)]
    path = written(tmp_path, "\n".join(["ts,type,x", *rows, "400000,A,0.5", ""]))
    table = read_table(path)
    assert table.num_rows == 400_001
    assert table.schema.field("x").type == pa.float64()
    assert table["x"][0].as_py() == 0.0


def test_integer_times_stay_integers_and_the_type_is_always_text(tmp_path: Path) -> None:
    table = opened(tmp_path, "ts,type,id\n5,1,7\n6,2,8\n").read_all()
    assert table.to_pylist() == [{"ts": 5, "type": "1", "id": 7}, {"ts": 6, "type": "2", "id": 8}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01", datetime.datetime(2026, 1, 1)),
        ("2026-01-01 10:30", datetime.datetime(2026, 1, 1, 10, 30)),
        ("2026-01-01T00:00:00.123", datetime.datetime(2026, 1, 1, 0, 0, 0, 123000)),
        ("2026-01-01T00:00:00.123Z", datetime.datetime(2026, 1, 1, 0, 0, 0, 123000, datetime.UTC)),
        ("2026-01-01T02:00:00+02:00", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
    ],
)
def test_iso_times_become_timestamps(tmp_path: Path, text: str, expected: datetime.datetime) -> None:
    assert opened(tmp_path, f"ts,type\n{text},A\n").read_all()["ts"][0].as_py() == expected


def test_only_the_empty_value_is_null_and_a_quoted_one_is_text(tmp_path: Path) -> None:
    table = opened(tmp_path, 'ts,type,x,y\n1,A,,\n2,A,"",3\n3,A,NULL,4\n').read_all()
    assert table["x"].to_pylist() == [None, "", "NULL"]
    assert table["y"].to_pylist() == [None, 3, 4]


def test_a_byte_order_mark_windows_line_ends_and_quoted_newlines_are_fine(tmp_path: Path) -> None:
    text = '\ufeffts,type,note\r\n1,A,"two\r\nlines, and ""quotes"""\r\n\r\n2,B,plain\r\n'
    reader = opened(tmp_path, text)
    assert reader.read_all()["note"].to_pylist() == ['two\r\nlines, and "quotes"', "plain"]
    assert reader.malformed == 0


def test_every_malformed_row_is_counted_with_its_line_and_reason(tmp_path: Path) -> None:
    text = (
        b"ts,type,note\n"
        b"1,A,fine\n"
        b"2,A\n"
        b"3,A,too,many\n"
        b'4,A,"a note\nof two lines"\n'
        b",A,no time\n"
        b"soon,A,bad time\n"
        b"7,,no type\n"
        b"8.5,A,fraction\n"
        b"9,A,\xff\n"
        b"2026-01-01,A,other form\n"
        b'11,A,"never closed\n'
        b"12,B,fine\n"
    )
    reader = opened(tmp_path, text, dead_letter=tmp_path / "dead.jsonl")
    assert reader.read_all()["ts"].to_pylist() == [1, 4, 12]
    assert reader.malformed == 9
    assert reader.reasons == {"fields": 2, "encoding": 1, "quote": 1, "time": 4, "type": 1}
    assert reader.dead_letter == tmp_path / "dead.jsonl"
    found = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
    assert [(letter["line"], letter["reason"], letter["raw"]) for letter in found] == [
        (3, "expected 3 fields, found 2", "2,A"),
        (4, "expected 3 fields, found 4", "3,A,too,many"),
        (7, "time is missing", ",A,no time"),
        (8, "time 'soon' is neither an integer nor an ISO-8601 timestamp", "soon,A,bad time"),
        (9, "type is missing", "7,,no type"),
        (
            10,
            "time '8.5' is not an integer of 64 bits; count in a finer unit or write ISO-8601",
            "8.5,A,fraction",
        ),
        (11, "not valid UTF-8 at byte 5 of the row", "9,A,\\xff"),
        (
            12,
            "time '2026-01-01' is not like the others: they are integers",
            "2026-01-01,A,other form",
        ),
        (13, "a quoted field is never closed", '11,A,"never closed'),
    ]
    assert {letter["file"] for letter in found} == {str(tmp_path / "events.csv")}


@pytest.mark.parametrize("chunk", [1, 3, 4, 16_384])
def test_dead_letters_are_in_line_order_however_many_rows_are_checked_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr("nestream.source.csv_file._CHUNK", chunk)
    rows = ["few", "1,A,1", "x,A,2", "3,A", "4,,1", "many,A,1,2", "y,A,3", "7,A,1", "few,A"]
    reader = opened(tmp_path, "\n".join(["ts,type,id", *rows]), dead_letter=tmp_path / "dead.jsonl")
    found = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
    assert [letter["line"] for letter in found] == [2, 4, 5, 6, 7, 8, 10]
    assert [letter.line for letter in reader.examples] == [2, 4, 5, 6, 7]
    assert reader.read_all()["ts"].to_pylist() == [1, 7]


def test_a_malformed_row_does_not_change_what_the_others_mean(tmp_path: Path) -> None:
    good = 'ts,type,x,y\n1,A,,1\n2,A,"",2\n3,A,"a""b",3\n4,A,c"d,4\n5,A,"e"f,5\n'
    clean = opened(tmp_path, good).read_all()
    mixed = opened(tmp_path, good + "bad,A,text,not a number\n")
    assert mixed.malformed == 1
    assert mixed.read_all().equals(clean)


def test_a_quote_left_open_in_the_last_row_does_not_swallow_the_file(tmp_path: Path) -> None:
    reader = opened(tmp_path, 'ts,type\n1,"A\n2,B\n3,C\n')
    assert reader.read_all()["ts"].to_pylist() == [2, 3]
    assert letters(reader) == [(2, "a quoted field is never closed", '1,"A')]


def test_most_times_decide_which_form_is_malformed_even_if_the_first_rows_have_another(
    tmp_path: Path,
) -> None:
    rows = ["1,A"] * 3 + ["2026-01-01T00:00:00,A"] * 40_000
    reader = opened(tmp_path, "\n".join(["ts,type", *rows]), dead_letter=True)
    assert reader.malformed == 3
    assert reader.read_all().num_rows == 40_000
    assert len((tmp_path / "events.csv.dead.jsonl").read_text().splitlines()) == 3


def test_a_file_with_malformed_rows_only_has_no_events_and_does_not_stop_the_run(tmp_path: Path) -> None:
    reader = opened(tmp_path, "ts,type\nx,A\ny,B\n")
    assert reader.read_all().num_rows == 0
    assert reader.malformed == 2


def test_a_header_alone_is_a_file_without_events(tmp_path: Path) -> None:
    for text in ("ts,type,id", "ts,type,id\n", "ts,type,id\r\n\r\n"):
        reader = opened(tmp_path, text)
        assert reader.read_all().num_rows == 0
        assert reader.malformed == 0


def test_a_declared_type_makes_a_value_that_does_not_fit_malformed(tmp_path: Path) -> None:
    reader = opened(tmp_path, "ts,type,x\n1,A,1\n2,A,n/a\n3,A,\n", schema={"x": pa.float64()})
    assert reader.read_all()["x"].to_pylist() == [1.0, None]
    assert letters(reader) == [(3, "x 'n/a' is not of type double", "2,A,n/a")]


def test_the_dead_letters_go_beside_the_input_when_asked_and_nowhere_otherwise(tmp_path: Path) -> None:
    opened(tmp_path, "ts,type\nx,A\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv"]
    opened(tmp_path, "ts,type\nx,A\n", dead_letter=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "events.csv.dead.jsonl"]
    reader = opened(tmp_path, "ts,type\n1,A\n", dead_letter=True)
    assert (tmp_path / "events.csv.dead.jsonl").read_text() == ""
    assert reader.dead_letter is None


def test_dead_letters_never_overwrite_the_input(tmp_path: Path) -> None:
    path = written(tmp_path, "ts,type\nx,A\n")
    with pytest.raises(SourceError, match="is the input"):
        read_events(path, dead_letter=path)
    assert path.read_text() == "ts,type\nx,A\n"


def test_a_reader_can_be_read_again_and_in_small_batches(tmp_path: Path) -> None:
    reader = opened(tmp_path, "ts,type\n" + "".join(f"{i},A\n" for i in range(10)) + "x,A\n", batch_rows=4)
    assert [batch.num_rows for batch in reader] == [4, 4, 2]
    assert [batch.num_rows for batch in reader] == [4, 4, 2]
    assert (reader.rows, reader.malformed) == (10, 1)
    assert all(batch.schema == reader.schema for batch in reader)


def test_a_table_warns_of_the_rows_that_it_leaves_out_unless_they_are_saved(tmp_path: Path) -> None:
    path = written(tmp_path, "ts,type,n\n1,A,2\n2,A,two\n")
    with pytest.warns(UserWarning, match=r"1 malformed row of .* left out; the first is line 3: .*'two'"):
        assert read_table(path, schema={"n": pa.int64()}).num_rows == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, schema={"n": pa.int64()}, dead_letter=True).num_rows == 1


def test_progress_rises_to_the_size_of_the_file(tmp_path: Path) -> None:
    calls: list[tuple[int, int, int]] = []
    path = written(tmp_path, "ts,type\n" + "".join(f"{i},A\n" for i in range(1_000)))
    read_table(path, progress=lambda *call: calls.append(call))
    size = path.stat().st_size
    positions = [position for _, position, _ in calls]
    assert positions == sorted(positions)
    assert calls[-1] == (1_000, size, size)
