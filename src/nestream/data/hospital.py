"""Hospital events: the cycles of tagged instruments, and the hand hygiene of tagged workers.

Columns
    ts        timestamp[ms]  time of the event
    type      text           the step, see TYPES
    id        int64          instrument, NULL for events of workers
    ins-type  text           surgery, dental or endoscopy, NULL for events of workers
    wID       int64          worker, NULL for events of instruments
    room      text           where it happened

Instruments go Recycle, Washing, Sharpening, Disinfection, Checking, Operating in at most 45 minutes and
rest for more than an hour. A planted fraction is used with a step left out, or checked before it was
disinfected. Workers either sanitize and enter (`Sanitize-Area`, `Enter-Operating-Room`) or leave an
operating room for a break or a patient, wash, dry and return, in less than a minute. A planted fraction
leaves out sanitizing, washing or drying. `Washing` occurs with both: of tools (`id`) and hands (`wID`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.data.columns import (
    HOUR,
    MINUTE,
    SECOND,
    Booleans,
    Integers,
    check_events,
    check_fraction,
    earliest,
    numbers,
    random_numbers,
    table,
    timestamps,
    words,
)

START = "2026-01-05T07:00:00"
_TOOL = ("id", "ins-type", "room")
_WORKER = ("wID", "room")
TYPES = {
    "Recycle": _TOOL,
    "Washing": ("id", "ins-type", "wID", "room"),
    "Sharpening": _TOOL,
    "Disinfection": _TOOL,
    "Checking": _TOOL,
    "Operating": _TOOL,
    "Sanitize-Area": _WORKER,
    "Enter-Operating-Room": _WORKER,
    "Operating Room": _WORKER,
    "Break Room": _WORKER,
    "Patient Room": _WORKER,
    "Drying": _WORKER,
}
COLUMNS = {
    "ts": "timestamp[ms]: time of the event",
    "type": "text: the step",
    "id": "int64: the instrument, NULL for events of workers",
    "ins-type": "text: surgery, dental or endoscopy, NULL for events of workers",
    "wID": "int64: the worker, NULL for events of instruments",
    "room": "text: where it happened",
}
_NAMES = tuple(TYPES)
_CODE = {name: code for code, name in enumerate(_NAMES)}
_INSTRUMENT_TYPES = ("surgery", "dental", "endoscopy")
_ROOMS = ("Sterile", "OR-1", "OR-2", "OR-3", "OR-4", "Ward")
_ROUND = 4 * HOUR  # each instrument starts one cycle a round
_CYCLE = tuple(
    _CODE[n] for n in ("Recycle", "Washing", "Sharpening", "Disinfection", "Checking", "Operating")
)


@dataclass
class _Part:
    """Events in flat columns; `who` is an instrument or a worker."""

    time: Integers
    type: Integers
    who: Integers
    room: Integers

    def cut(self, present: Booleans) -> _Part:
        return _Part(self.time[present], self.type[present], self.who[present], self.room[present])


def hospital(
    events: int = 10_000,
    seed: int = 0,
    *,
    violations: float = 0.02,
    hygiene: float = 0.4,
    instruments: int = 40,
    workers: int = 12,
) -> pa.Table:
    """Generate instrument and hygiene events; `hygiene` is the share of the latter.

    `violations`: the fraction of instrument cycles and of hygiene episodes that break the rules.

    >>> hospital(3).column_names
    ['ts', 'type', 'id', 'ins-type', 'wID', 'room']
    """
    check_events(events)
    check_fraction("violations", violations)
    check_fraction("hygiene", hygiene)
    if instruments < 1 or workers < 1:
        raise ValueError("instruments and workers must be at least 1")
    random = random_numbers(seed)
    cycles = int(np.ceil(events * (1 - hygiene) / 5))
    span = (cycles // instruments + 1) * _ROUND
    tools = _instrument_cycles(random, cycles, instruments, violations)
    hands = _hygiene_episodes(random, int(np.ceil(events * hygiene)), span, workers, violations)
    time = np.concatenate((tools.time, hands.time))
    order = earliest(time, events)
    is_tool = (np.arange(len(time)) < len(tools.time))[order]
    who = np.concatenate((tools.who, hands.who))[order]
    kind = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])[who % 10]
    return table(
        {
            "ts": timestamps(START, time[order]),
            "type": words(np.concatenate((tools.type, hands.type))[order], _NAMES),
            "id": numbers(who, present=is_tool),
            "ins-type": words(kind, _INSTRUMENT_TYPES, present=is_tool),
            "wID": numbers(who, present=~is_tool),
            "room": words(np.concatenate((tools.room, hands.room))[order], _ROOMS),
        }
    )


def _instrument_cycles(
    random: np.random.Generator, cycles: int, instruments: int, violations: float
) -> _Part:
    """Each cycle is a row of six steps; a violation hides one or swaps disinfection and checking."""
    cycle = np.arange(cycles)
    tool = cycle % instruments
    offset = random.integers(0, HOUR, instruments)  # where in its round an instrument starts
    start = (cycle // instruments) * _ROUND + offset[tool] + random.integers(0, 90 * MINUTE, cycles)
    gaps = random.integers(3 * MINUTE, 9 * MINUTE, (cycles, 6))
    gaps[:, 0] = 0
    time = start[:, None] + np.cumsum(gaps, axis=1)
    step: npt.NDArray[np.int64] = np.tile(np.array(_CYCLE), (cycles, 1))
    present = np.ones((cycles, 6), bool)
    wrong = np.flatnonzero(random.random(cycles) < violations)
    fault = random.integers(0, 4, len(wrong))
    for missing in range(3):
        present[wrong[fault == missing], 2 + missing] = False
    swapped = wrong[fault == 3]
    step[swapped, 3], step[swapped, 4] = _CODE["Checking"], _CODE["Disinfection"]
    room = np.zeros((cycles, 6), np.int64)
    room[:, 5] = random.integers(1, 5, cycles)
    who = np.repeat(tool + 1, 6)
    return _Part(time.ravel(), step.ravel(), who, room.ravel()).cut(present.ravel())


def _hygiene_episodes(
    random: np.random.Generator, events: int, span: int, workers: int, violations: float
) -> _Part:
    """Each episode is a row of seven possible steps of one worker; at least `events` events if any."""
    episodes = events  # an episode has one event or more
    episode = np.arange(episodes)
    worker = episode % workers
    slot = max(4 * MINUTE, span * workers // max(1, episodes // 3))
    start = (episode // workers) * slot + random.integers(0, slot - 3 * MINUTE, episodes)
    visit = random.random(episodes) < 0.5
    patient = random.random(episodes) < 0.5
    wrong = random.random(episodes) < violations
    fault = random.integers(0, 3, episodes)
    away = np.where(patient, _CODE["Patient Room"], _CODE["Break Room"])
    names = (
        "Sanitize-Area",
        "Enter-Operating-Room",
        "Operating Room",
        "",
        "Washing",
        "Drying",
        "Operating Room",
    )
    step = np.tile(np.array([_CODE.get(name, 0) for name in names]), (episodes, 1))
    step[:, 3] = away
    no_washing, no_drying = wrong & (fault != 1), wrong & (fault != 0)
    present = np.column_stack(
        (~visit & ~wrong, ~visit, visit, visit, visit & ~no_washing, visit & ~no_drying, visit)
    )
    gaps = random.integers(3 * SECOND, 11 * SECOND, (episodes, 7))
    gaps[:, 0] = gaps[:, 2] = 0
    gaps[:, 1] *= 4
    time = start[:, None] + np.where(visit[:, None], np.cumsum(gaps * (np.arange(7) > 1), axis=1), 0)
    time[:, 1] += np.where(visit, 0, gaps[:, 1])
    room = np.tile(random.integers(1, 5, episodes)[:, None], (1, 7))
    room[:, 3] = _ROOMS.index("Ward")
    part = _Part(time.ravel(), step.ravel(), np.repeat(worker + 1, 7), room.ravel()).cut(present.ravel())
    enough = int(np.searchsorted(np.cumsum(present.sum(axis=1)), events)) + 1
    rows = int(present[:enough].sum())
    return _Part(part.time[:rows], part.type[:rows], part.who[:rows], part.room[:rows])
