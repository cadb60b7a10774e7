"""KEEP in a plan: which of the matches that agree on something are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from nestream.model.diagnostics import NOWHERE, Span
from nestream.model.expression import Expression
from nestream.model.text import print_expression, print_name
from nestream.model.time import Duration


class Kept(StrEnum):
    """Which of the matches that agree is kept."""

    FIRST = "FIRST"
    LAST = "LAST"
    LONGEST = "LONGEST"
    SHORTEST = "SHORTEST"
    DISJOINT = "DISJOINT"
    """Each match that begins after the last kept one has ended."""


WAITING = frozenset((Kept.LAST, Kept.LONGEST, Kept.SHORTEST))
"""The kinds that are decided only when no other match can come."""


@dataclass(frozen=True)
class Keep:
    """`KEEP kind PER ... EVERY ...`. Matches agree if they have the same events and values of `per`.

    A string in `per` is a variable: its event counts. With `every`, a duration, the first match that ends
    that long after the last kept one is also kept.
    """

    kind: Kept
    per: tuple[str | Expression, ...] = ()
    every: Duration | int | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def expressions(self) -> Iterator[Expression]:
        """The expressions that matches agree on."""
        return (item for item in self.per if not isinstance(item, str))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables whose events matches agree on."""
        return tuple(item for item in self.per if isinstance(item, str))

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Keep:
        """The same, with its expressions changed."""
        return replace(self, per=tuple(item if isinstance(item, str) else change(item) for item in self.per))

    def __str__(self) -> str:
        items = (print_name(item) if isinstance(item, str) else print_expression(item) for item in self.per)
        per = ", ".join(items)
        every = "" if self.every is None else f" EVERY {self.every}"
        return f"{self.kind}{f' PER {per}' if per else ''}{every}"
