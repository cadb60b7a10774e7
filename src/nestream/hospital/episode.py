"""An episode in progress: a script with times and rooms, and the matches that its last steps complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from nestream.hospital import cycles, hygiene
from nestream.hospital.floor import FLOOR, STORE, WORKSHOPS, Floor
from nestream.hospital.scripts import BREAK, MINUTE, SECOND, SURGICAL, WINDOWS, Fit, Planted, Script, fitted

SIGHTING = "Hall"
"""The type of events that show a worker on the way between rooms. No rule uses it."""
HASTE = (50 * SECOND, MINUTE)
"""How long a worker who does not wash is away, if the walk alone would take longer."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event to come."""

    time: int
    type: str
    room: str
    worker: int | None = None
    instrument: int | None = None
    name: str | None = None
    """The step of the script; None for a sighting on the way."""


@dataclass(slots=True)
class Episode:
    """The steps of one worker or instrument, and the numbers that their events got so far."""

    script: Script
    who: str
    steps: tuple[Step, ...]
    rules: frozenset[str]
    """The rules that this worker or instrument can break."""
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The time of the last event."""
        return self.steps[-1].time

    def happened(self, step: Step, number: int) -> tuple[Planted, ...]:
        """Record the number of a step's event; return the matches that end with it."""
        if step.name is None:
            return ()
        self.numbers[step.name] = number
        ended = [breach for breach in self.script.breaches if breach.steps[-1] == step.name]
        if not ended:
            return ()
        times = {one.name: one.time for one in self.steps}
        return tuple(
            Planted(
                breach.rule, tuple(self.numbers[name] for name in breach.steps), self.script.name, self.who
            )
            for breach in ended
            if breach.rule in self.rules
            and step.time - times[breach.steps[0]]
            <= WINDOWS[breach.rule]  # if it takes too long, no rule sees it
        )


_EVERY = frozenset(WINDOWS)
_NOT_SURGICAL = _EVERY - {SURGICAL}


def worker_episode(
    random: Random,
    script: Script,
    start: int,
    worker: int,
    colleague: int | None,
    place: str,
    theatre: str,
    floor: Floor = FLOOR,
) -> Episode:
    """A worker goes through a script, from the room `place`, with `theatre` as the operating room.

    Workers are numbered from 0 here, and from 1 in the events.
    """
    rooms: list[str] = []
    times: list[int] = []
    halls: list[str | None] = []
    time = start
    for name in script.steps:
        letter = name[0]
        room = _room_for(random, hygiene.KINDS[letter], place, theatre, floor)
        walk, path = 0, tuple[str, ...]()
        if not name.endswith("'"):  # a colleague is already there
            walk, path = int(floor.seconds(place, room) * SECOND), floor.path(place, room)
            place = room
        stay = random.randint(*hygiene.STAY[letter])
        time += walk + max(stay, 1 if times else 0)
        rooms.append(room)
        times.append(time)
        halls.append(_hall(path, floor))
    fit = script.fit or _haste(random, script, times)
    if fit is not None:
        times = fitted(times, script.steps, fit)
    steps: list[Step] = []
    before = start
    for name, room, moment, hall in zip(script.steps, rooms, times, halls, strict=True):
        middle = (before + moment) // 2
        if hall is not None and before < middle < moment:
            steps.append(Step(middle, SIGHTING, hall, worker=worker + 1))
        who = colleague if colleague is not None and name.endswith("'") else worker
        steps.append(Step(moment, hygiene.TYPES[name[0]], room, worker=who + 1, name=name))
        before = moment
    return Episode(script, f"worker {worker + 1}", tuple(steps), _EVERY)


def _room_for(random: Random, kind: str, place: str, theatre: str, floor: Floor) -> str:
    """Where a step is done: in the theatre, at the station before it, or in a nearby room."""
    if kind == "operating":
        return theatre
    near = floor.near(theatre, kind)
    if kind == "sanitiser":
        return near[0]
    return random.choice([room for room in near[:3] if room != place])


def _hall(path: tuple[str, ...], floor: Floor) -> str | None:
    """The hall halfway."""
    halls = [name for name in path[1:-1] if floor.named[name].kind == "hall"]
    return halls[len(halls) // 2] if halls else None


def _haste(random: Random, script: Script, times: list[int]) -> Fit | None:
    """Workers who skip washing are back within the minute of the rule."""
    for breach in script.breaches:
        first, last = (script.steps.index(breach.steps[n]) for n in (0, -1))
        if breach.rule == BREAK and times[last] - times[first] > MINUTE:
            return Fit(breach.steps[0], breach.steps[-1], random.randint(*HASTE))
    return None


_PACES: Mapping[str, tuple[tuple[int, int], int]] = {
    "quick": ((20 * SECOND, 80 * SECOND), 12),
    "slow": ((2 * MINUTE, 9 * MINUTE), 5),
    "very slow": ((9 * MINUTE, 20 * MINUTE), 1),
}
"""The shortest and longest time between two steps of an instrument, and how frequent that is."""


def instrument_episode(
    random: Random, script: Script, start: int, instrument: int, kind: str, floor: Floor = FLOOR
) -> Episode:
    """An instrument goes through a script."""
    (pace,) = random.choices([gap for gap, _ in _PACES.values()], [often for _, often in _PACES.values()])
    workshop, other = random.sample(WORKSHOPS, 2)
    theatre = random.choice(floor.of_kind("operating"))
    places = {"x": other, "f": STORE, "o": theatre}
    times = [start]
    for _ in script.steps[1:]:
        times.append(times[-1] + random.randint(*pace))
    if script.fit is not None:
        times = fitted(times, script.steps, script.fit)
    steps = tuple(
        Step(time, cycles.TYPES[name[0]], places.get(name[0], workshop), instrument=instrument, name=name)
        for name, time in zip(script.steps, times, strict=True)
    )
    rules = _EVERY if kind == cycles.SURGERY else _NOT_SURGICAL
    return Episode(script, f"instrument {instrument}", steps, rules)
