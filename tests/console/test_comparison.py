"""A draft beside the deployed rule: what is new, what is gone, whichever of them finds a match first."""

from __future__ import annotations

from typing import Any

from nestream.console.comparison import SHOWN, Comparison
from nestream.console.operations import Operations
from tests.console.served import RULE, event

WITHOUT_NEGATION = "PATTERN SEQ(Recycle first, Operating last, first.id = last.id)\nWITHIN 1 hour\n"
NOTHING = "PATTERN SEQ(Recycle r, Operating o, r.id = o.id, r.id = 99)\nWITHIN 1 hour\n"
EVENTS = [
    event(1, "Recycle", id=7),
    event(2, "Operating", id=7),
    event(3, "Recycle", id=8),
    event(4, "Washing", id=8),
    event(5, "Operating", id=8),
    event(60, "Hall"),
]


def compared(draft: str, deployed: str | None, *batches: list[dict[str, Any]]) -> dict[str, Any]:
    """What a worker answers to the last batch of events."""
    operations = Operations({})
    started = operations.answer({"operation": "start", "name": "dirty", "text": draft, "deployed": deployed})
    assert started == {"ok": True}, started
    answer: dict[str, Any] = {}
    first = 0
    for batch in batches:
        answer = operations.answer({"operation": "push", "events": batch, "first": first})
        first += len(batch)
    return answer


def test_matches_of_the_same_events_are_in_both_whatever_their_variables_are_called() -> None:
    answer = compared(WITHOUT_NEGATION, RULE, EVENTS)
    assert answer["counts"] == {"new": 1, "gone": 0, "both": 1}
    (new,) = answer["rows"]["new"]
    assert [(part["variable"], part["number"]) for part in new["events"]] == [("first", 2), ("last", 4)]
    back = compared(RULE, WITHOUT_NEGATION, EVENTS)
    assert back["counts"] == {"new": 0, "gone": 1, "both": 1}
    assert compared(NOTHING, RULE, EVENTS)["counts"] == {"new": 0, "gone": 1, "both": 0}


def test_the_difference_does_not_depend_on_how_events_arrive() -> None:
    at_once = compared(WITHOUT_NEGATION, RULE, EVENTS)
    one_by_one = compared(WITHOUT_NEGATION, RULE, *([each] for each in EVENTS))
    assert one_by_one["counts"] == at_once["counts"]


def test_a_new_rule_is_compared_with_nothing() -> None:
    assert compared(RULE, None, EVENTS)["counts"] == {"new": 1, "gone": 0, "both": 0}


def test_a_match_that_only_one_has_found_so_far_moves_to_both_when_the_other_finds_it() -> None:
    found = Comparison()
    row = {"match_start": 1, "match_end": 2, "events": [{"variable": "a", "number": 3}], "values": {}}
    found.add(row, deployed=True)
    assert found.counts() == {"new": 0, "gone": 1, "both": 0}
    found.add({**row, "events": [{"variable": "b", "number": 3}]}, deployed=False)
    assert found.counts() == {"new": 0, "gone": 0, "both": 1}
    assert found.rows() == {"new": [], "gone": []}
    found.add(row, deployed=True)
    assert found.counts() == {"new": 0, "gone": 1, "both": 1}


def test_matches_without_events_are_the_same_by_their_times_and_values() -> None:
    found = Comparison()
    row = {"match_start": 1, "match_end": 2, "events": [], "values": {"user": "u1"}}
    found.add(row, deployed=True)
    found.add({**row, "values": {"user": "u2"}}, deployed=False)
    found.add(dict(row), deployed=False)
    assert found.counts() == {"new": 1, "gone": 0, "both": 1}


def test_only_the_last_matches_are_held_and_all_are_counted() -> None:
    found = Comparison()
    for number in range(5 * SHOWN):
        row = {"match_start": 1, "match_end": 2, "events": [{"number": number}], "values": {}}
        found.add(row, deployed=False)
    assert found.counts()["new"] == 5 * SHOWN
    shown = [row["events"][0]["number"] for row in found.rows()["new"]]
    assert shown == list(range(5 * SHOWN - 1, 4 * SHOWN - 1, -1))


def test_a_trial_of_a_job_with_integer_times_takes_its_events() -> None:
    operations = Operations({})
    started = {"operation": "start", "name": "pair", "text": "SEQ(A a, B b) WITHIN 5", "lateness": 0.0}
    assert operations.answer(started)["ok"] is True
    events = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}, {"ts": 9, "type": "A"}]
    pushed = operations.answer({"operation": "push", "events": events, "first": 0})
    assert pushed["ok"] is True, pushed
