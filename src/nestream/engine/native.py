"""The native program: physical operators, and how they run over the held events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nestream.engine.block import has_groups
from nestream.engine.evaluation import Evaluation, Window
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.explain import explain_native, explain_native_json
from nestream.engine.operator import EvaluationCache, Execution, Matches, Measured, Operator, Span
from nestream.engine.operators.chain import Chain
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import Asked, PhysicalOperator
from nestream.engine.program import Decided, Program
from nestream.engine.shown_groups import ShownGroups
from nestream.model.keep import Keep

_FEW = 4096
"""Up to this number of events, sampling does not pay: if they have too many matches, they are halved."""


@dataclass(frozen=True)
class NativeProgram(Program):
    """A query as physical operators, whose matches together are its matches."""

    physical: tuple[PhysicalOperator, ...]
    shown: ShownGroups | None = None

    @property
    def extent(self) -> Window:
        """The window: how far apart the events of a match may be."""
        return Window(self.measure, self.window, self.exclusive)

    @property
    def has_groups(self) -> bool:
        """Whether any of its blocks has a group."""
        return any(has_groups(one.block) for one in self.physical)

    def start(self, limit: int) -> NativeExecution:
        """Start the program; between batches it keeps nothing but the events."""
        return NativeExecution(self, limit)

    def explain(self, measured: Sequence[Measured] = ()) -> str:
        """The operators as an indented tree."""
        return explain_native(self.physical, self, measured)

    def explain_json(self, measured: Sequence[Measured] = ()) -> dict[str, Any]:
        """The operators as plain data."""
        return {"engine": explain_native_json(self.physical, self)}


class NativeExecution(Execution):
    """A native program at work in one matcher."""

    def __init__(self, program: NativeProgram, limit: int) -> None:
        self.program = program
        self.limit = limit
        self.evaluation: Evaluation | None = None
        """The last evaluation: groups are completed over the same events."""
        self._state = (0, 0)

    def operators(self, cache: EvaluationCache, *, at_once: bool, first: int = 0) -> list[Operator]:
        """Each physical operator over the events as they are now."""
        program = self.program
        since = int(np.searchsorted(cache.events.pos, first)) if first > 0 else 0
        evaluation = Evaluation(cache, program.extent, self.limit, program.memory, since)
        self.evaluation = evaluation
        self._state = _state(cache.events)
        return [
            RunningOperator(physical, evaluation, by_last=at_once or decided is not Decided.WINDOW)
            for physical, decided in zip(program.physical, program.decided, strict=True)
        ]

    def completed(self, matches: Matches, cache: Callable[[], EvaluationCache]) -> Iterator[Matches]:
        """Add the members and aggregates of groups that the output shows."""
        shown = self.program.shown
        if shown is None:
            return iter((matches,))
        evaluation, program = self.evaluation, self.program
        if evaluation is None or self._state != _state(evaluation.events):  # KEEP held them for a while
            evaluation = Evaluation(cache(), program.extent, self.limit, program.memory)
            self.evaluation = evaluation
            self._state = _state(evaluation.events)
        return shown.completed(evaluation, [one.block for one in program.physical], matches)


def _state(events: EventBuffer) -> tuple[int, int]:
    """A value that changes whenever events arrive or are forgotten."""
    return events.forgotten, events.seen


class RunningOperator(Operator):
    """A physical operator over one state of the events, run by ranges of positions."""

    def __init__(self, physical: PhysicalOperator, evaluation: Evaluation, *, by_last: bool) -> None:
        self.physical = physical
        self.evaluation = evaluation
        self.by_last = by_last

    def _rows(self, span: Span) -> Span:
        first, end = np.searchsorted(self.evaluation.events.pos, span)
        return int(first), int(end)

    def _asked(self, first: int, end: int) -> Asked:
        return Asked(*self._rows((first, end)), self.by_last)

    def run(self, first: int, end: int) -> Iterator[Matches]:
        """The matches decided in a range of positions."""
        found = self.physical.run(self.evaluation, self._asked(first, end))
        return (Matches(part.rows, part.count, in_order=part.in_order) for part in found)

    def promising(self, first: int, end: int) -> int:
        """How many positions at a time are expected to stay within the budget."""
        asked = self._asked(first, end)
        if asked.end - asked.first <= _FEW:  # a round of a stream: a sample would take as long as everything
            return end - first
        expected = self.physical.expected(self.evaluation, asked)
        if expected is None:
            return end - first
        return max(1, int((end - first) * min(1.0, 0.7 * self.evaluation.limit / max(expected, 1.0))))

    def within(self, first: int, end: int, spans: Mapping[str, Span]) -> Iterator[Matches]:
        """The matches of `run` whose variables have positions in some spans."""
        rows = {name: self._rows(span) for name, span in spans.items()}
        join = LateralJoin(self.physical.block)
        found = join.within(self.evaluation, self._asked(first, end), rows)
        return (Matches(part.rows, part.count) for part in found)

    def chosen(self, keep: Keep, first: int, end: int) -> Matches | None:
        """The matches that KEEP keeps and that end in a range; None if the others must be built."""
        if not isinstance(self.physical, Chain):
            return None
        found = self.physical.chosen(self.evaluation, keep, self._asked(first, end))
        return None if found is None else Matches(found.rows, found.count, in_order=found.in_order)

    def counts(self, first: int, end: int) -> Iterator[int]:
        """Count the matches of a range of positions, in parts."""
        return self.physical.counts(self.evaluation, self._asked(first, end))
