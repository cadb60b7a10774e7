"""What queries with INTO make: states of workers and compliance on the ward, and events for the editor."""

from __future__ import annotations

from typing import Any

import pytest

from nestream.console.job import rule_of
from nestream.console.live import Live
from nestream.console.operations import Operations
from nestream.console.ward import Ward
from nestream.hospital.bundled import is_rule, rule_files
from nestream.hospital.score import Match
from tests.console.served import event, match
from tests.hospital.detection import found, moments, planted

MAKERS = {name.removesuffix(".neel"): text for name, text in rule_files().items() if not is_rule(text)}
BREAK = rule_files()["break-without-washing.neel"]
SIMULATED = moments(1_500, 8, violations=0.5)
TRUTH = {one: times for one, times in planted(SIMULATED).items() if one[0] == "break-without-washing"}
EVENTS = [{**moment.event, "ts": moment.event["ts"].isoformat()} for moment in SIMULATED]


def composite(query: str, second: int, **values: Any) -> dict[str, Any]:
    """A match of a query with INTO, as the sink of a set has it."""
    ts = event(second, "A")["ts"]
    return {"query": query, "match_start": ts, "match_end": ts, "events": [], "values": values}


@pytest.fixture
def live() -> Live:
    """A job whose queries have names and types of their own."""
    texts = {
        "rule": "SEQ(A a, B b) WITHIN 5",
        "fine": "PATTERN A a WITHIN 5 RETURN a.wID AS wID INTO Fine",
    }
    rules = {name: rule_of(name, text) for name, text in texts.items()}
    return Live(rules=rules, entity="wID", place="room", ward=Ward("wID", "room"))


def state_of(live: Live, worker: str) -> str:
    assert live.ward is not None
    return live.ward.workers[worker].state


def test_a_worker_is_in_the_state_that_the_last_composite_event_gives(live: Live) -> None:
    live.take_events([event(1, "Operating Room", wID=3, room="OR-1"), event(2, "Washing", wID=3, room="S")])
    assert state_of(live, "3") == "unknown"
    assert live.take_matches([composite("fine", 4, wID="3", room="S", state="clean")]) == []
    assert state_of(live, "3") == "clean"
    live.take_matches([composite("fine", 3, wID="3", room="OR-1", state="due")])
    assert state_of(live, "3") == "clean"
    live.take_matches([composite("fine", 5, wID="3", room="OR-1", state="due")])
    assert state_of(live, "3") == "due"
    assert (live.matches_in, len(live.matches), live.composites_in) == (0, 0, 3)


def test_a_violation_lasts_until_a_composite_event_says_anything_but_due(live: Live) -> None:
    broken = match("rule", a=event(3, "A", wID=3, room="OR-1"))
    due = composite("fine", 3, wID="3", room="OR-1", state="due")
    (told,) = live.take_matches([broken, due])
    assert (told["query"], state_of(live, "3")) == ("rule", "violation")
    live.take_matches([composite("fine", 4, wID="3", room="OR-1", state="due")])
    assert state_of(live, "3") == "violation"
    live.take_matches([composite("fine", 5, wID="3", room="S", state="clean")])
    live.take_matches([broken])
    assert state_of(live, "3") == "clean"


def test_compliance_is_violations_to_the_opportunities_of_the_rule(live: Live) -> None:
    live.take_matches([composite("fine", n, wID="3", room="OR-1", rule="rule") for n in range(1, 5)])
    live.take_matches([match("rule", b=event(4, "B", wID=3, room="OR-1"))])
    live.take_matches([match("another", b=event(5, "B", wID=3, room="OR-1"))])
    assert live.statistics()["compliance"] == {
        "rule": {"rule": [4, 1]},
        "room": {"OR-1": [4, 1]},
        "wID": {"3": [4, 1]},
    }


def numbers(rows: list[dict[str, Any]]) -> dict[Match, int]:
    return found(rows)


def test_a_rule_that_reads_composite_events_is_run_over_those_of_the_job() -> None:
    request = {"text": BREAK, "name": "break-without-washing", "makers": MAKERS, "events": EVENTS}
    operations = Operations({})
    assert operations.answer({"operation": "check", **request})["ok"]
    ran = operations.answer({"operation": "run", **request})
    assert numbers(ran["rows"]) == TRUTH
    alone = operations.answer({"operation": "run", **request, "makers": {}})
    assert not alone["ok"]
    assert "how" in alone["error"]
    measured = operations.answer({"operation": "measure", "rules": {"one": BREAK}, **request})
    assert [one["matches"] for one in measured["rules"]] == [sum(TRUTH.values())]


def test_a_rule_on_trial_reads_the_composite_events_of_the_job() -> None:
    operations = Operations({})
    start = {"operation": "start", "text": BREAK, "name": "break-without-washing", "makers": MAKERS}
    assert operations.answer(start)["ok"]
    rows: list[dict[str, Any]] = []
    for first in range(0, len(EVENTS), 300):
        answer = operations.answer({"operation": "push", "events": EVENTS[first : first + 300]})
        rows = (answer["rows"] or {"new": rows})["new"]
    assert len(rows) == answer["counts"]["new"]
    late = max(moment.event["event"] for moment in SIMULATED[-5:])
    decided = {one: times for one, times in TRUTH.items() if one[1][-1] < late}
    assert decided.items() <= numbers(rows).items() <= TRUTH.items()


def test_why_sees_the_composite_event_that_stops_a_match() -> None:
    events = [
        event(1, "Operating Room", wID=3, room="OR-1"),
        event(5, "Break Room", wID=3, room="Break-1"),
        event(8, "Washing", wID=3, room="S"),
        event(9, "Drying", wID=3, room="S"),
        event(12, "Operating Room", wID=3, room="OR-1"),
    ]
    request = {"text": BREAK, "makers": MAKERS, "events": events, "picked": [0, 1, 4]}
    told = Operations({}).answer({"operation": "why", **request})
    assert told["ok"], told
    assert "Hygiene" in str(told["why"])
