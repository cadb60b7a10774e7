"""The aggregates over a group: their names, operands and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nestream.model.functions.define import NUMBERS, ORDERED
from nestream.model.schema import Kind

ANYTHING: Final = frozenset(kind for kind in Kind if kind is not Kind.OTHER)


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: the kinds that it takes, also in words, and the kind that it returns (None: the same)."""

    name: str
    takes: frozenset[Kind]
    said: str
    gives: Kind | None
    text: str


AGGREGATES: Final = {
    one.name: one
    for one in (
        AggregateFunction("count", ANYTHING, "a value", Kind.INTEGER, "how many members, or values"),
        AggregateFunction(
            "sum", NUMBERS | {Kind.DURATION}, "a number or a duration", None, "the sum, exact for integers"
        ),
        AggregateFunction("avg", NUMBERS | {Kind.DURATION}, "a number or a duration", Kind.FLOAT, "the mean"),
        AggregateFunction("min", ORDERED, "a value that has an order", None, "the least value"),
        AggregateFunction("max", ORDERED, "a value that has an order", None, "the greatest value"),
        AggregateFunction("stddev", NUMBERS, "a number", Kind.FLOAT, "the sample standard deviation"),
        AggregateFunction("first", ANYTHING, "a value", None, "the first value that is not NULL"),
        AggregateFunction("last", ANYTHING, "a value", None, "the last value that is not NULL"),
        AggregateFunction(
            "every",
            frozenset((Kind.BOOLEAN,)),
            "a condition",
            Kind.BOOLEAN,
            "whether the condition holds for every member",
        ),
    )
}
"""The aggregates by lower-case name."""
OF_DURATIONS: Final = "avg duration"
"""The mean of durations, which is a duration: typing replaces `avg` by it."""


def kind_of(function: str, operand: Kind) -> Kind:
    """The kind of an aggregate over values of a kind."""
    return Kind.DURATION if function == OF_DURATIONS else AGGREGATES[function].gives or operand
