"""Compliance, exposure paths and alerts come from the queries' output, and agree with what was planted."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

import nestream
from nestream.hospital import RULES
from nestream.hospital.compliance import ROLES, Compliance, Ratio
from nestream.hospital.scripts import BREAK, ENTERING, UNFINISHED
from tests.hospital.detection import moments

SET = nestream.queries(RULES)
SIMULATED = moments(6_000, 7, violations=0.4)
NINE = datetime(2026, 1, 5, 9)


@pytest.fixture(scope="module")
def ward() -> Compliance:
    return Compliance(SET.match([moment.event for moment in SIMULATED]).to_pylist())


def event(minute: float, type: str, **attributes: Any) -> dict[str, Any]:
    """An event some minutes after nine."""
    own = {"id": None, "ins-type": None, "wID": None, "room": None, **attributes}
    return {"event": 0, "ts": NINE + timedelta(minutes=minute), "type": type, **own}


def test_each_planted_violation_is_one_of_its_opportunities(ward: Compliance) -> None:
    number = {moment.event["event"]: moment.event for moment in SIMULATED}
    planted = {
        (one.query, one.who, number[one.events[-1]]["ts"])
        for moment in SIMULATED
        for one in moment.planted
        if one.query in (ENTERING, BREAK, UNFINISHED)
    }
    counted = {
        (
            one.rule,
            f"worker {one.worker}" if one.worker else f"instrument {one.instrument}",
            one.time,
        )
        for one in ward.violations
    }
    assert counted == planted
    assert len({rule for rule, _, _ in planted}) == 3


def test_an_operating_room_is_an_opportunity_each_time_it_is_entered(ward: Compliance) -> None:
    entered = sum(moment.event["type"] == "Enter-Operating-Room" for moment in SIMULATED)
    assert ward.by("rule")[ENTERING].opportunities == entered > 100


@pytest.mark.parametrize("what", ["room", "shift", "role", "worker"])
def test_what_is_counted_apart_is_all_there_is(ward: Compliance, what: str) -> None:
    rules = ward.by("rule")
    if what in ("role", "worker"):  # instruments have none
        rules.pop(UNFINISHED)
    apart = ward.by(what)
    assert sum(one.opportunities for one in apart.values()) == sum(
        one.opportunities for one in rules.values()
    )
    assert sum(one.violations for one in apart.values()) == sum(one.violations for one in rules.values())
    assert all(0 <= one.compliance <= 1 for one in apart.values())


def test_the_past_of_a_worker_and_the_last_hour_are_all_there_is(ward: Compliance) -> None:
    for name, whole in ward.by("worker").items():
        parts = ward.worker(name)
        assert sum(part.opportunities for part in parts) == whole.opportunities
    assert any(
        past.opportunities and recent.opportunities for past, recent in map(ward.worker, ward.by("worker"))
    )


def entries(worker: int, hour: int, sanitised: int, others: int) -> list[dict[str, Any]]:
    """Some entries of a worker in an hour, two minutes apart, and how many times they sanitised before."""
    found = []
    for turn in range(sanitised + others):
        minute = 60 * hour + 2 * turn
        if turn < sanitised:
            found.append(event(minute, "Sanitize-Area", wID=worker, room="Sanitiser-1"))
        found.append(event(minute + 0.5, "Enter-Operating-Room", wID=worker, room="OR-1"))
    return found


def test_a_worker_who_complies_less_than_in_their_own_past_is_an_alert() -> None:
    events = [*entries(3, 0, 6, 0), *entries(4, 0, 3, 3), *entries(3, 2, 3, 3), *entries(4, 2, 3, 3)]
    events.sort(key=lambda one: one["ts"])
    ward = Compliance(SET.match(events).to_pylist())
    assert ward.worker("3") == (Ratio(6, 0), Ratio(6, 3))
    assert ward.worker("4") == (Ratio(6, 3), Ratio(6, 3))
    assert ward.alerts() == ["worker 3 complied 50% of the time in the last hour, 100% before"]
    assert ward.by("role") == {ROLES[3]: Ratio(12, 3), ROLES[4]: Ratio(12, 6)}
    assert ward.by("shift") == {"2026-01-05 early": Ratio(24, 9)}


def test_a_shift_of_the_night_belongs_to_the_day_on_which_it_began() -> None:
    events = [event(60 * hour, "Enter-Operating-Room", wID=1, room="OR-1") for hour in (5, 6, 14, 21, 22)]
    ward = Compliance(SET.match(events).to_pylist())
    assert Counter({name: one.opportunities for name, one in ward.by("shift").items()}) == {
        "2026-01-05 early": 1,
        "2026-01-05 late": 1,
        "2026-01-05 night": 2,
        "2026-01-06 early": 1,
    }


def test_a_contaminated_instrument_is_followed_to_the_workers_and_patients_whom_it_reached() -> None:
    events = [
        event(0, "Recycle", id=17, room="Sterile-1"),
        event(1, "Washing", id=17, room="Sterile-1"),
        event(2, "Operating", id=17, room="OR-1"),
        event(3, "Operating Room", wID=8, room="OR-2"),
        event(4, "Operating Room", wID=5, room="OR-1"),
        event(5, "Operating Room", wID=6, room="OR-1"),
        event(6, "Patient Room", wID=5, room="Patient-2"),
        event(7, "Patient Room", wID=6, room="Patient-4"),
        event(8, "Sanitize-Area", wID=5, room="Sanitiser-1"),
        event(9, "Patient Room", wID=5, room="Patient-3"),
    ]
    ward = Compliance(SET.match(events).to_pylist())
    assert [str(path) for path in ward.paths] == ["instrument 17 > OR-1 > worker 5 > Patient-2"]
    assert ward.alerts() == [f"a contaminated instrument reached a patient: {ward.paths[0]}"]
    complete = [event(1.2 + n / 10, t, id=17, room="Sterile-1") for n, t in enumerate(TREATED)]
    ward = Compliance(SET.match([*events[:2], *complete, *events[2:]]).to_pylist())
    assert ward.paths == []


TREATED = ("Sharpening", "Disinfection", "Checking")
