"""The interface of operators: run over a range of rows, count, and describe themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from nestream.engine.block import Block
from nestream.engine.evaluation import Bindings, Evaluation


@dataclass(frozen=True)
class Asked:
    """Which matches are wanted: those whose last (or first) event has a row in `[first, end)`."""

    first: int
    end: int
    by_last: bool = True


class PhysicalOperator(Protocol):
    """Finds the matches of a block, over any state of the events.

    It returns exactly the matches of the block: it applies the predicates and negations of the block itself,
    and leaves out matches in which one event is two variables that the block keeps apart. `LateralJoin` does
    all of this for any block, so an operator may hand over what it cannot find, such as matches by their
    first event. `grouped` adds the block's groups.

    It holds no state. What it builds for an evaluation is kept in that evaluation, and the event buffer keeps
    earlier events for as long as a window can reach them.
    """

    block: Block

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches, in pieces of at most about `evaluation.limit`, in any order.

        If a piece is marked `in_order`, it and the next ones are sorted as `Bindings.in_order` says.
        """
        ...

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """Estimate the number of matches from a sample; None where only building them tells."""
        ...

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """Count the matches, piece by piece, building only what is needed."""
        ...

    @property
    def name(self) -> str:
        """Its name in plans."""
        ...
