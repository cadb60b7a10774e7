"""Applies KEEP: takes matches, and returns those that are kept, in output order.

Matches that agree have the same *key*: the positions of some of their events and the values of expressions.
Every choice is made over the matches in output order. On a stream, a match is therefore considered only when
no match before it in that order can still come: when all matches that end before the *frontier* have been
found. A kept match is released at once (FIRST, DISJOINT), or when no other match of its key can come (LAST,
LONGEST, SHORTEST). Until then its events are held. Of released matches, only the keys and ends are
remembered, and only as long as they matter.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nestream.engine.distinct import numbered
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.operator import Matches
from nestream.engine.program import Measure, Program
from nestream.model.expression import Attribute
from nestream.model.keep import WAITING, Keep, Kept
from nestream.model.vector import Vector

Key = tuple[Any, ...]
_MANY = 64
"""From this number of matches on, choosing among them by arrays pays off."""
NEVER = 2**63 - 1
"""Later than every time."""


class Held(NamedTuple):
    """A held match: its key, its span, and its events by number, -1 for an unbound variable.

    Events are numbered from the beginning of the stream, so forgetting events does not change the numbers.
    `until` is the latest end of a match with the same key.
    """

    end: int
    rows: tuple[int, ...]
    start: int
    key: Key
    until: int


@dataclass
class Remembered:
    """The last kept match of a key that was released."""

    end: int
    """The time of its end, or the position of its last event where arrival decides the order."""
    until: int
    """After this frontier it can be forgotten."""


@dataclass
class Keeper:
    """Chooses among the matches of one program."""

    program: Program
    events: EventBuffer
    waiting: list[Held] = field(default_factory=list)
    """Matches that others may still precede."""
    best: dict[Key, Held] = field(default_factory=dict)
    """The best match of each key so far, where a better one may still come."""
    left: dict[Key, Remembered] = field(default_factory=dict)

    @property
    def keep(self) -> Keep:
        """What the query keeps."""
        assert self.program.keep is not None
        return self.program.keep

    @property
    def first(self) -> int | None:
        """The least number of a held event."""
        rows = (row for held in (*self.waiting, *self.best.values()) for row in held.rows if row >= 0)
        return min(rows, default=None)

    @property
    def due(self) -> int | None:
        """The least frontier that releases more matches."""
        moments = [held.end + 1 for held in self.waiting]
        moments += [held.until + 1 for held in self.best.values() if held.until != NEVER]
        return min(moments, default=None)

    # -- matches in, matches out ---------------------------------------------------------------------------

    def all_of(self, found: Iterable[Matches]) -> Iterator[Matches]:
        """Return the kept matches of all matches, which are given in output order."""
        for matches in found:
            chosen = list(self._looked_at(self._described(self._reduced(matches))))
            if chosen:
                yield self._together(chosen)
        rest = sorted(self.best.values())
        self.best, self.left = {}, {}
        if rest:
            yield self._together(rest)

    def up_to(self, found: Iterable[Matches], frontier: int, watermark: int) -> Iterator[Matches]:
        """Return the matches that can be released once all that end before the frontier have been found.

        No event that has arrived is later than the watermark.
        """
        for matches in found:
            self.waiting += self._described(matches)
        ready = sorted(held for held in self.waiting if held.end < frontier)
        self.waiting = [held for held in self.waiting if held.end >= frontier]
        chosen = list(self._looked_at(ready))
        if self.program.measure is Measure.EVENTS:
            self._settle_positions(watermark)
        done = sorted(held for held in self.best.values() if held.until < frontier)
        for held in done:
            del self.best[held.key]
        self.left = {key: known for key, known in self.left.items() if known.until >= frontier}
        chosen = sorted([*chosen, *done])
        if chosen:
            yield self._together(chosen)

    def _looked_at(self, matches: Iterable[Held]) -> Iterator[Held]:
        """Of matches in output order, return those that are certainly kept."""
        kind = self.keep.kind
        for held in matches:
            if kind in WAITING:
                known = self.best.get(held.key)
                if known is None or self._is_better(held, known):
                    self.best[held.key] = held
                continue
            last = self.left.get(held.key)
            if last is None or self._may_follow(held, last):
                self.left[held.key] = self._remembered(held)
                yield held

    def _is_better(self, held: Held, known: Held) -> bool:
        match self.keep.kind:
            case Kept.LONGEST:
                return held.end - held.start > known.end - known.start
            case Kept.SHORTEST:
                return held.end - held.start < known.end - known.start
            case _:
                return True

    def _may_follow(self, held: Held, last: Remembered) -> bool:
        every = self.keep.every
        if self.keep.kind is Kept.DISJOINT:
            start = held.start
            if self._by_arrival:
                start = min(self._position(number) for number in held.rows if number >= 0)
            return start > last.end
        return isinstance(every, int) and held.end - last.end >= every

    @property
    def _by_arrival(self) -> bool:
        return self.program.by_arrival and self.keep.kind is Kept.DISJOINT

    def _remembered(self, held: Held) -> Remembered:
        keep, program = self.keep, self.program
        if keep.every is not None:
            assert isinstance(keep.every, int)
            return Remembered(held.end, held.end + keep.every)
        if keep.kind is Kept.DISJOINT:
            end = max(map(self._position, held.rows)) if self._by_arrival else held.end
            until = held.end + program.window if program.measure is Measure.TIME else held.until
            return Remembered(end, min(until, held.until))
        return Remembered(held.end, held.until)

    def _settle_positions(self, watermark: int) -> None:
        """Note the keys with an event so far back that all matches with it end with events that arrived."""
        if not self.keep.variables:
            return
        seen = self.events.seen - self.program.window
        for key, held in self.best.items():
            if held.until == NEVER and self._is_past(key, seen):
                self.best[key] = held._replace(until=watermark)
        for key, known in self.left.items():
            if known.until == NEVER and self._is_past(key, seen):
                known.until = watermark

    def _is_past(self, key: Key, position: int) -> bool:
        """Whether an event of the key is so far back that no match with it can come."""
        places = [place for place, item in enumerate(self.keep.per) if isinstance(item, str)]
        return any(key[place] is not None and key[place] < position for place in places)

    def _reduced(self, matches: Matches) -> Matches:
        """Of matches in output order that agree, leave only the one that can be kept."""
        kind, count = self.keep.kind, matches.count
        if self.keep.every is not None or kind is Kept.DISJOINT or count < _MANY:
            return matches
        codes = [np.asarray(matches.rows[i], np.int64) for i in self.keep.variables]
        codes += [_codes(self._values(matches, item), count) for item in self.keep.expressions]
        numbers = numbered(np.column_stack(codes)) if codes else np.zeros(count, np.int64)
        if kind is Kept.FIRST:
            _, kept = np.unique(numbers, return_index=True)
        elif kind is Kept.LAST:
            _, kept = np.unique(numbers[::-1], return_index=True)
            kept = count - 1 - kept
        else:
            starts, ends = self._spans(matches)
            lengths = (ends - starts) if kind is Kept.SHORTEST else (starts - ends)
            order = np.lexsort((np.arange(count), lengths, numbers))
            _, first = np.unique(numbers[order], return_index=True)
            kept = order[first]
        kept = np.sort(kept)
        return Matches({name: column[kept] for name, column in matches.rows.items()}, len(kept))

    def _spans(self, matches: Matches) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The start and end times of the matches."""
        rows = np.column_stack([np.asarray(matches.rows[name], np.int64) for name in self.program.kept])
        limits = np.iinfo(np.int64)
        ends = np.where(rows < 0, limits.min, self.events.ts[rows]).max(axis=1)
        return np.where(rows < 0, limits.max, self.events.ts[rows]).min(axis=1), ends

    # -- matches as they are held --------------------------------------------------------------------------

    def _described(self, matches: Matches) -> list[Held]:
        """The matches with their keys, spans and events."""
        events, kept = self.events, self.program.kept
        rows = np.column_stack([np.asarray(matches.rows[name], np.int64) for name in kept])
        starts, ends = self._spans(matches)
        numbers = np.where(rows < 0, -1, rows + events.forgotten)
        keys = self._keys(matches)
        until = self._until(matches)
        return [
            Held(end, tuple(row), start, key, last)
            for end, row, start, key, last in zip(
                ends.tolist(), numbers.tolist(), starts.tolist(), keys, until, strict=True
            )
        ]

    def _keys(self, matches: Matches) -> Sequence[Key]:
        columns = [
            self._positions(matches, item)
            if isinstance(item, str)
            else self._values(matches, item).items(matches.count)
            for item in self.keep.per
        ]
        if not columns:
            return [()] * matches.count
        return list(zip(*columns, strict=True))

    def _positions(self, matches: Matches, variable: str) -> list[int | None]:
        rows = np.asarray(matches.rows[variable], np.int64)
        positions = (self.events.pos[rows] + self.events.base).tolist()
        if (rows < 0).any():
            return [None if row < 0 else place for row, place in zip(rows.tolist(), positions, strict=True)]
        return list(positions)

    def _position(self, number: int) -> int:
        return -1 if number < 0 else int(self.events.pos[number - self.events.forgotten]) + self.events.base

    def _values(self, matches: Matches, expression: Any) -> Vector:
        def fetch(variable: str, attribute: str) -> Vector:
            rows = np.asarray(matches.rows[variable], np.int64)
            vector = self.events.attribute(attribute).take(np.maximum(rows, 0))
            missing = rows < 0
            return vector.where(~missing) if missing.any() else vector

        return self.events.evaluator.value(expression, fetch)

    def _until(self, matches: Matches) -> list[int]:
        """The latest end of any match with the same key: one window after an event they share."""
        program = self.program
        latest: npt.NDArray[Any] = np.full(matches.count, NEVER, object)
        if program.measure is Measure.TIME:
            for variable in self.keep.variables:
                rows = np.asarray(matches.rows[variable], np.int64)
                reach = self.events.ts[rows].astype(object) + program.window
                latest = np.where(rows < 0, latest, np.minimum(latest, reach))
        return [int(moment) for moment in latest]

    # -- state ---------------------------------------------------------------------------------------------

    def save(self) -> list[dict[str, Any]]:
        """Save what is held and remembered, with positions in place of events."""
        saved = []
        for what, held in [("waiting", h) for h in self.waiting] + [("best", h) for h in self.best.values()]:
            rows = [self._position(number) for number in held.rows]
            saved.append(_saved(what, held.key, held.end, held.until, held.start, rows))
        return saved + [_saved("left", key, last.end, last.until) for key, last in self.left.items()]

    def load(self, saved: Iterable[Mapping[str, Any]]) -> None:
        """Continue from a saved state, once the events are held again."""
        for row in saved:
            key = tuple(map(_value, json.loads(row["key"])))
            if row["what"] == "left":
                self.left[key] = Remembered(row["end"], row["until"])
                continue
            places = np.array(row["positions"], np.int64)
            found = np.searchsorted(self.events.pos, places - self.events.base) + self.events.forgotten
            numbers = tuple(np.where(places < 0, -1, found).tolist())
            held = Held(row["end"], numbers, row["start"], key, row["until"])
            if row["what"] == "waiting":
                self.waiting.append(held)
            else:
                self.best[key] = held

    def _together(self, chosen: Sequence[Held]) -> Matches:
        rows = np.array([held.rows for held in chosen], np.int64).reshape(len(chosen), -1)
        rows = np.where(rows < 0, -1, rows - self.events.forgotten)
        columns = {name: np.ascontiguousarray(rows[:, place]) for place, name in enumerate(self.program.kept)}
        return Matches(columns, len(chosen))


def _codes(vector: Vector, count: int) -> npt.NDArray[np.int64]:
    """A number for each value, equal only for equal values; -1 for NULL."""
    numbers: dict[Any, int] = {None: -1}
    if vector.length is None or vector.is_arrow or vector.is_object:
        found = [numbers.setdefault(item, len(numbers)) for item in vector.items(count)]
        return np.array(found, np.int64)
    _, codes = np.unique(vector.values, return_inverse=True)
    return np.where(vector.known, codes, -1)


def keep_keys(program: Program, keep: Keep) -> frozenset[str]:
    """The keys of a program on which all matches agree that KEEP compares.

    All events of a match have the same key, so an event that the matches share determines it, and so does its
    attribute of that name.
    """
    bound = [outline.bound.keys() for outline in program.outlines]
    keys = frozenset.intersection(*(outline.keys for outline in program.outlines))
    if any(all(variable in names for names in bound) for variable in keep.variables):
        return keys
    read = {item.name for item in keep.per if isinstance(item, Attribute) and _is_bound(item, bound)}
    return keys & read


def _is_bound(item: Attribute, bound: Iterable[Collection[str]]) -> bool:
    return all(item.variable in names for names in bound)


def _saved(
    what: str, key: Key, end: int, until: int, start: int = 0, positions: Sequence[int] = ()
) -> dict[str, Any]:
    text = json.dumps([{"decimal": str(part)} if isinstance(part, Decimal) else part for part in key])
    return {
        "what": what,
        "key": text,
        "end": end,
        "until": min(until, NEVER),
        "start": start,
        "positions": list(positions),
    }


def _value(part: Any) -> Any:
    return Decimal(part["decimal"]) if isinstance(part, dict) else part


def endless(program: Program) -> str | None:
    """Why a stream can never decide which match to keep; None where it can."""
    keep = program.keep
    if keep is None or keep.kind not in WAITING:
        return None
    if program.measure is Measure.NONE:
        return "without a window another match may come at any time"
    for outline in program.outlines:
        if not any(variable in outline.bound for variable in keep.variables):
            return "matches that agree may come at any time: no event in PER limits them to a window"
    return None


def kept_by_last(program: Program) -> bool:
    """Whether the matches among which KEEP chooses have the same last event."""
    keep = program.keep
    if keep is None:
        return True
    return keep.every is None and all(
        set(keep.variables).issuperset(outline.last) for outline in program.outlines
    )


def kept_by_earlier(program: Program) -> bool:
    """Whether a match is kept unless an earlier one has the same event: by KEEP FIRST for each such event.

    The earlier one ends within a window before it.
    """
    keep = program.keep
    if keep is None or keep.kind is not Kept.FIRST or keep.every is not None:
        return False
    return all(not outline.bound.keys().isdisjoint(keep.variables) for outline in program.outlines)
