"""The expected number of events, and of rows of joined events, from statistics and a window.

Events are assumed to arrive independently at a steady rate. For k such steps with rates r1..rk, the rows in
order that fit in a window W, over a time T, number

    r1 * ... * rk * (W^(k-1) / (k-1)! * (T - W) + W^k / k!)        for W <= T

since all but the last event lie in the window before it, and one in (k-1)! of their orders is the right one;
the second term is the first window, which is not full. Predicates multiply by their selectivities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nestream.model.expression import (
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    transform,
)
from nestream.model.expression import Attribute as AttributeOf
from nestream.model.text import print_expression
from nestream.model.time import Window, WindowKind
from nestream_papers.optimize.shape import Constraint, Joint, Shape, Step
from nestream_papers.optimize.statistics import Share, Statistics

EQUAL, RANGE = 0.05, 1 / 3
"""The default selectivity of an equality and of an inequality."""
ASSUMED_IN_WINDOW, ASSUMED_WINDOWS = 8.0, 1_000.0
"""Without statistics: the number of events of each type in a window, and the number of windows."""


def named(formula: Expression, labels: dict[str, str]) -> str:
    """A predicate as the text under which its selectivity is kept, with types in place of variables."""

    def renamed(part: Expression) -> Expression:
        if isinstance(part, AttributeOf) and part.variable in labels:
            return AttributeOf(labels[part.variable], part.name)
        return part

    return print_expression(transform(formula, renamed))


def filter_name(step: Step, formula: Expression) -> str:
    """The text of a filter of a step."""
    return named(formula, {"_": step.label})


def joint_name(steps: Sequence[Step], joint: Joint) -> str:
    """The text of a predicate between steps; equal types are distinguished by their order."""
    labels: dict[str, str] = {}
    for place in range(joint.first, joint.last + 1):
        label = steps[place].label
        known = sum(text.partition("#")[0] == label for text in labels.values())
        labels[str(place - joint.first)] = f"{label}#{known + 1}" if known else label
    return named(joint.formula, labels)


@dataclass(frozen=True)
class Rates:
    """Expected numbers over the events that the statistics describe, for one window."""

    statistics: Statistics
    window: Window | None

    @cached_property
    def span(self) -> float:
        """The extent of the events, in the unit of the window."""
        if not self.statistics.counts:
            return ASSUMED_WINDOWS
        if self.window is not None and self.window.kind is WindowKind.EVENTS:
            return max(self.statistics.events, 1.0)
        return max(self.statistics.span, 1.0)

    @cached_property
    def size(self) -> float:
        """The extent of a window; that of the events if it has none."""
        if not self.statistics.counts:
            return 1.0
        if self.window is None or self.window.kind is WindowKind.UNBOUNDED:
            return self.span
        return min(max(float(self.window.size), 1.0), self.span)

    def events(self, step: Step) -> float:
        """How many events a step has."""
        known = self.statistics.counts
        total = self.statistics.count(step.types) if known else ASSUMED_IN_WINDOW * self.span
        for formula in step.filters:
            total *= self.filtered(step, formula)
        return total

    def in_window(self, step: Step) -> float:
        """How many of its events are in a window."""
        return self.events(step) * self.size / self.span

    def rows(self, shape: Shape, first: int, end: int) -> float:
        """The rows of the steps from `first` to `end`, in order and within a window, without constraints."""
        size, span, count = self.size, self.span, end - first
        volume = size ** (count - 1) / math.factorial(count - 1) * (span - size)
        volume += size**count / math.factorial(count)
        for step in shape.steps[first:end]:
            volume *= self.events(step) / span
        for joint in shape.joints:
            if first <= joint.first and joint.last < end:
                volume *= self.joined(shape, joint)
        return volume

    def satisfied(self, shape: Shape, constraint: Constraint) -> float:
        """The share of the rows that pass a constraint.

        The length of the gap is assumed to be exponential, with the mean that the steps leave to each of
        their gaps. Seen from its right end, an event that occurs x times in a mean gap occurs before the gap
        ends with probability x / (1 + x), and the rest of the gap is like the whole. So each event of the
        chain, and then each of what must be absent, contributes such a factor.
        """
        gap = self.size / max(len(shape), 1) / self.span

        def occurs(step: Step) -> float:
            expected = self.events(step) * gap
            if constraint.key is not None:
                expected /= self.domain(constraint.key)
            return expected / (1.0 + expected)

        present = math.prod(map(occurs, constraint.chain))
        return present * (1.0 - math.prod(map(occurs, constraint.absent)) if constraint.absent else 1.0)

    # -- selectivities -------------------------------------------------------------------------------------

    def filtered(self, step: Step, formula: Expression) -> float:
        """The share of a step's events that pass a filter."""
        return self._known(filter_name(step, formula)) or self._guessed(formula)

    def joined(self, shape: Shape, joint: Joint) -> float:
        """The share of the rows that pass a predicate between steps."""
        if joint.equal is not None:
            return 1.0 / max(self.domain(name) for name in joint.equal)
        return self._known(joint_name(shape.steps, joint)) or self._guessed(joint.formula)

    def domain(self, attribute: str) -> float:
        """How many values an attribute takes."""
        return self.statistics.domain(attribute) or 1.0 / EQUAL

    def _known(self, text: str) -> float | None:
        share: Share | None = self.statistics.shares.get(text)
        return share.ratio if share is not None and share.tested else None

    def _guessed(self, formula: Expression) -> float:
        """The selectivity of a predicate that is in no sample, guessed from its form."""
        match formula:
            case And(operands=operands):
                return math.prod(map(self._guessed, operands))
            case Or(operands=operands):
                return 1.0 - math.prod(1.0 - self._guessed(operand) for operand in operands)
            case Not(operand=operand):
                return 1.0 - self._guessed(operand)
            case Comparison(operator="=", operands=operands):
                return self._equal(operands) ** (len(operands) - 1)
            case Comparison(operator="!=", operands=operands):
                return 1.0 - self._equal(operands)
            case In(operand=operand, values=values, negated=negated):
                among = min(1.0, self._equal((operand,)) * len(values))
                return 1.0 - among if negated else among
            case Between(negated=negated):
                return 1.0 - RANGE**2 if negated else RANGE**2
            case IsNull(negated=negated):
                return 1.0 - EQUAL if negated else EQUAL
            case Literal(value=value):
                return 1.0 if value else 0.0
            case _:
                return RANGE

    def _equal(self, operands: Sequence[Expression]) -> float:
        known = [self.statistics.domain(o.name) for o in operands if isinstance(o, AttributeOf)]
        sizes = [size for size in known if size is not None]
        return 1.0 / max(sizes) if sizes else EQUAL
