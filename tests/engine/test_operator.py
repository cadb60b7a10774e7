"""The core runs any program that keeps to the protocol, and finds strategies by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream import strategies
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.matcher import END, Matcher
from nestream.engine.operator import EvaluationCache, Execution, Matches, Measured, Operator, Span
from nestream.engine.program import Decided, LeafSpec, Measure, Outline, Program
from nestream.engine.query_set import Matchers
from nestream.engine.windowed_events import WindowedEvents
from nestream.model.schema import Schema
from nestream.strategies import STRATEGIES, StrategyError, program_of
from nestream_papers.options import Options

TABLE = pa.table({"ts": [1, 2, 3, 4, 6, 9], "type": list("ABABBB"), "id": [1, 2, 1, 1, 2, 1]})
QUERY = "SEQ(A a, B b) WITHIN 3"
PAIRS = [(1, 2), (1, 4), (3, 4), (3, 6)]


@dataclass(frozen=True)
class PairProgram(Program):
    """An A and a later B in a window, by looking at every pair."""

    def start(self, limit: int) -> Execution:
        return Pairing(self)

    def explain(self, measured: Sequence[Measured] = ()) -> str:
        return "every pair"

    def explain_json(self, measured: Sequence[Measured] = ()) -> dict[str, Any]:
        return {"engine": "every pair"}


class Pairing(Execution):
    """The program at work; counts how often it is asked, and computes the window once for a set."""

    def __init__(self, program: PairProgram) -> None:
        self.program = program
        self.asked = 0

    def operators(self, cache: EvaluationCache, *, at_once: bool, first: int = 0) -> list[Operator]:
        self.asked += 1
        return [Pair(cache.once("store", lambda: WindowedEvents(cache.events, self.program)))]


class Pair(Operator):
    """The pairs whose B has a position in a range."""

    def __init__(self, store: WindowedEvents) -> None:
        self.store = store

    def run(self, first: int, end: int) -> Iterator[Matches]:
        store = self.store
        for b in store.leaf_rows[1]:
            if first <= store.pos[b] < end:
                reach = store.reach(np.array([b]))[0]
                found = [a for a in store.leaf_rows[0] if reach <= store.pos[a] < store.low[b]]
                rows = {"a": np.array(found, np.int64), "b": np.full(len(found), b, np.int64)}
                yield Matches(rows, len(found))

    def within(self, first: int, end: int, spans: Mapping[str, Span]) -> Iterator[Matches]:
        raise AssertionError("no moment has more matches than fit the budget")


OUTLINE = Outline(Decided.LAST, {"a": 0, "b": 1}, ("a",), ("b",), (("a", 0), ("b", 1)))
PROGRAM = PairProgram(
    leaves=(LeafSpec(("A",)), LeafSpec(("B",))),
    outlines=(OUTLINE,),
    measure=Measure.TIME,
    window=3,
    exclusive=False,
    by_arrival=False,
    attributes=(),
    distinct=False,
    looks_back=False,
    kept=("a", "b"),
    memory=1 << 20,
)


def held() -> EventBuffer:
    return EventBuffer(PROGRAM.leaves, Schema.of(TABLE.schema), ["ts"])


def times(events: EventBuffer, found: Iterator[Matches]) -> list[tuple[int, int]]:
    return [
        (int(events.ts[a]), int(events.ts[b]))
        for matches in found
        for a, b in zip(matches.rows["a"], matches.rows["b"], strict=True)
    ]


def test_a_matcher_runs_a_program_that_it_knows_nothing_of() -> None:
    events = held()
    matcher = Matcher(PROGRAM, events)
    events.append(TABLE)
    assert times(events, matcher.advance(END)) == PAIRS
    assert [(m["a"]["ts"], m["b"]["ts"]) for m in nestream.query(QUERY).match(TABLE).to_pylist()] == PAIRS


def test_an_execution_is_kept_from_batch_to_batch_and_events_are_forgotten() -> None:
    events = held()
    matcher = Matcher(PROGRAM, events)
    found = []
    for row in range(TABLE.num_rows):
        events.append(TABLE.slice(row, 1))
        found += times(events, matcher.advance(TABLE.column("ts")[row].as_py()))
    assert found == PAIRS
    assert isinstance(matcher.execution, Pairing)
    assert matcher.execution.asked == 4  # for each B, unless none of its window is left
    assert len(events) == 2


def test_matches_are_counted_by_running_where_an_operator_knows_no_better() -> None:
    events = held()
    events.append(TABLE)
    assert sum(Matcher(PROGRAM, events).counts()) == len(PAIRS)


def test_what_one_program_of_a_set_computed_is_there_for_the_others() -> None:
    events = held()
    matchers = Matchers([PROGRAM, replace(PROGRAM, memory=1 << 10)], events)
    events.append(TABLE)
    events.seal()
    cache = matchers.cache()
    made = [member.operators(cache, at_once=True)[0] for member in matchers.members]
    assert isinstance(made[0], Pair)
    assert isinstance(made[1], Pair)
    assert made[0].store is made[1].store
    assert [number for number, _ in matchers.decide(END)] == [0, 1]


# -- strategies by name ------------------------------------------------------------------------------------


def test_no_strategy_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, nestream, nestream.queries; print([m for m in sys.modules if 'papers' in m])"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout == "[]\n"


def test_auto_is_native_and_so_is_its_older_name() -> None:
    assert {"auto", "native"} <= set(STRATEGIES)
    assert strategies.ALIASES == {"bounds": "native"}
    assert strategies.PLANNERS["auto"] == strategies.PLANNERS["native"] == strategies.NATIVE
    assert nestream.query(QUERY).count(TABLE, strategy="bounds") == nestream.query(QUERY).count(TABLE)


@pytest.mark.parametrize(
    ("version", "problem"),
    [("0.0.1", f"version 0.0.1, while nestream is {nestream.__version__}"), (None, "not installed")],
)
def test_the_papers_run_in_the_version_of_nestream_alone(
    version: str | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = nestream.query(QUERY)
    assert query.count(TABLE, strategy="nested") == query.count(TABLE)
    if version is None:  # a folder of that name without the package
        monkeypatch.delattr("nestream_papers.__version__")
    else:
        monkeypatch.setattr("nestream_papers.__version__", version)
    with pytest.raises(StrategyError) as raised:
        query.count(TABLE, strategy="nested")
    assert str(raised.value).startswith(
        f"strategy 'nested' is part of nestream-papers, which is {problem}\n  hint: "
    )
    assert query.count(TABLE) == query.count(TABLE, strategy="reference")


@pytest.mark.parametrize("options", [{"bounds": False}, {"bounds": True}, Options()])
def test_switches_are_those_of_the_papers_engine(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    native = f"{__name__}:planned"
    monkeypatch.setattr(strategies, "NATIVE", native)
    monkeypatch.setattr(strategies, "PLANNERS", {**strategies.PLANNERS, "native": native})
    plan = nestream.query(QUERY).plan
    assert program_of(plan, None, "native") is PROGRAM
    assert program_of(plan, None, "native", options={"memory": 5}) is PROGRAM
    assert "Chain" in program_of(plan, None, "native", options=options).explain()


def planned(*plan: Any, **settings: Any) -> Program:
    """A planner for the core that has one program."""
    return PROGRAM


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": True}, "the option memory must be a number"),
        ({"memory": 1, "bound": True}, "unknown option 'bound': use one of bounds, "),
        ({"bounds": 1}, "the option bounds is True or False"),
    ],
)
def test_an_option_that_is_none_is_an_error_by_every_strategy(options: Any, said: str) -> None:
    for strategy in set(STRATEGIES) - {"reference"}:
        with pytest.raises(ValueError, match=said):
            nestream.query(QUERY).match(TABLE, strategy=strategy, options=options)
