"""The protocol between the matcher and the operators of a program.

The matcher starts a program once and keeps its `Execution` from batch to batch. Whenever matches can be
decided, it asks the execution for its operators over the held events, and each operator for the matches in a
range of positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nestream.engine.event_buffer import EventBuffer
from nestream.model.expression import Aggregate
from nestream.model.keep import Keep
from nestream.model.output import Members
from nestream.model.vector import Vector

T = TypeVar("T")
AnyRows = npt.NDArray[np.signedinteger[Any]]
"""Row numbers in 32 or 64 bits."""
Span = tuple[int, int]
"""Positions `[first, end)`."""


@dataclass
class Matches:
    """Some matches: for each variable, the rows of its events."""

    rows: Mapping[str, AnyRows]
    count: int
    members: Mapping[str, Members] = field(default_factory=dict, kw_only=True)
    """The members of the groups that are shown, or that may extend beyond the other events."""
    aggregates: Mapping[Aggregate, Vector] = field(default_factory=dict, kw_only=True)
    """The aggregates that RETURN computes, one value per match."""
    in_order: bool = field(default=False, kw_only=True)
    """Whether they are ordered by their last events, then by their rows in the order of `rows`.

    If so, the matches that the operator yields next follow them in that order.
    """


@dataclass(frozen=True)
class Measured:
    """What one run of an operator found, and how long it took."""

    matches: int
    seconds: float


class Operator(ABC):
    """Finds matches over the events held, by the position of their last event, or of their first.

    Positions are relative to the base of the event buffer. An operator is valid for one state of the events.
    """

    @abstractmethod
    def run(self, first: int, end: int) -> Iterator[Matches]:
        """The matches decided in a range of positions, in pieces that stay within the budget."""

    def promising(self, first: int, end: int) -> int:
        """How many positions at a time are expected to stay within the budget."""
        return end - first

    @abstractmethod
    def within(self, first: int, end: int, spans: Mapping[str, Span]) -> Iterator[Matches]:
        """The matches of `run` whose variables have positions in some spans."""

    def counts(self, first: int, end: int) -> Iterator[int]:
        """Count the matches of a range, in parts; override it where counting need not build them."""
        size = max(1, self.promising(first, end))
        parts = (self.run(at, min(at + size, end)) for at in range(first, end, size))
        return (matches.count for part in parts for matches in part)

    def chosen(self, keep: Keep, first: int, end: int) -> Matches | None:
        """The matches that KEEP keeps and that end in a range of positions, in any order.

        None where the others must be built to know them.
        """
        return None


class EvaluationCache:
    """What is computed once for all programs evaluated over the same state of the events.

    `key_classes` maps the attributes that these programs compare to the first of their class; `several` says
    that there is more than one program, so that sharing work pays off.
    """

    def __init__(self, events: EventBuffer, key_classes: Mapping[str, str], *, several: bool = False) -> None:
        self.events = events
        self.key_classes = key_classes
        self.several = several
        self._made: dict[Hashable, Any] = {}

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return the value of that name, made on first use."""
        if name not in self._made:
            self._made[name] = make()
        found: T = self._made[name]
        return found

    def __enter__(self) -> EvaluationCache:
        return self

    def __exit__(self, *_: object) -> None:
        """Release what was made: it refers to this cache, so Python would free it much later."""
        self._made.clear()


class Execution(ABC):
    """A running program in one matcher, with whatever it keeps between batches."""

    @abstractmethod
    def operators(self, cache: EvaluationCache, *, at_once: bool, first: int = 0) -> Sequence[Operator]:
        """An operator for each outline of the program, over the events as they are now.

        They yield matches that are decided by an event at position `first` or later.

        Matches are selected by their last event, unless their outline waits for the window of the first event
        and they are not all decided `at_once`.
        """

    def completed(self, matches: Matches, cache: Callable[[], EvaluationCache]) -> Iterator[Matches]:
        """Add the members and aggregates of groups that the output shows to the matches."""
        return iter((matches,))

    def counters(self) -> list[tuple[tuple[str, ...], Any]]:
        """What it has counted since the start: the variables of each counting part, with its counters."""
        return []
