"""Grouped: the matches of another operator whose groups have a valid number of members and pass."""

from __future__ import annotations

from collections.abc import Iterator

from nestream.engine.evaluation import Bindings, Evaluation
from nestream.engine.operators.chain import Chain
from nestream.engine.operators.group_filter import GroupFilter, filters
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.engine.operators.operator import Asked, PhysicalOperator


class Grouped:
    """An operator that finds candidates, and the groups that filter them."""

    def __init__(self, candidates: PhysicalOperator) -> None:
        self.candidates = candidates
        self.block = candidates.block
        self.filter = GroupFilter(self.block, self.block, LateralJoin, counted_by(candidates))

    @property
    def name(self) -> str:
        """Its name in plans."""
        return f"Grouped {self.candidates.name}"

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The candidates that pass, piece by piece."""
        for found in self.candidates.run(evaluation, asked):
            passed = self.filter.passed(evaluation, found)
            if passed.count:
                yield passed

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """How many there are if all candidates pass."""
        return self.candidates.expected(evaluation, asked)

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """Count the candidates that pass, piece by piece."""
        return (found.count for found in self.run(evaluation, asked))


def grouped(candidates: PhysicalOperator) -> PhysicalOperator:
    """The operator, with a group filter where groups can reject a candidate."""
    return Grouped(candidates) if filters(candidates.block, counted_by(candidates)) else candidates


def counted_by(candidates: PhysicalOperator) -> frozenset[str]:
    """The groups whose members an operator counts itself."""
    if not isinstance(candidates, Chain):
        return frozenset()
    return frozenset(one.group.variable for found in candidates.counted.values() for one in found)
