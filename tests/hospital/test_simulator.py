"""The simulator: the same for a seed, in time order, bounded, on a floor plan that can be walked."""

from __future__ import annotations

import tracemalloc
from datetime import timedelta
from itertools import islice, pairwise
from typing import Any

import pytest

from nestream.data.hospital import TYPES
from nestream.hospital.episode import SIGHTING
from nestream.hospital.floor import FLOOR, KINDS, PACE
from nestream.hospital.scripts import Fit, fitted, script
from nestream.hospital.simulator import COLUMNS, RATE_PER_WORKER, START, simulate
from tests.hospital.detection import moments


def test_a_seed_gives_the_same_events_and_another_gives_others() -> None:
    assert moments(2_000, 7) == moments(2_000, 7)
    assert moments(2_000, 7) != moments(2_000, 8)


def test_events_are_numbered_in_time_order_and_have_all_columns() -> None:
    events = [moment.event for moment in moments(5_000)]
    assert [event["event"] for event in events] == list(range(1, 5_001))
    assert all(one["ts"] <= other["ts"] for one, other in pairwise(events))
    assert all(tuple(event) == COLUMNS for event in events)
    assert events[0]["ts"] >= START
    assert all(event["ts"].microsecond % 1000 == 0 for event in events)


def test_types_and_attributes_are_those_of_the_generator_of_hospital_events() -> None:
    events = [moment.event for moment in moments(20_000)]
    assert {event["type"] for event in events} == {*TYPES, SIGHTING}
    for event in events:
        if event["type"] == SIGHTING:
            assert event["wID"] is not None
            continue
        for name in ("id", "ins-type", "wID"):
            assert event[name] is None or name in TYPES[event["type"]]
        assert (event["id"] is None) != (event["wID"] is None)
        assert (event["id"] is None) == (event["ins-type"] is None)


def test_nobody_is_in_two_places_and_nobody_runs() -> None:
    """Two events of a worker in different rooms are a walk apart, but for those in a hurry."""
    seen: dict[int, tuple[object, str]] = {}
    hurried = walks = 0
    for moment in moments(20_000, violations=0):
        event = moment.event
        worker, room = event["wID"], event["room"]
        if worker is None:
            continue
        before = seen.get(worker)
        if before is not None:
            assert event["ts"] > before[0]
            if FLOOR.named[room].kind != "hall" != FLOOR.named[before[1]].kind and room != before[1]:
                walks += 1
                walked: timedelta = event["ts"] - before[0]
                hurried += walked.total_seconds() < FLOOR.seconds(before[1], room) * 0.5
        seen[worker] = event["ts"], room
    assert walks > 1000
    assert hurried < walks * 0.05


def test_the_rate_is_what_is_told() -> None:
    workers, hour = 200, timedelta(hours=1)
    times = [moment.event["ts"] - START for moment in moments(120_000, workers=workers)]
    assert times[-1] > 2 * hour
    counted = sum(hour < time <= 2 * hour for time in times)
    assert counted / 3600 / workers == pytest.approx(RATE_PER_WORKER, rel=0.1)


def test_memory_does_not_grow_with_the_events() -> None:
    running = simulate(1, workers=20)
    for _ in islice(running, 20_000):
        pass
    tracemalloc.start()
    try:
        for _ in islice(running, 5_000):
            pass
        before, _ = tracemalloc.get_traced_memory()
        for _ in islice(running, 60_000):
            pass
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < before + 2_000_000  # 60,000 events would be more; other threads allocate a little


def test_the_fraction_of_violations_is_that_of_the_episodes() -> None:
    by_fraction = {
        fraction: sum(len(moment.planted) for moment in moments(10_000, violations=fraction))
        for fraction in (0.0, 0.1, 0.4)
    }
    assert by_fraction[0.0] == 0
    assert by_fraction[0.4] == pytest.approx(4 * by_fraction[0.1], rel=0.35)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 0}, "workers must be at least 1"),
        ({"instruments": -1}, "instruments must not be negative"),
        ({"violations": 1.5}, r"violations must be between 0 and 1, got 1\.5"),
        ({"violations": -0.1}, r"violations must be between 0 and 1, got -0\.1"),
    ],
)
def test_a_hospital_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        simulate(**options)


def test_a_script_that_names_a_step_it_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="names a step"):
        script("wrong", "o b o2", ("rule", "o p o2"))
    with pytest.raises(ValueError, match="names a step"):
        script("wrong", "o b o")


def test_a_fit_moves_what_comes_after_and_keeps_what_was_before() -> None:
    assert fitted([5, 10, 20, 40, 45], list("abcde"), Fit("b", "d", 60)) == [5, 10, 30, 70, 75]


def test_every_room_can_be_reached_and_operating_rooms_through_their_station_alone() -> None:
    for one in FLOOR.rooms:
        assert one.kind in KINDS
        assert 0 <= one.x <= one.x + one.w <= FLOOR.width
        assert 0 <= one.y <= one.y + one.h <= FLOOR.height
        for other in FLOOR.rooms:
            straight = sum((a - b) ** 2 for a, b in zip(one.centre, other.centre, strict=True)) ** 0.5
            assert FLOOR.seconds(one.name, other.name) >= straight / PACE - 1e-9
            assert FLOOR.seconds(one.name, other.name) == pytest.approx(FLOOR.seconds(other.name, one.name))
    assert FLOOR.path("OR-1", "Patient-1") == ("OR-1", "Sanitiser-1", "Hall-West", "Patient-1")
    for room in FLOOR.of_kind("operating"):
        assert {FLOOR.named[name].kind for name in FLOOR.doors[room]} == {"sanitiser"}


def test_no_two_rooms_overlap() -> None:
    for one in FLOOR.rooms:
        for other in FLOOR.rooms:
            apart = (
                one.x + one.w <= other.x
                or other.x + other.w <= one.x
                or one.y + one.h <= other.y
                or other.y + other.h <= one.y
            )
            assert apart or one is other
