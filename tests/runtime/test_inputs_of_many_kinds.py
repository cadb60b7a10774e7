"""The inputs that people have: files, datasets, lazy frames, relations, an index of times, text, UUIDs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.model import memory

START = datetime(2026, 1, 5, 7, 0)
END = datetime(2026, 1, 5, 7, 20)
ROWS: list[dict[str, Any]] = [{"ts": START, "type": "A", "id": 7}, {"ts": END, "type": "B", "id": 7}]
TABLE = pa.Table.from_pylist(ROWS)
FRAME = pd.DataFrame(ROWS)
QUERY = nestream.query("SEQ(A a, B b, a.id = b.id) WITHIN 1 hour RETURN a.id AS id")
FOUND = [{"id": 7, "match_start": START, "match_end": END}]


def found(events: Any, **options: Any) -> list[dict[str, Any]]:
    return QUERY.match(events, to="pylist", **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "all.parquet")
    pyarrow.csv.write_csv(TABLE, tmp_path / "all.csv")
    lines = [f'{{"ts": "{row["ts"].isoformat()}", "type": "{row["type"]}", "id": 7}}\n' for row in ROWS]
    (tmp_path / "all.jsonl").write_text("".join(lines))
    parts = tmp_path / "parts"
    parts.mkdir()
    pq.write_table(TABLE.slice(0, 1), parts / "1.parquet")
    pq.write_table(TABLE.slice(1), parts / "2.parquet")
    return tmp_path


# ---- files ----


@pytest.mark.parametrize(
    "name", ["all.parquet", "all.csv", "all.jsonl", "parts", "parts/*.parquet", "**/[12].parquet"]
)
@pytest.mark.parametrize("kind", [str, Path])
def test_events_are_read_from_files(folder: Path, name: str, kind: Callable[[str], Any]) -> None:
    place = kind(str(folder / name))
    assert found(place) == FOUND
    assert QUERY.count(place) == 1
    assert [row for table in QUERY.batches(place) for row in table.to_pylist()] == FOUND
    assert list(QUERY.stream(place)) == FOUND
    assert QUERY.why(place, [0, 1])
    assert len(QUERY.show(place)) == 1
    assert nestream.queries([QUERY, "A a"]).count(place) == {"q1": 1, "q2": 1}


def test_files_may_hold_one_type_each(folder: Path) -> None:
    pq.write_table(TABLE.slice(0, 1).drop_columns(["type"]), folder / "a.parquet")
    assert found({"A": folder / "a.parquet", "B": TABLE.slice(1)}) == FOUND
    assert found({"A": str(folder / "parts/1.parquet"), "B": str(folder / "parts/2.parquet")}) == FOUND


def test_the_columns_of_files_are_named_as_everywhere(folder: Path) -> None:
    pq.write_table(TABLE.rename_columns(["at", "kind", "id"]), folder / "other.parquet")
    assert found(folder / "other.parquet", time="at", type="kind") == FOUND
    with pytest.raises(nestream.EventError, match="has no time column 'ts'"):
        found(folder / "other.parquet")


def test_malformed_rows_of_a_file_are_left_out_with_a_warning(folder: Path) -> None:
    with (folder / "all.jsonl").open("a") as file:
        file.write('{"ts": "late", "type": "A", "id": 1}\nnothing\n')
    with pytest.warns(
        UserWarning, match=r"2 malformed rows of .*all\.jsonl left out; the first is line 3 of"
    ):
        assert found(folder / "all.jsonl") == FOUND


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere.parquet", "cannot read nowhere.parquet: no such file or directory"),
        ("nowhere/*.parquet", r"the pattern nowhere/\*\.parquet names no files of events"),
        ("-", "`-` means standard input only on the command line"),
        ("SEQ(A a, B b)", r"'SEQ\(A a, B b\)' is not the path of a file\n  hint: pass events, not a query"),
    ],
)
def test_a_place_without_events_is_told(place: str, said: str) -> None:
    with pytest.raises(nestream.EventError, match=said):
        found(place)
    with pytest.raises(nestream.EventError, match=said):
        QUERY.stream(place)


# ---- what is read when it is needed ----


def reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))


def generator() -> Iterator[dict[str, Any]]:
    yield from ROWS


@pytest.mark.parametrize(
    "made",
    [
        reader,
        generator,
        lambda: TABLE.to_batches(max_chunksize=1),
        lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
        lambda: pyarrow.dataset.dataset(TABLE),
        lambda: pyarrow.dataset.dataset(TABLE).scanner(),
        lambda: pl.LazyFrame(ROWS),
        lambda: pl.LazyFrame(ROWS).filter(pl.col("id") == 7),
    ],
)
def test_events_that_are_still_to_be_read_are_read(made: Callable[[], Any]) -> None:
    assert found(made()) == FOUND
    assert QUERY.count(made()) == 1
    assert list(QUERY.stream(made())) == FOUND
    assert found({"A": made(), "B": made()}) == FOUND
    assert len(QUERY.show(made())) == 1
    assert QUERY.stream().push_batch(made()).to_pylist() == FOUND


def test_a_dataset_that_cannot_be_read_is_an_error_of_the_events(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "gone.parquet")
    dataset = pyarrow.dataset.dataset(tmp_path / "gone.parquet")
    (tmp_path / "gone.parquet").unlink()
    with pytest.raises(nestream.EventError, match="cannot read events from a FileSystemDataset"):
        found(dataset)


def test_a_reader_is_counted_although_it_can_be_read_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_FIRST_LOOK", 1)
    monkeypatch.setattr(memory, "memory_left", lambda: 100_000)
    numbers = pa.table({"ts": range(2000), "type": ["A", "B"] * 1000})
    once = pa.RecordBatchReader.from_batches(numbers.schema, numbers.to_batches())
    with pytest.raises(nestream.TooManyMatchesError, match="500,500 matches"):
        nestream.query("SEQ(A a, B b) WITHIN UNBOUNDED").match(once)


def test_a_relation_of_duckdb_is_read() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().from_arrow(TABLE)
    for _ in range(2):
        assert found(relation) == FOUND
    assert QUERY.count(relation.filter("id = 7")) == 1
    assert list(QUERY.stream(relation)) == FOUND


# ---- pandas ----


def test_an_index_with_a_name_is_a_column() -> None:
    assert found(FRAME.set_index("ts")) == FOUND
    assert found(FRAME.set_index(["type", "ts"])) == FOUND
    assert found(FRAME.rename(columns={"ts": "at"}).set_index("at"), time="at") == FOUND
    assert list(QUERY.stream(FRAME.set_index("ts"))) == FOUND


def test_an_index_of_times_without_a_name_is_the_time() -> None:
    assert found(FRAME.set_index("ts").rename_axis(None)) == FOUND
    assert found(FRAME.set_index("ts").rename_axis(None), time="at") == FOUND
    assert QUERY.stream().push_batch(FRAME.set_index("ts").rename_axis(None)).to_pylist() == FOUND


def test_a_column_comes_before_an_index_of_its_name() -> None:
    frame = FRAME.set_index(pd.Index([START, START], name="ts"))
    assert found(frame) == FOUND


def test_other_indexes_are_not_columns() -> None:
    query = nestream.query("A a")
    assert list(query.match(FRAME)["a"][0].as_py()) == ["ts", "type", "id"]
    assert list(query.match(FRAME.set_index(pd.Index(["x", "y"])))["a"][0].as_py()) == ["ts", "type", "id"]


# ---- times as text ----


def texts(form: Callable[[datetime], str]) -> list[dict[str, Any]]:
    return [{**row, "ts": form(row["ts"])} for row in ROWS]


@pytest.mark.parametrize(
    "form",
    [
        datetime.isoformat,
        lambda ts: ts.isoformat(" "),
        lambda ts: ts.isoformat(timespec="minutes"),
        lambda ts: ts.isoformat(timespec="milliseconds"),
        lambda ts: ts.isoformat(timespec="microseconds") + "000",
    ],
)
def test_times_may_be_iso_8601_text(form: Callable[[datetime], str]) -> None:
    rows = texts(form)
    for events in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), pl.DataFrame(rows)):
        assert found(events) == FOUND
    assert list(QUERY.stream(rows)) == FOUND
    assert QUERY.stream().push_batch(rows).to_pylist() == FOUND
    dictionary = pa.Table.from_pylist(rows)
    words = dictionary.set_column(0, "ts", dictionary["ts"].dictionary_encode())
    assert found(words) == FOUND


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+0000", " +00:00", "+00"])
def test_times_with_a_zone_are_times_with_a_zone(zone: str) -> None:
    rows = texts(lambda ts: ts.isoformat() + zone)
    utc = [{"id": 7, "match_start": START.replace(tzinfo=UTC), "match_end": END.replace(tzinfo=UTC)}]
    assert found(rows) == utc
    assert list(QUERY.stream(rows)) == utc


def test_a_day_is_a_time() -> None:
    rows = [{"ts": "2026-01-05", "type": "A"}, {"ts": "2026-01-06", "type": "B"}]
    assert nestream.query("SEQ(A a, B b) WITHIN 1 day").count(rows) == 1


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-05T07:00:00", "05/01/2026", "1767596400", "", "2026-01-05T25:00"]
)
def test_text_that_is_no_time_is_refused_with_its_row(text: str) -> None:
    rows = [ROWS[0] | {"ts": START.isoformat()}, ROWS[1] | {"ts": text}]
    with pytest.raises(
        nestream.EventError, match=f"row 1 has the time {text!r} in column `ts`, which is not an ISO"
    ):
        found(rows)
    with pytest.raises(nestream.EventError, match="row 1 has the time"):
        QUERY.stream().push_batch(rows)


def test_an_event_of_a_stream_whose_time_is_no_time_is_a_dead_letter() -> None:
    dead: list[str] = []
    stream = QUERY.stream(dead_letter=lambda event, reason: dead.append(reason))
    rows = texts(datetime.isoformat)
    matches = [match for row in (rows[0], {**rows[0], "ts": "soon"}, rows[1]) for match in stream.push(row)]
    assert matches == FOUND
    assert [reason.splitlines()[0] for reason in dead] == [
        "row 0 has the time 'soon' in column `ts`, which is not an ISO 8601 timestamp"
    ]


def test_times_with_a_zone_and_without_do_not_mix() -> None:
    rows = [ROWS[0] | {"ts": "2026-01-05T07:00:00Z"}, ROWS[1] | {"ts": "2026-01-05T07:20:00"}]
    with pytest.raises(
        nestream.EventError, match="has times with a zone and without: '2026-01-05T07:00:00Z' and"
    ):
        found(rows)


def test_a_missing_time_among_texts_is_a_missing_time() -> None:
    with pytest.raises(nestream.EventError, match="row 1 has no time"):
        found([ROWS[0] | {"ts": START.isoformat()}, ROWS[1] | {"ts": None}])


# ---- keys ----

KEY = UUID("aad04fab-f958-4143-9f24-086c3497f9b7")
KEYED = [{**row, "id": KEY} for row in ROWS]


def test_uuids_are_keys_and_stay_uuids() -> None:
    storage = pa.array([KEY.bytes, KEY.bytes], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    for events in (KEYED, pd.DataFrame(KEYED), TABLE.set_column(2, "id", column)):
        assert found(events) == [FOUND[0] | {"id": KEY}]
    assert list(QUERY.stream(KEYED)) == [FOUND[0] | {"id": KEY}]
    pushed = QUERY.stream()
    assert [match for row in KEYED for match in pushed.push(row)] == [FOUND[0] | {"id": KEY}]


def test_missing_uuids_stay_missing() -> None:
    storage = pa.array([None, KEY.bytes, None], pa.binary(16))
    table = pa.table(
        {"ts": [1, 2, 3], "type": ["A"] * 3, "id": pa.ExtensionArray.from_storage(pa.uuid(), storage)}
    )
    query = nestream.query("A a RETURN a.id AS id")
    assert query.match(table)["id"].to_pylist() == [None, KEY, None]
    assert query.match(table.slice(1))["id"].to_pylist() == [KEY, None]
    known = nestream.query("(A a : a.id IS NOT NULL) RETURN lower(a.id) AS id")
    assert known.match(table)["id"].to_pylist() == [str(KEY)]


def test_uuids_are_compared_with_uuids() -> None:
    query = nestream.query("(A a : a.id = $key)", parameters={"key": KEY})
    assert query.count(KEYED) == 1
    listed = nestream.query("(A a : a.id IN $keys)", parameters={"keys": [KEY, UUID(int=0)]})
    assert listed.count(KEYED) == 1
    a = nestream.event("A")
    assert nestream.query(a.where(a.id == KEY)).count(KEYED) == 1


def test_uuids_in_structs_are_keys() -> None:
    rows = [{"ts": row["ts"], "type": row["type"], "order": {"id": KEY, "all": [KEY]}} for row in ROWS]
    query = nestream.query("SEQ(A a, B b, a.order.id = b.order.id) WITHIN 1 hour RETURN a.order.id AS id")
    assert query.match(rows)["id"].to_pylist() == [str(KEY)]


def test_decimals_are_keys() -> None:
    for value in (Decimal("7.10"), Decimal("-0.001")):
        rows = [{**row, "id": value} for row in ROWS]
        for events in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), pl.DataFrame(rows)):
            assert found(events) == [FOUND[0] | {"id": value}]


def test_structs_come_in_every_frame() -> None:
    rows = [{"ts": row["ts"], "type": row["type"], "o": {"to": {"id": 7}}} for row in ROWS]
    query = nestream.query("SEQ(A a, B b, a.o.to.id = b.o.to.id) WITHIN 1 hour RETURN a.o.to.id AS id")
    for events in (
        rows,
        pa.Table.from_pylist(rows),
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        pl.LazyFrame(rows),
    ):
        assert query.match(events)["id"].to_pylist() == [7]


# ---- results ----


def test_matches_come_in_the_form_that_is_asked_for() -> None:
    assert isinstance(QUERY.match(ROWS), pa.Table)
    assert isinstance(QUERY.match(FRAME), pa.Table)
    assert isinstance(QUERY.match(ROWS, to="arrow"), pa.Table)
    assert isinstance(QUERY.match(ROWS, to="pandas"), pd.DataFrame)
    assert isinstance(QUERY.match(ROWS, to="polars"), pl.DataFrame)
    assert QUERY.match(ROWS, to="pylist") == FOUND
    assert QUERY.match(ROWS, to="polars").to_dicts() == FOUND
    assert isinstance(nestream.queries([QUERY]).match(ROWS, to="pandas"), pd.DataFrame)
    assert QUERY.match(ROWS, to="pylist", as_of=END) == FOUND


def test_times_in_pandas_are_timestamps() -> None:
    frame = QUERY.match(ROWS, to="pandas")
    assert str(frame["match_start"].dtype).startswith("datetime64")
    assert frame["match_end"][0] - frame["match_start"][0] == END - START


def test_an_unknown_form_is_guessed_at() -> None:
    with pytest.raises(
        ValueError, match=r"matches cannot be returned as 'panda'\n  hint: did you mean 'pandas'\?"
    ):
        QUERY.match(ROWS, to="panda")  # type: ignore[call-overload]


def test_a_form_whose_library_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"to='polars' needs the package polars, .*\n  hint: pip install"
    ):
        QUERY.match(ROWS, to="polars")


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for events in (ROWS, FRAME, FRAME.set_index("ts"), texts(datetime.isoformat), KEYED):
            QUERY.match(events)
