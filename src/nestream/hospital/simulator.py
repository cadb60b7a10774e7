"""The simulator: workers and instruments that go through one script after another, as events in time order.

Episodes of a worker are more than a minute apart, and an instrument is recycled again more than an hour after
it was recycled before. So no match of a rule has events of two episodes, and what an episode breaks is what
its script says.

Columns of an event
    event     int        its number, 1, 2, 3 ...
    ts        datetime   UTC, in whole milliseconds
    type      text       the step
    id        int        the instrument, None for events of workers
    ins-type  text       surgery, dental or endoscopy, None for events of workers
    wID       int        the worker, None for events of instruments
    room      text       a room of the floor plan
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from nestream.hospital import cycles, hygiene
from nestream.hospital.episode import Episode, instrument_episode, worker_episode
from nestream.hospital.floor import FLOOR, Floor
from nestream.hospital.scripts import HOUR, MINUTE, SECOND, Planted

START = datetime(2026, 1, 5, 7)
"""The time at which every simulation begins."""
COLUMNS = ("event", "ts", "type", "id", "ins-type", "wID", "room")
INSTRUMENTS_PER_WORKER = 5
RATE_PER_WORKER = 0.045
"""The events per simulated second of a worker and their instruments; a test measures it."""
_QUIET = MINUTE + SECOND
"""No two episodes of a worker are closer than this."""
_OFTEN_INSIDE = 0.75
"""How often a worker's next episode ends in an operating room."""
_REST = HOUR + SECOND
"""No two recyclings of an instrument in different cycles are closer than this."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An event, and the matches of the rules that end with it."""

    event: dict[str, Any]
    planted: tuple[Planted, ...]


def simulate(
    seed: int = 0,
    *,
    workers: int = 24,
    instruments: int | None = None,
    violations: float = 0.1,
    floor: Floor = FLOOR,
) -> Iterator[Moment]:
    """Events in time order, forever; the same arguments produce the same events.

    `violations` is the fraction of episodes that break a rule. There are five instruments for each worker by
    default. Memory depends only on the number of workers and instruments.

    >>> next(simulate(1)).event["event"]
    1
    """
    if workers < 1 or (instruments is not None and instruments < 0):
        raise ValueError("workers must be at least 1, and instruments must not be negative")
    if not 0 <= violations <= 1:
        raise ValueError(f"violations must be between 0 and 1, got {violations}")
    tools = INSTRUMENTS_PER_WORKER * workers if instruments is None else instruments
    return _Hospital(Random(seed), workers, tools, violations, floor).moments()


class _Worker:
    """Where a worker is, and when they are free."""

    __slots__ = ("inside", "place", "plan", "quiet_from", "theatre")

    def __init__(self, place: str, theatre: str) -> None:
        self.place = place
        self.theatre = theatre
        self.inside = False
        self.quiet_from = 0  # from here on, no other episode of the worker is near
        self.plan = 0  # a start with another number was postponed


class _Hospital:
    """Everything in progress, as a heap of what comes next: the start of an episode, or a step of one."""

    def __init__(
        self, random: Random, workers: int, instruments: int, violations: float, floor: Floor
    ) -> None:
        self.random = random
        self.violations = violations
        self.floor = floor
        theatres, wards = floor.of_kind("operating"), floor.of_kind("patient") + floor.of_kind("break")
        self.workers = [_Worker(wards[n % len(wards)], theatres[n % len(theatres)]) for n in range(workers)]
        for n, worker in enumerate(self.workers):
            if n % 2:  # half of them are at work when it begins
                worker.inside, worker.place = True, worker.theatre
        self.heap: list[tuple[int, int, Episode | None, int, int]] = []
        self.entries = 0
        for n in range(workers):
            self._push(random.randint(0, 2 * MINUTE), None, n, 0)
        for n in range(instruments):
            self._push(random.randint(0, HOUR + 15 * MINUTE), None, -1 - n, 0)

    def moments(self) -> Iterator[Moment]:
        """The events in time order."""
        number = 0
        while True:
            time, _, episode, place, plan = heapq.heappop(self.heap)
            if episode is None:
                self._begin(time, place, plan)
                continue
            number += 1
            step = episode.steps[place]
            tool = step.instrument
            event = {
                "event": number,
                "ts": START + timedelta(milliseconds=time),
                "type": step.type,
                "id": tool,
                "ins-type": None if tool is None else _kind(tool),
                "wID": step.worker,
                "room": step.room,
            }
            if place + 1 < len(episode.steps):
                self._push(episode.steps[place + 1].time, episode, place + 1, 0)
            yield Moment(event, episode.happened(step, number))

    def _push(self, time: int, episode: Episode | None, place: int, plan: int) -> None:
        self.entries += 1  # entries of one time keep their order
        heapq.heappush(self.heap, (time, self.entries, episode, place, plan))

    def _begin(self, time: int, who: int, plan: int) -> None:
        """Begin the next episode of a worker, or of an instrument, whose numbers are negative here."""
        if who < 0:
            self._begin_cycle(time, -1 - who)
        elif plan == self.workers[who].plan:
            self._begin_hygiene(time, who)

    def _begin_cycle(self, time: int, tool: int) -> None:
        script = cycles.CYCLES.choose(self.random, self.violations)
        episode = instrument_episode(self.random, script, time, tool + 1, _kind(tool + 1), self.floor)
        self._push(episode.steps[0].time, episode, 0, 0)
        recycled = max(step.time for step in episode.steps if step.type == cycles.TYPES["r"])
        again = max(recycled + _REST, episode.end + MINUTE)
        self._push(again + self.random.randint(0, 30 * MINUTE), None, -1 - tool, 0)

    def _begin_hygiene(self, time: int, who: int) -> None:
        worker = self.workers[who]
        stays = self.random.random() < _OFTEN_INSIDE
        if worker.inside:
            repertoire = hygiene.TRIPS if stays else hygiene.LEAVES
        else:
            repertoire = hygiene.ENTRIES if stays else hygiene.ROUNDS
            worker.theatre = self.random.choice(self.floor.of_kind("operating"))
        worker.inside = stays
        script = repertoire.choose(self.random, self.violations)
        colleague = self._colleague(time, who) if script.with_colleague else None
        while script.with_colleague and colleague is None:  # everybody is busy
            script = repertoire.choose(self.random, self.violations)
        helper = colleague if script.with_colleague else None
        episode = worker_episode(
            self.random, script, time, who, helper, worker.place, worker.theatre, self.floor
        )
        self._push(episode.steps[0].time, episode, 0, 0)
        self._rest(who, episode)
        if helper is not None:
            self.workers[helper].inside = False
            self._rest(helper, episode)

    def _rest(self, who: int, episode: Episode) -> None:
        """Make sure that a worker's next episode is far enough from this one."""
        worker = self.workers[who]
        worker.place = next(step.room for step in reversed(episode.steps) if step.worker == who + 1)
        worker.quiet_from = episode.end + _QUIET
        worker.plan += 1
        self._push(worker.quiet_from + self.random.randint(0, 2 * MINUTE), None, who, worker.plan)

    def _colleague(self, time: int, who: int) -> int | None:
        """A worker who has had nothing to do for a minute."""
        for _ in range(3):
            other = self.random.randrange(len(self.workers))
            if other != who and self.workers[other].quiet_from <= time:
                return other
        return None


def _kind(tool: int) -> str:
    return cycles.INSTRUMENT_TYPES[tool % 10]
