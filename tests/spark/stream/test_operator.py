"""The stateful operator under simulated micro-batches: the matches of the reference, and little state."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from random import Random

import pyarrow as pa
import pytest

from nestream.runtime.spark.stream_pack import GUARD
from tests.spark.stream.cases import SECOND, START, check_cases, lateness, later_events
from tests.spark.stream.simulated import SimulatedStream

SEED = 31
CASES = 150
MANY = 20_000


def simulated(text: str, table: pa.Table, *, order: str, seed: int, strategy: str = "auto") -> pa.Table:
    """Runs a query over random micro-batches, with failures, restarts and events as late as they may be."""
    chance = Random(seed)
    delay = lateness(table) // timedelta(microseconds=1)
    stream = SimulatedStream(
        text,
        table.schema,
        order=order,
        buckets=chance.choice((1, 2, 5)),
        delay=delay,
        after=chance.choice((0, 1)),
        strategy=strategy,
    )
    done = 0
    while done < table.num_rows:
        size = chance.choice((1, 1, 2, 3, 5, 100))
        stream.batch(table.slice(done, size), chance)
        done += size
        stream.next_watermark()
        if chance.random() < 0.5:
            stream.batch(None, chance)
    later = later_events(table)
    for part in (later.slice(0, 39), later.slice(39)):
        stream.batch(part, chance)
        stream.next_watermark()
    stream.batch(None, chance)
    assert not stream.late
    return stream.matches


def test_random_micro_batches_with_failures_give_the_matches_of_the_reference() -> None:
    check_cases(simulated, SEED, 0, CASES)


@pytest.mark.parametrize("strategy", ["flat", "views-balanced"])
def test_random_micro_batches_give_the_matches_of_the_reference_by_the_strategies_of_the_papers(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each micro-batch is planned anew, however few its events are and however little they have changed."""
    monkeypatch.setattr("nestream_papers.flat.FEWEST", 1)
    monkeypatch.setattr("nestream_papers.flat.DRIFT", 1.0)
    check_cases(partial(simulated, strategy=strategy), SEED, 5 * CASES, 40)


@pytest.mark.slow
def test_many_random_micro_batches_give_the_matches_of_the_reference() -> None:
    check_cases(simulated, SEED, 10 * CASES, MANY)


def events(*rows: tuple[float, str, int]) -> pa.Table:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("id", pa.int64())])
    moments = [{"ts": START + timedelta(seconds=ts), "type": kind, "id": key} for ts, kind, key in rows]
    return pa.Table.from_pylist(moments, schema)


def test_a_key_that_no_event_can_meet_any_more_leaves_no_state() -> None:
    chance = Random(0)
    first = events((0, "A", 1), (1, "A", 2))
    stream = SimulatedStream("SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 seconds", first.schema)
    stream.batch(first, chance)
    stream.next_watermark()
    stream.batch(events((100, "Z", 1)), chance)
    stream.next_watermark()
    stream.batch(None, chance)
    stream.greatest += 100 * SECOND
    stream.next_watermark()
    stream.batch(None, chance)
    left = {n: s for n, s in stream.handle.buckets.items() if s.values or any(s.maps.values()) or s.timers}
    assert set(left) == {GUARD}


def test_state_stays_within_a_few_chunks_over_thousands_of_micro_batches() -> None:
    schema = events().schema
    stream = SimulatedStream("SEQ(A a, B b, C c) WHERE [id] WITHIN 100 seconds", schema, buckets=1)
    most = 0
    for n in range(1500):
        stream.batch(events((n, "A", n % 3)), Random(2))
        stream.next_watermark()
        chunks = [len(state.maps["chunks"]) for state in stream.handle.buckets.values()]
        most = max(most, *chunks)
    assert most <= 48


def test_an_event_before_the_watermark_is_late_and_one_at_it_is_not() -> None:
    chance = Random(3)
    stream = SimulatedStream("SEQ(A a, B b) WITHIN 100 seconds", events().schema, delay=10 * SECOND)
    stream.batch(events((30, "A", 1)), chance)
    stream.next_watermark()
    stream.batch(events((19.999, "A", 2), (20, "A", 3), (31, "B", 1)), chance)
    assert [event["id"] for event in stream.late] == [2]
