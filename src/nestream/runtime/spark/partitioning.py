"""Decides how the events of a batch are split over partitions, so that no match is lost or found twice.

- by key: all the events of a query share a key attribute, so each key is matched on its own;
- by time: slices of several windows, each with the events that its matches and negations can see around it; a
  slice gives the matches that end in it. A partition has neighbouring slices, which are matched together;
- by key and time: the slices of each key on their own, for a key with a large share of the events or a long
  history; on request, or where the statistics of the events show such a key;
- not at all: count windows (a position counts every event) and unbounded windows without a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nestream.engine.program import Decided, Measure, Scope
from nestream.model.expression import PATH_MARK

KINDS = ("key", "time", "key+time", "single")
WINDOWS_A_SLICE = 16
"""How many windows long a time slice is at least: the overlap is then at most a sixteenth of the events."""
LONGEST = (1 << 63) - 1
"""The length of the longest slice: a number of 64 bits."""


@dataclass(frozen=True)
class Partitioning:
    """How a batch is partitioned, and why.

    `key` names the attribute to partition by; `length` is that of a time slice, with `before` and `after` the
    time around it that its matches can see. `statistics` says what is known of the events, where it
    influenced the choice.
    """

    kind: str
    reason: str
    key: str | None = None
    length: int = 0
    before: int = 0
    after: int = 0
    statistics: str = ""

    @property
    def _key(self) -> str:
        return (self.key or "").replace(PATH_MARK, ".")

    def __str__(self) -> str:
        match self.kind:
            case "key":
                return f"by key {self._key}: {self.reason}"
            case "time":
                around = f"with {self.before} before and {self.after} after"
                return f"by time, slices of {self.length} {around}: {self.reason}"
            case "key+time":
                around = f"with {self.before} before and {self.after} after"
                return f"by key {self._key} and time, slices of {self.length} {around}: {self.reason}"
            case _:
                return f"one partition: {self.reason}"


def choose(program: Scope, wanted: str | None = None, slice_length: int | None = None) -> Partitioning:
    """Choose the partitioning of a program; `wanted`, one of `KINDS`, overrides the choice."""
    if slice_length is not None and slice_length < 1:
        raise ValueError(f"a slice_length of {slice_length}: a time slice is at least 1 long")
    choices = possible(program, slice_length)
    if wanted is None:
        return next(iter(choices.values()))
    if wanted not in KINDS:
        raise ValueError(f"unknown partitioning {wanted!r}: use one of {', '.join(KINDS)}")
    if wanted not in choices:
        raise ValueError(f"this query cannot be partitioned by {wanted}, only by: {', '.join(choices)}")
    return choices[wanted]


def possible(program: Scope, slice_length: int | None = None) -> dict[str, Partitioning]:
    """The possible partitionings of a program by kind; the first is the default."""
    return {choice.kind: choice for choice in _possible(program, slice_length)}


def _possible(program: Scope, slice_length: int | None) -> Iterator[Partitioning]:
    if program.measure is Measure.EVENTS:
        yield Partitioning("single", "a count window counts the positions of all events")
        return
    key = common_key(program)
    if program.keep_keys is not None:
        if key is not None:
            yield Partitioning(
                "key", "every event of a match has the same value, and PER determines it", key=key
            )
        yield Partitioning(
            "single", "KEEP compares all matches: its PER does not determine a key of the query"
        )
        return
    if key is not None:
        yield Partitioning("key", "every event of a match and of its negations has the same value", key=key)
    if program.measure is Measure.TIME and not program.distinct:
        window = max(program.window, 1)
        waits = Decided.WINDOW in program.decided
        by_time = Partitioning(
            "time",
            "there is no key for all its events" if key is None else "requested",
            length=min(slice_length or WINDOWS_A_SLICE * window, LONGEST),
            before=window,
            after=window if waits else 0,
        )
        yield by_time
        if key is not None:
            yield replace(by_time, kind="key+time", key=key)
    reason = "without a window or a key, any two events can be in one match"
    if program.distinct:
        reason = "a projection without a key must see all its matches together"
    yield Partitioning("single", reason)


def keeps(program: Scope, plan: Partitioning) -> bool:
    """Whether the events of a program can be split in a way that was chosen for another."""
    if plan.kind == "single":
        return True
    return plan.kind == "key" and program.measure is not Measure.EVENTS and plan.key in common_keys(program)


def common_key(program: Scope) -> str | None:
    """The first attribute that is equal in all events, if there is one."""
    return min(common_keys(program), default=None)


def common_keys(program: Scope) -> set[str]:
    """The attributes that are equal in all the events of a match and of its negations.

    With KEEP, only those that all compared matches agree on.
    """
    candidates: set[str] | None = None
    for outline in program.outlines:
        candidates = set(outline.keys) if candidates is None else candidates & outline.keys
    if candidates is not None and program.keep_keys is not None:
        candidates &= program.keep_keys
    return candidates or set()
