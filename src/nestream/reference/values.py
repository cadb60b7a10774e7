"""Computes the value of an expression under a binding of variables to events.

Times and durations are integers in the resolution of the time column. Numbers of any kind are compared by
value, as in Python; a comparison with NULL is not satisfied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from nestream.model.arithmetic import arithmetic
from nestream.model.expression import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    Previous,
)
from nestream.model.functions import FUNCTIONS
from nestream.model.time import computed_constant
from nestream.reference.aggregates import aggregate, asks_before
from nestream.reference.events import Event

Members = Mapping[str, Sequence[Mapping[str, Event]]]


def value(
    expression: Expression,
    binding: Mapping[str, Event],
    per_microsecond: int = 1,
    groups: Members | None = None,
    previous: Mapping[str, Event] | None = None,
) -> Any:
    """The value of the expression; None means NULL, or an attribute of an unbound variable.

    `per_microsecond` is 1000 where times are in nanoseconds. `groups` are the members of each group. Inside
    an aggregate, the binding includes a member, and `previous` is the binding with the previous member.
    """

    def of(part: Expression) -> Any:
        return value(part, binding, per_microsecond, groups, previous)

    match expression:
        case Literal(value=constant):
            return computed_constant(constant, per_microsecond)
        case Attribute(variable=variable, name=name):
            assert variable is not None
            return binding[variable][name] if variable in binding else None
        case Negative(operand=operand):
            return arithmetic("-", 0, of(operand))
        case Arithmetic(operator=operator, left=left, right=right):
            return arithmetic(operator, of(left), of(right))
        case Comparison(operator=operator, operands=operands):
            values = [of(operand) for operand in operands]
            return all(_compare(operator, a, b) for a, b in pairwise(values))
        case Not(operand=operand):
            return of(operand) is not True
        case And(operands=operands):
            return all(of(operand) is True for operand in operands)
        case Or(operands=operands):
            return any(of(operand) is True for operand in operands)
        case In(operand=operand, values=values, negated=negated):
            if negated:
                return all(_compare("!=", of(operand), of(item)) for item in values)
            return any(_compare("=", of(operand), of(item)) for item in values)
        case Between(operand=operand, low=low, high=high, negated=negated):
            middle = of(operand)
            if negated:
                return _compare("<", middle, of(low)) or _compare(">", middle, of(high))
            return _compare(">=", middle, of(low)) and _compare("<=", middle, of(high))
        case IsNull(operand=operand, negated=negated):
            return (of(operand) is None) != negated
        case Call(function=function, arguments=arguments):
            return FUNCTIONS[function].of_row([of(argument) for argument in arguments], per_microsecond)
        case Previous(operands=(operand, *first)):
            if previous is None:
                return of(first[0]) if first else None
            return value(operand, previous, per_microsecond)
        case Aggregate(group=group):
            members = (groups or {}).get(group or "")
            if members is None:  # for a branch that was not taken
                return None
            return aggregate(expression, _values(expression, members, binding, per_microsecond))
    raise AssertionError(f"{expression!r} is not an expression of a plan")


def _values(
    over: Aggregate,
    members: Sequence[Mapping[str, Event]],
    binding: Mapping[str, Event],
    per_microsecond: int,
) -> list[Any]:
    """The operand of an aggregate for each member; EVERY skips a first member that PREV has no value for."""
    found = []
    previous: Mapping[str, Event] | None = None
    for member in members:
        around = {**binding, **member}
        if not (previous is None and over.function == "every" and asks_before(over)):
            found.append(value(over.operand, around, per_microsecond, None, previous))
        previous = around
    return found


def holds(
    formula: Expression,
    binding: Mapping[str, Event],
    per_microsecond: int = 1,
    groups: Members | None = None,
) -> bool:
    """Whether a formula is satisfied; NULL is not."""
    return value(formula, binding, per_microsecond, groups) is True


def _compare(operator: str, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    match operator:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)
