"""What every operator can do: run over a range of rows, count, and say what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from nestream.engine.block import Block
from nestream.engine.evaluation import Bindings, Evaluation


@dataclass(frozen=True)
class Asked:
    """Which matches are asked for: those whose last (or first) event has a row in `[first, end)`."""

    first: int
    end: int
    by_last: bool = True


class PhysicalOperator(Protocol):
    """Finds the matches of a block, over any state of the events.

    It holds no state: what it builds over the events of an evaluation is kept there, and what it needs of
    earlier events is in the buffer, which keeps them while a window can reach them.
    """

    block: Block

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches, piece by piece."""
        ...

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """About how many matches there are, from a sample; None where only building them tells."""
        ...

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """How many matches there are, piece by piece, without building what it need not."""
        ...

    @property
    def name(self) -> str:
        """What it is called in plans."""
        ...
