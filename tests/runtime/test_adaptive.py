"""Streams that are planned anew: statistics follow the events, strategies change, and matches do not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nestream.compose import adapting
from nestream.compose.adapting import Adapting
from nestream.compose.gathering import statistics_of
from nestream.optimize.drift import DRIFTED, drift
from nestream.optimize.statistics import Share, Statistics
from nestream.query import query
from nestream.runtime.adaptive import AdaptiveRun, takes_over
from nestream.runtime.local import LocalRun

TRAILING = "SEQ(A a, B b, !SEQ(C c, D d, c.x > d.x)) WITHIN 3000"


def phase(count: int, weights: dict[str, int], begin: int, seed: int, values: int = 100) -> pa.Table:
    chance = np.random.default_rng(seed)
    share = np.array(list(weights.values())) / sum(weights.values())
    return pa.table(
        {
            "ts": begin + np.cumsum(chance.integers(1, 20, count)),
            "type": np.array(list(weights))[chance.choice(len(weights), count, p=share)],
            "x": chance.integers(0, values, count),
        }
    )


def drifting(seed: int) -> list[pa.Table]:
    """Batches of a stream that at first has few events of the inner query, then many, then few again."""
    few, many = {"A": 6, "B": 6, "E": 50}, {"A": 6, "B": 6, "C": 40, "D": 40}
    found: list[pa.Table] = []
    for number, weights in enumerate((few, many, few)):
        begin = found[-1].column("ts")[-1].as_py() if found else 0
        table = phase(6_000, weights, begin, seed + number)
        found += [table.slice(start, 1_500) for start in range(0, 6_000, 1_500)]
    return found


def running(stream: Any) -> AdaptiveRun:
    assert stream._progress is not None
    assert isinstance(stream._progress.run, AdaptiveRun)
    return stream._progress.run


def test_a_stream_changes_its_strategy_with_its_events_and_gives_the_same_matches() -> None:
    batches = drifting(1)
    stream = query(TRAILING).stream(schema=batches[0].schema)
    found, strategies = [], []
    for batch in batches:
        found.append(stream.push_batch(batch))
        planner = running(stream).planner
        assert isinstance(planner, Adapting)
        strategies.append(planner.chosen.strategy)
        assert (running(stream).program.views is not None) == strategies[-1].startswith("views")
    found.append(stream.finish_batch())
    assert strategies[0] == "bounds"
    assert "views-balanced" in strategies
    whole = query(TRAILING).match(pa.concat_tables(batches), strategy="bounds")
    order = [("match_end", "ascending"), ("match_start", "ascending")]
    given = pa.concat_tables(found)
    assert given.num_rows == whole.num_rows
    assert (
        given.select(["match_start", "match_end"])
        .sort_by(order)
        .equals(whole.select(["match_start", "match_end"]).sort_by(order))
    )


@pytest.mark.parametrize("seed", range(4))
def test_any_change_at_any_boundary_gives_the_matches_of_the_whole(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(adapting, "ENOUGH", 1)
    monkeypatch.setattr(adapting, "drifted", lambda old, new: True)
    monkeypatch.setattr("nestream.compose.choosing.cheapest", chance.choice)
    table = pa.concat_tables(
        phase(150, {kind: chance.randint(1, 9) for kind in "ABCDE"}, start * 2_000, seed + start, 4)
        for start in range(3)
    )
    text = "SEQ(A a, !SEQ(C c, D d, c.x > d.x), B b, !SEQ(D e, E f, e.x > f.x)) WITHIN 120"
    stream = query(text).stream(schema=table.schema)
    found, done, used = [], 0, set()
    while done < table.num_rows:
        size = chance.choice((1, 7, 40))
        found.append(stream.push_batch(table.slice(done, size)))
        done += size
        used.add(running(stream).planner.chosen.strategy)  # type: ignore[attr-defined]
        if chance.random() < 0.1:
            stream = query(text).stream(schema=table.schema).restore(stream.save())
    found.append(stream.finish_batch())
    assert len(used) >= 3
    whole = query(text).match(table, strategy="reference").to_pylist()
    given = pa.concat_tables(found).to_pylist()
    assert sorted(map(str, given)) == sorted(map(str, whole))


def test_a_stream_without_a_choice_is_not_watched() -> None:
    table = phase(10, {"A": 1, "B": 1}, 0, 0)
    for text in ("SEQ(A a, !C c, B b) WITHIN 9", "SEQ(A a, B b) WITHIN 9"):
        assert type(query(text).stream(schema=table.schema)._progress.run) is LocalRun
    options = {"reach": False}
    assert type(query(TRAILING).stream(schema=table.schema, options=options)._progress.run) is LocalRun
    assert type(query(TRAILING).stream(schema=table.schema)._progress.run) is AdaptiveRun


def test_few_events_are_counted_together_and_predicates_not_tested_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tested: list[int] = []
    gathered = statistics_of

    def noted(shapes: Any, schema: Any, table: pa.Table, **options: Any) -> Statistics:
        tested.append(table.num_rows)
        return gathered(shapes, schema, table, **options)

    monkeypatch.setattr(adapting, "statistics_of", noted)
    table = phase(8_192, {"A": 6, "B": 6, "C": 40, "D": 40}, 0, 3)
    stream = query(TRAILING).stream(schema=table.schema)
    for start in range(0, table.num_rows, 128):
        stream.push_batch(table.slice(start, 128))
    planner = running(stream).planner
    assert isinstance(planner, Adapting)
    assert tested
    assert set(tested) == {1_024}
    assert len(tested) < 8
    assert planner.known.counts["C"] > 500
    (share,) = planner.known.shares.values()
    assert 0.4 < share.ratio < 0.6


def test_a_program_with_other_blocks_does_not_take_over() -> None:
    table = phase(10, {"A": 1, "B": 1}, 0, 0)
    run = running(query(TRAILING).stream(schema=table.schema))
    other = running(query("SEQ(A a, !SEQ(C c, D d, c.x > d.x), B b) WITHIN 3000").stream(schema=table.schema))
    assert not takes_over(other.program, run.program)
    with pytest.raises(ValueError, match="it cannot go on from this state"):
        run.go_on_with(other.program)


def test_drift_is_the_greatest_change() -> None:
    old = Statistics(0.0, 100.0, None, {"A": 100.0, "B": 50.0}, {}, {"p": Share(50.0, 100.0)})
    assert drift(old, old) == 1.0
    twice = Statistics(0.0, 200.0, None, {"A": 200.0, "B": 100.0}, {}, {"p": Share(100.0, 200.0)})
    assert drift(old, twice) < DRIFTED  # more of the same
    denser = Statistics(0.0, 100.0, None, {"A": 100.0, "B": 150.0}, {}, {})
    assert drift(old, denser) == pytest.approx(151 / 51)
    rarer = Statistics(0.0, 100.0, None, {"A": 100.0, "B": 50.0}, {}, {"p": Share(10.0, 100.0)})
    assert drift(old, rarer) == pytest.approx(50.5 / 10.5)
    untested = Statistics(0.0, 100.0, None, {"A": 100.0, "B": 50.0}, {}, {"p": Share(0.0, 3.0)})
    assert drift(old, untested) == 1.0
