"""What the rules find is what the simulator planted: precision and recall are 1."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nestream
from nestream.hospital import cycles, hygiene
from nestream.hospital.bundled import RULES
from nestream.hospital.scripts import WINDOWS, Repertoire
from tests.hospital.detection import Numbers, found, moments, planted

SET = nestream.queries(RULES)
REPERTOIRES = (cycles.CYCLES, hygiene.ENTRIES, hygiene.TRIPS, hygiene.LEAVES, hygiene.ROUNDS)


def detected(events: list[dict[str, object]]) -> Numbers:
    return found(SET.match(events).to_pylist())


@pytest.mark.parametrize(("seed", "violations"), [(0, 0.1), (1, 0.5), (2, 1.0)])
def test_precision_and_recall_are_one(seed: int, violations: float) -> None:
    simulated = moments(20_000, seed, violations=violations)
    truth = planted(simulated)
    assert {query for query, _ in truth} == set(WINDOWS) == set(SET)
    assert detected([moment.event for moment in simulated]) == truth


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 40),
    instruments=st.integers(0, 100),
    violations=st.floats(0, 1),
    events=st.integers(1, 3_000),
)
def test_precision_and_recall_are_one_for_every_hospital(
    seed: int, workers: int, instruments: int, violations: float, events: int
) -> None:
    simulated = moments(events, seed, workers=workers, instruments=instruments, violations=violations)
    assert detected([moment.event for moment in simulated]) == planted(simulated)


def test_each_script_occurs_and_breaks_what_it_says() -> None:
    """Every kind of violation is found, not only the frequent ones."""
    simulated = moments(40_000, 3, violations=0.6)
    broken = {(one.what, one.query) for moment in simulated for one in moment.planted}
    wanted = {
        (script.name, breach.rule)
        for repertoire in REPERTOIRES
        for script in repertoire.violating
        for breach in script.breaches
    }
    assert broken == wanted
    assert detected([moment.event for moment in simulated]) == planted(simulated)


def test_without_violations_nothing_is_found() -> None:
    simulated = moments(20_000, 4, violations=0)
    assert not planted(simulated)
    assert not detected([moment.event for moment in simulated])


def test_the_reference_evaluator_agrees_rule_by_rule() -> None:
    simulated = moments(400, 5, workers=3, instruments=30, violations=0.8)
    events = [moment.event for moment in simulated]
    truth = planted(simulated)
    assert len({query for query, _ in truth}) >= 4
    for name in SET:
        expected = {numbers for query, numbers in truth if query == name}
        matches = SET[name].match(events, strategy="reference").to_pylist()
        got = {
            tuple(value["event"] for value in match.values() if isinstance(value, dict)) for match in matches
        }
        assert got == expected


def test_an_engine_that_gets_the_events_one_by_one_finds_them_with_their_last_event() -> None:
    simulated = moments(3_000, 6, violations=0.5)
    stream = SET.stream(lateness=timedelta(0))
    for moment in simulated:
        now = found(stream.push(moment.event))
        assert now == planted([moment])


@pytest.mark.parametrize("repertoire", REPERTOIRES)
def test_no_steps_are_both_honest_and_a_violation(repertoire: Repertoire) -> None:
    names = [script.name for script in repertoire.scripts]
    assert len(set(names)) == len(names)
    assert not {script.steps for script in repertoire.honest if script.fit is None} & {
        script.steps for script in repertoire.violating if script.fit is None
    }
