"""Decides how the events of a batch are split over partitions, so that no match is lost or found twice.

- by key: all the events of a query share a key attribute, so each key is matched on its own;
- by time: slices of several windows, each with the events that its matches and negations can see around it; a
  slice gives the matches that end in it;
- by key and time: the slices of each key on their own, for a key with a large share of the events or a long
  history; on request, or where the statistics of the events show such a key;
- not at all: count windows (a position counts every event) and unbounded windows without a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nestream.engine.program import Block, Decided, Measure, Negation, Program

KINDS = ("key", "time", "key+time", "single")
WINDOWS_A_SLICE = 16
"""How many windows long a time slice is, unless told: the overlap is then a sixteenth of the events."""


@dataclass(frozen=True)
class Partitioning:
    """How a batch is partitioned, and why.

    `key` names the attribute to partition by; `length` is that of a time slice, with `before` and `after` the
    time around it that its matches can see. `statistics` says what is known of the events, where they had a
    part in the choice.
    """

    kind: str
    reason: str
    key: str | None = None
    length: int = 0
    before: int = 0
    after: int = 0
    statistics: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "key":
                return f"by key {self.key}: {self.reason}"
            case "time":
                around = f"with {self.before} before and {self.after} after"
                return f"by time, slices of {self.length} {around}: {self.reason}"
            case "key+time":
                around = f"with {self.before} before and {self.after} after"
                return f"by key {self.key} and time, slices of {self.length} {around}: {self.reason}"
            case _:
                return f"one partition: {self.reason}"


def choose(program: Program, wanted: str | None = None, slice_length: int | None = None) -> Partitioning:
    """The partitioning of a program; `wanted`, one of `KINDS`, overrides the choice."""
    if slice_length is not None and slice_length < 1:
        raise ValueError(f"a slice_length of {slice_length}: a time slice is at least 1 long")
    choices = possible(program, slice_length)
    if wanted is None:
        return next(iter(choices.values()))
    if wanted not in KINDS:
        raise ValueError(f"unknown partitioning {wanted!r}: one of {', '.join(KINDS)}")
    if wanted not in choices:
        raise ValueError(f"this query cannot be partitioned by {wanted}, only by: {', '.join(choices)}")
    return choices[wanted]


def possible(program: Program, slice_length: int | None = None) -> dict[str, Partitioning]:
    """The partitionings that a program can have, by their kinds; the first is taken unless told."""
    return {choice.kind: choice for choice in _possible(program, slice_length)}


def _possible(program: Program, slice_length: int | None) -> Iterator[Partitioning]:
    if program.measure is Measure.EVENTS:
        yield Partitioning("single", "a count window counts the positions of all events")
        return
    key = common_key(program)
    if key is not None:
        yield Partitioning("key", "every event of a match and of its negations has the same value", key=key)
    if program.measure is Measure.TIME and not program.distinct:
        window = max(program.window, 1)
        waits = Decided.WINDOW in program.decided
        by_time = Partitioning(
            "time",
            "there is no key for all its events" if key is None else "asked for",
            length=slice_length or WINDOWS_A_SLICE * window,
            before=window,
            after=window if waits else 0,
        )
        yield by_time
        if key is not None:
            yield replace(by_time, kind="key+time", key=key)
    reason = "without window and key every event can meet every other"
    if program.distinct:
        reason = "a projection without key must see all its matches together"
    yield Partitioning("single", reason)


def common_key(program: Program) -> str | None:
    """The attribute that is equal in all the events of a match and of its negations, where there is one."""
    candidates: set[str] | None = None
    for block in program.blocks:
        found = _keys(block)
        candidates = found if candidates is None else candidates & found
    return min(candidates) if candidates else None


def _keys(block: Block) -> set[str]:
    """The attributes that could serve for a block: equal in all its variables, negations and witnesses."""
    if len(block.leaves) == 1 and not block.constraints:
        return set()
    found: set[str] | None = None
    if block.key is not None:
        found = {names[0] for names in zip(*block.key.values(), strict=True) if len(set(names)) == 1}
    elif len(block.leaves) == 1:
        (name,) = block.leaves
        found = {
            attribute
            for negation in block.negations
            if negation.link is not None and negation.link[0] == name
            for attribute in negation.link[1]
        }
        found |= {attribute for w in block.witnesses for step in w.steps for _, attribute in step.equal_to}
    return {attribute for attribute in found or () if _all_linked(block, attribute)}


def _all_linked(block: Block, attribute: str) -> bool:
    """Whether all the events of a block's constraints equal the match in an attribute."""
    steps = (step for witness in block.witnesses for step in witness.steps)
    return all(_linked(negation, attribute) for negation in block.negations) and all(
        (attribute, attribute)
        in ((own, term[1]) for own, term in zip(step.attributes, step.equal_to, strict=True))
        for step in steps
    )


def _linked(negation: Negation, attribute: str) -> bool:
    """Whether all the events of a negation, at any depth, equal the outer match in an attribute."""
    if negation.key is None or negation.link is None or attribute not in negation.link[1]:
        return False
    place = negation.link[1].index(attribute)
    if any(attributes[place] != attribute for attributes in negation.key.values()):
        return False
    return _all_linked(negation.block, attribute)
