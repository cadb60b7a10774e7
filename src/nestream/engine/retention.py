"""Decides which events a matcher still needs: those within a window of anything undecided."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nestream.engine.program import Decided, Measure, Program
from nestream.engine.windowed_events import WindowedEvents

LEAST = -(2**63)


def forgettable(
    program: Program, store: WindowedEvents, decided: Sequence[int], watermark: int | None, first: int | None
) -> int:
    """How many of the first events no undecided or pending match needs.

    `decided` is the position up to which the matches of each operator were emitted, and `first` the number of
    the first row that a match held by KEEP needs.
    """
    expired = _expired(program, store, decided, watermark)
    return (
        expired if first is None else min(expired, _reached(program, store, first - store.events.forgotten))
    )


def complete_since(
    program: Program, store: WindowedEvents, decided: Sequence[int], watermark: int | None
) -> int:
    """The time from which every event that has arrived is held for the program."""
    if watermark is None or program.measure is Measure.NONE:
        return LEAST
    if program.measure is Measure.TIME:
        return max(watermark - _windows(program) * program.window, LEAST)
    if _oldest_position(program, store, decided) <= 0:
        return LEAST
    first = _expired(program, store, decided, watermark)
    return 1 + (int(store.ts[first]) if first < len(store) else watermark)  # others of that time may be gone


def _reached(program: Program, store: WindowedEvents, row: int) -> int:
    """The first row needed by a match that begins with a row: its leading groups look back."""
    if not program.looks_back or not 0 <= row < len(store):
        return row
    match program.measure:
        case Measure.NONE:
            return 0
        case Measure.EVENTS:
            return int(np.searchsorted(store.pos, store.pos[row] - (program.window - 1), "left"))
        case Measure.TIME:
            earliest = max(int(store.ts[row]) - program.window, LEAST)
            return int(np.searchsorted(store.ts, earliest, "left"))


def _expired(program: Program, store: WindowedEvents, decided: Sequence[int], watermark: int | None) -> int:
    """How many of the first events cannot be part of an undecided match."""
    if not len(store) or watermark is None or program.measure is Measure.NONE:
        return 0
    if program.measure is Measure.EVENTS:
        oldest = _oldest_position(program, store, decided) - store.base
        return int(np.searchsorted(store.pos, oldest, "left"))
    return int(np.searchsorted(store.ts, complete_since(program, store, decided, watermark), "left"))


def _windows(program: Program) -> int:
    return 2 if Decided.WINDOW in program.decided and program.looks_back else 1


def _oldest_position(program: Program, store: WindowedEvents, decided: Sequence[int]) -> int:
    """The position of the first needed event, where windows count events."""
    oldest = store.events.seen - _windows(program) * (program.window - 1)
    if Decided.CLOSED in program.decided:
        oldest = min(oldest, min(decided) - (program.window - 1))
    return oldest
