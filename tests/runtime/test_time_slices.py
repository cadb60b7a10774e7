"""Tests of the slices of time in which a large table is matched."""

from __future__ import annotations

import pyarrow as pa
import pytest

import nestream
from nestream.query import Query
from nestream.runtime import time_slices
from nestream.runtime.local import LocalRun
from nestream.runtime.time_slices import TimeSlices, can_be_sliced

EVENTS = pa.table({"ts": [1, 2, 2, 2, 3, 5, 8, 8, 9], "type": list("ABABABABA")})
ENDS = pa.table({"ts": [-(2**63), -(2**63) + 1, 0, 2**63 - 2, 2**63 - 1], "type": list("ABABB")})


def started(chosen: Query, events: pa.Table = EVENTS) -> tuple[LocalRun, pa.Table]:
    run, table = chosen._started(events, {})
    assert isinstance(run, LocalRun)
    return run, table


def cut(chosen: Query) -> list[tuple[int, int | None, list[int]]]:
    """The times in which matches of each slice end, and the times of the events that it has."""
    run, table = started(chosen)
    slices = TimeSlices(table, run.schema, run.program, 1)
    return [(one.first, one.end, one.events.column("ts").to_pylist()) for one in slices]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "ROWS", 3)
    monkeypatch.setattr(time_slices, "_SHARE", 0)


def test_a_slice_has_the_window_before_it() -> None:
    found = cut(nestream.query("SEQ(A a, B b) WITHIN 2"))
    assert found == [(1, 2, [1]), (2, 3, [1, 2, 2, 2]), (3, 8, [1, 2, 2, 2, 3, 5]), (8, None, [8, 8, 9])]


def test_a_slice_has_the_window_after_it_where_matches_wait_for_theirs() -> None:
    found = cut(nestream.query("SEQ(A a, !B b) WITHIN 2"))
    assert found[:2] == [(1, 2, [1, 2, 2, 2, 3]), (2, 3, [1, 2, 2, 2, 3])]


def test_a_slice_is_longer_than_what_it_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "_SHARE", 4)
    found = cut(nestream.query("SEQ(A a, B b) WITHIN 2"))
    assert found == [(1, 2, [1]), (2, 5, [1, 2, 2, 2, 3]), (5, None, [3, 5, 8, 8, 9])]


def test_slices_are_shorter_where_there_are_many_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "ROWS", 9)
    monkeypatch.setattr(time_slices, "PIECE", 2)
    run, table = started(nestream.query("SEQ(A a, B b) WITHIN 2"))
    slices = TimeSlices(table, run.schema, run.program, 1)
    whole = next(iter(slices))
    assert (whole.end, whole.rows) == (None, 9)
    slices.adapt(whole, 12)
    slices.adapt(whole, 12)  # another thread had as long a slice
    assert next(iter(slices)).end == 2  # 3 events with 4 matches of 2 events, as far as times differ


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("encoded", [False, True])
def test_slices_are_twice_as_long_where_few_events_are_read(
    chunks: int, encoded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slices, "ROWS", 10)
    whole = pa.table({"ts": range(60), "type": list("ABXXXXXXXXXXXXXXXXXX") * 3})
    table = pa.concat_tables([whole.slice(60 // chunks * n, 60 // chunks) for n in range(chunks)])
    if encoded:
        table = table.set_column(1, "type", table["type"].dictionary_encode())
    lengths = []
    for text in ("SEQ(A a, B b) WITHIN 2", "SEQ(A a, X x) WITHIN 2", "SEQ(A a, ANY b) WITHIN 2"):
        run, table = started(nestream.query(text), table)
        lengths.append(max(one.rows for one in TimeSlices(table, run.schema, run.program, 1)))
    assert lengths == [20, 10, 10]


@pytest.mark.parametrize(
    ("text", "sliced"),
    [
        ("SEQ(A a, B b) WITHIN 2", True),
        ("SEQ(A a, !B b) WITHIN 2", True),
        ("SEQ(A a, B b) WITHIN 2 RETURN b", True),
        ("SEQ(A a, B b) WITHIN 2 RETURN a", False),  # a row may have its last events in two slices
        ("SEQ(A a, B b) WITHIN 2 KEEP LAST PER a", False),
        ("SEQ(A a, B b) WITHIN 2 KEEP LAST PER b", True),
        ("SEQ(A a, A x, B b) WITHIN 5 KEEP SHORTEST PER b, a.ts % 2", True),
        ("SEQ(A a, B b) WITHIN 2 KEEP FIRST PER b EVERY 2", False),
        ("OR(SEQ(A a, B b), SEQ(B x, A y)) WITHIN 2 KEEP LAST PER b, y", True),
        ("SEQ(A a, B b) WITHIN 2 KEEP FIRST PER a", True),
        ("SEQ(A a, A x, B b, a.ts < x.ts) WITHIN 7 KEEP FIRST PER x", True),
        ("SEQ(!A y, A a, B b, a.ts < b.ts) WITHIN 5 KEEP FIRST PER a", True),
        ("OR(SEQ(A a, B b), SEQ(B x, A y)) WITHIN 5 KEEP FIRST PER a, y", True),
        ("OR(SEQ(A a, B b), SEQ(B x, A y)) WITHIN 5 KEEP FIRST PER a", False),
        ("SEQ(A a, B b) WITHIN 5 KEEP FIRST PER a.ts % 2", False),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", False),
        ("SEQ(A a, B b) WITHIN UNBOUNDED", False),
    ],
)
def test_a_query_is_sliced_where_matches_are_known_from_the_events_around_them(
    text: str, sliced: bool
) -> None:
    chosen = nestream.query(text)
    assert can_be_sliced(started(chosen)[0].program) is sliced
    assert chosen.match(EVENTS, threads=2) == chosen.match(EVENTS, strategy="reference")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", ["SEQ(A a, B b) WITHIN 1", "SEQ(A a, !A x) WITHIN 9223372036854775807"])
def test_the_first_and_the_last_time_there_can_be_are_in_a_slice(
    text: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slices, "ROWS", 1)
    chosen = nestream.query(text)
    assert chosen.match(ENDS, threads=threads) == chosen.match(ENDS, strategy="reference")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_limit_takes_the_first_matches_of_all_slices(threads: int) -> None:
    chosen = nestream.query("SEQ(A a, B b) WITHIN 8")
    for limit in (1, 5, 100):
        limited = nestream.query(f"SEQ(A a, B b) WITHIN 8 LIMIT {limit}")
        assert limited.match(EVENTS, threads=threads) == chosen.match(EVENTS, threads=1).slice(0, limit)


def test_empty_chunks_do_not_hide_how_many_events_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter over many files leaves such chunks."""
    monkeypatch.setattr(time_slices, "ROWS", 40)
    whole = pa.table({"ts": range(80), "type": list("AB") * 40})
    parts = [part for at in range(0, 80, 5) for part in (whole.slice(0, 0), whole.slice(at, 5))]
    run, table = started(nestream.query("SEQ(A a, B b) WITHIN 2"), pa.concat_tables(parts))
    assert table["type"].num_chunks > 1
    assert max(one.rows for one in TimeSlices(table, run.schema, run.program, 1)) == 40


def test_a_cycle_of_types_does_not_hide_how_many_events_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slices, "ROWS", 1_000)
    table = pa.table({"ts": range(12_000), "type": list("ABCD") * 3_000})
    run, table = started(nestream.query("SEQ(B b, C c) WITHIN 2"), table)
    assert max(one.rows for one in TimeSlices(table, run.schema, run.program, 1)) <= 1_000
