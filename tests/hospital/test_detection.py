"""What the rules find is what the simulator planted: precision and recall are 1."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nestream
from nestream.hospital import cycles, hygiene
from nestream.hospital.bundled import RULES, is_rule, rule_files
from nestream.hospital.scripts import WINDOWS, Repertoire
from nestream.hospital.simulator import Moment
from tests.hospital.detection import Numbers, found, moments, planted
from tests.sets.composites import by_definition

SET = nestream.queries(RULES)
RULE_NAMES = {Path(name).stem for name, text in rule_files().items() if is_rule(text)}
REPERTOIRES = (cycles.CYCLES, hygiene.ENTRIES, hygiene.TRIPS, hygiene.LEAVES, hygiene.ROUNDS)


def detected(events: list[dict[str, object]]) -> Numbers:
    return found(SET.match(events).to_pylist())


@pytest.mark.parametrize(("seed", "violations"), [(0, 0.1), (1, 0.5), (2, 1.0)])
def test_precision_and_recall_are_one(seed: int, violations: float) -> None:
    simulated = moments(20_000, seed, violations=violations)
    truth = planted(simulated)
    assert {query for query, _ in truth} == set(WINDOWS) == RULE_NAMES
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


def test_the_reference_evaluator_agrees_query_by_query() -> None:
    simulated = moments(400, 5, workers=3, instruments=30, violations=0.8)
    events = pa.Table.from_pylist([moment.event for moment in simulated])
    truth = planted(simulated)
    assert len({query for query, _ in truth}) >= 4
    made = {"start": pa.timestamp("us"), "how": pa.string(), "state": pa.string(), "rule": pa.string()}
    wide = pa.schema([*events.schema, *made.items()])
    texts = {Path(name).stem: text for name, text in rule_files().items()}
    defined = by_definition(texts, events, "time", wide)
    given = SET.match_each(events)
    for name in SET:
        numbers = {
            tuple(value["event"] for value in match.values() if isinstance(value, dict))
            for match in defined[name].to_pylist()
        }
        assert name not in RULE_NAMES or numbers == {events for rule, events in truth if rule == name}
        assert given[name].num_rows == defined[name].num_rows


def test_events_one_by_one_give_each_match_once_the_time_of_its_last_event_has_passed() -> None:
    simulated = moments(300, 6, workers=4, violations=1.0)
    stream = SET.stream(lateness=timedelta(0))
    before: list[Moment] = []
    got = wanted = Counter[tuple[str, tuple[int, ...]]]()
    for moment in simulated:
        got = got + found(stream.push(moment.event))
        if before and before[-1].event["ts"] < moment.event["ts"]:
            wanted = wanted + planted(before)
            assert wanted <= got <= wanted + planted([moment])
            before = []
        before.append(moment)
    assert len(wanted) > 10


@pytest.mark.parametrize("repertoire", REPERTOIRES)
def test_no_steps_are_both_honest_and_a_violation(repertoire: Repertoire) -> None:
    names = [script.name for script in repertoire.scripts]
    assert len(set(names)) == len(names)
    assert not {script.steps for script in repertoire.honest if script.fit is None} & {
        script.steps for script in repertoire.violating if script.fit is None
    }
