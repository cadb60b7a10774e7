"""The engine's own program: what the matcher needs to know of a query, and the operators that run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nestream.engine.block import Block
from nestream.engine.evaluation import Bindings, Evaluation, Shared, Window
from nestream.engine.operators.derived import MatchStair
from nestream.engine.operators.operator import Asked, Operator
from nestream.engine.program import Decided, LeafSpec, Measure


@dataclass(frozen=True)
class NativeProgram:
    """Everything the engine needs to know of a query.

    A match of the query is a match of one of its operators, and is known when `decided` says so. `attributes` are
    the attributes that expressions read; `kept` the variables of a match that the output keeps, `distinct`
    whether several bindings may give the same ones. `looks_back` says that a negation looks before the match:
    then two windows are held where matches wait for one. Times are integers in one resolution.
    """

    leaves: tuple[LeafSpec, ...]
    operators: tuple[Operator, ...]
    decided: tuple[Decided, ...]
    measure: Measure
    window: int
    exclusive: bool
    by_arrival: bool
    attributes: tuple[str, ...]
    kept: tuple[str, ...]
    distinct: bool
    looks_back: bool
    memory: int = 1 << 29

    @property
    def types(self) -> tuple[str, ...]:
        """The event types that the program reads."""
        return tuple(dict.fromkeys(name for leaf in self.leaves for name in leaf.types))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that its operators run."""
        return tuple(operator.block for operator in self.operators)

    @property
    def spans(self) -> Window:
        """How far apart the events of a match may be."""
        return Window(self.measure, self.window, self.exclusive)


def key_classes(programs: Iterable[NativeProgram]) -> dict[str, str]:
    """The attributes that are compared with each other, each with the first of its class."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            name = parent[name]
        return name

    for left, right in _compared(block for program in programs for block in program.blocks):
        parent[find(right)] = find(left)
    return {name: find(name) for name in parent}


def _compared(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    for block in blocks:
        yield from ((equality.left[1], equality.right[1]) for equality in block.equalities)
        keys = list((block.key or {}).values())
        for key in keys:
            yield from zip(keys[0], key, strict=True)
        for negation in block.negations:
            yield from _compared((negation.block,))
            derived = negation.derived
            if derived is None:
                continue
            yield from zip(derived.key, (attribute for _, attribute in negation.link), strict=True)
            if isinstance(derived.stair, MatchStair):
                yield from _compared((derived.stair.operator.block,))


class NativeRun:
    """An operator over the events of one evaluation, asked by ranges of positions."""

    def __init__(self, operator: Operator, evaluation: Evaluation, *, by_last: bool) -> None:
        self.operator = operator
        self.evaluation = evaluation
        self.by_last = by_last

    def _asked(self, first: int, end: int) -> Asked:
        rows = np.searchsorted(self.evaluation.events.pos, (first, end))
        return Asked(int(rows[0]), int(rows[1]), self.by_last)

    def promising(self, first: int, end: int, length: int) -> int:
        """How many positions at a time promise to stay within the budget."""
        expected = self.operator.expected(self.evaluation, self._asked(first, end))
        if expected is None:
            return end - first
        return max(1, int((end - first) * min(1.0, 0.7 * self.evaluation.limit / max(expected, 1.0))))

    def matches(self, first: int, end: int, length: int) -> Iterator[Bindings]:
        """The matches that are decided in a range of positions."""
        return self.operator.run(self.evaluation, self._asked(first, end))


def runs_of(
    program: NativeProgram, shared: Shared, limit: int, *, at_once: bool, since: int
) -> list[NativeRun]:
    """The operators of a program over the events; `since` is the first row that a new match may end with."""
    evaluation = Evaluation(shared, program.spans, limit, since)
    return [
        NativeRun(operator, evaluation, by_last=at_once or decided is not Decided.WINDOW)
        for operator, decided in zip(program.operators, program.decided, strict=True)
    ]
