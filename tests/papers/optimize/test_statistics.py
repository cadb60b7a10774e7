"""Statistics: what they count, that parts add up to the whole, and that old events fade."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from nestream.data import generate
from nestream.model.schema import Schema
from nestream.papers.optimize.sketch import SIZE, Sketch
from nestream.papers.optimize.statistics import Share, Statistics


def events(times: list[int], kinds: str, **columns: list[object]) -> tuple[pa.Table, Schema]:
    table = pa.table({"ts": pa.array(times, pa.int64()), "type": list(kinds), **columns})
    return table, Schema.of(table.schema)


def test_few_values_are_counted_exactly() -> None:
    column = pa.array([5, 7, 5, None, 9, 7])
    assert (Sketch.of(column).distinct, Sketch.of(column).is_exact) == (3.0, True)


@pytest.mark.parametrize("number", [SIZE, 20_000, 1_000_000])
def test_many_values_are_estimated_within_a_tenth(number: int) -> None:
    values = np.random.default_rng(3).integers(0, 2**62, number)
    sketch = Sketch.of(pa.array(np.concatenate((values, values[: number // 2]))))
    assert not sketch.is_exact
    assert sketch.distinct == pytest.approx(number, rel=0.1)


def test_text_is_counted_like_numbers() -> None:
    assert Sketch.of(pa.array([f"k{n % 700}" for n in range(5_000)])).distinct == 700
    many = Sketch.of(pa.array([f"k{n}" for n in range(30_000)])).distinct
    assert many == pytest.approx(30_000, rel=0.1)


def test_equal_numbers_of_two_kinds_are_one_value() -> None:
    assert Sketch.of(pa.array([1, 2, 3])).merged(Sketch.of(pa.array([1.0, 2.5]))).distinct == 4


def test_a_column_of_lists_has_no_values_to_compare() -> None:
    assert Sketch.of(pa.array([[1], [2]])).distinct == 0


@pytest.mark.parametrize("parts", [2, 7])
def test_sketches_of_parts_merge_to_that_of_the_whole(parts: int) -> None:
    values = np.random.default_rng(1).integers(0, 5_000, 40_000)
    merged = Sketch()
    for part in np.array_split(values, parts)[::-1]:
        merged = merged.merged(Sketch.of(pa.array(part)))
    assert merged == Sketch.of(pa.array(values))


def test_counts_and_rates_are_those_of_the_table() -> None:
    table, schema = events([0, 10, 20, 40], "AABA", id=[1, 1, 2, 3])
    found = Statistics.of(table, schema, ["id"])
    assert (found.counts, found.span, found.domain("id")) == ({"A": 3.0, "B": 1.0}, 40.0, 3.0)
    assert found.domain("price") is None


def test_statistics_of_parts_merge_to_those_of_the_whole_in_any_order() -> None:
    table = generate("stock", events=3_000, seed=5)
    schema = Schema.of(table.schema)
    whole = Statistics.of(table, schema, ["id", "amount"])
    parts = [Statistics.of(table.slice(n * 700, 700), schema, ["id", "amount"]) for n in (3, 0, 4, 1, 2)]
    merged = Statistics()
    for part in parts:
        merged = merged.merged(part)
    assert merged == whole


@pytest.mark.parametrize("size", [1, 13, 400])
def test_fading_does_not_depend_on_how_the_events_are_split(size: int) -> None:
    table = generate("stock", events=1_000, seed=5)
    schema = Schema.of(table.schema)
    whole = Statistics.of(table, schema, half_life=20_000_000.0)
    merged = Statistics(half_life=20_000_000.0)
    for first in range(0, 1_000, size):
        merged = merged.merged(Statistics.of(table.slice(first, size), schema, half_life=20_000_000.0))
    assert merged.span == pytest.approx(whole.span)
    assert merged.counts == pytest.approx(whole.counts)


def test_a_rate_that_changes_is_followed_within_some_half_lives() -> None:
    table, schema = events(list(range(0, 10_000, 10)) + list(range(10_000, 11_000)), "A" * 2_000)
    steady = Statistics.of(table, schema)
    fading = Statistics.of(table, schema, half_life=100.0)
    assert steady.count("A") / steady.span == pytest.approx(2_000 / 10_999)
    assert fading.count("A") / fading.span == pytest.approx(1.0, rel=0.02)


def test_a_domain_forgets_what_was_seen_two_half_lives_ago() -> None:
    parts = []
    for epoch, values in enumerate(([1, 2, 3, 4], [1, 2], [1, 2, 5])):
        times = list(range(epoch * 100, epoch * 100 + len(values)))
        table, schema = events(times, "A" * len(values), id=list(values))
        parts.append(Statistics.of(table, schema, ["id"], half_life=100.0))
    assert parts[0].merged(parts[1]).domain("id") == 4
    assert parts[0].merged(parts[1]).merged(parts[2]).domain("id") == 3


def test_times_in_nanoseconds_are_counted_in_microseconds_as_windows_are() -> None:
    times = pa.array([1_000, 3_500, 9_001], pa.timestamp("ns", "UTC"))
    table = pa.table({"ts": times, "type": ["A", "A", "B"], "when": times})
    found = Statistics.of(table, Schema.of(table.schema), ["when"])
    assert (found.span, found.domain("when")) == (8.0, 3.0)


def test_events_in_pieces_are_counted_together() -> None:
    pieces = [events([1, 2], "AB")[0], events([3, 4, 5], "CAA")[0]]
    table = pa.concat_tables([*pieces, pieces[0].slice(0, 0)])
    words = table.set_column(1, "type", table.column("type").dictionary_encode())
    for given in (table, words):
        assert Statistics.of(given, Schema.of(given.schema)).counts == {"A": 3.0, "B": 1.0, "C": 1.0}


def test_half_lives_that_differ_are_not_mixed() -> None:
    table, schema = events([1], "A")
    with pytest.raises(ValueError, match="half-lives"):
        Statistics.of(table, schema).merged(Statistics.of(table, schema, half_life=3.0))


def test_they_survive_json() -> None:
    table = generate("stock", events=4_000, seed=5)
    found = Statistics.of(
        table, Schema.of(table.schema), ["id", "price"], half_life=1e6, shares={"a > 1": Share(3.0, 4.0)}
    )
    assert Statistics.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert Statistics.from_json(json.loads(json.dumps(Statistics().to_json()))) == Statistics()
    assert json.loads(json.dumps(found.described()))["domains"]["id"] == 100


def test_a_share_is_never_certain() -> None:
    assert 0 < Share(0, 100).ratio < 0.01 < 0.99 < Share(100, 100).ratio < 1


def test_no_events_have_no_statistics() -> None:
    table, schema = events([], "")
    assert Statistics.of(table, schema, ["id"]) == Statistics()
    assert math.isinf(Statistics().begin)
