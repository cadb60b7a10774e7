"""Compiles expressions to Python functions over the events of one match, for one event at a time.

They are built once per query. The values are those of `docs/reference/semantics.md`, as in the columnar
evaluator: None is NULL, times and durations are integers, and a comparison with NULL is false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

from nestream.model.arithmetic import arithmetic
from nestream.model.expression import (
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
)
from nestream.model.functions import FUNCTIONS
from nestream.model.time import computed_constant

Row: TypeAlias = tuple[int, int, dict[str, Any]]
"""An event: its time, its position and its columns. Rows sort by time and arrival."""
Binding: TypeAlias = dict[str, Row]
"""The events of some variables."""
Value: TypeAlias = Callable[[Binding], Any]
Read: TypeAlias = Callable[[Row], Any]
"""The value of one attribute of an event."""

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class OwnFunctionError(Exception):
    """A user's own function, which works on whole columns: it may fail, or be slow."""


class Formulas:
    """Turns expressions into functions; `read` returns the function that reads an attribute of an event."""

    def __init__(self, read: Callable[[str], Read], per_microsecond: int) -> None:
        self.read = read
        self.per_microsecond = per_microsecond

    def test(self, formula: Expression) -> Callable[[Binding], bool]:
        """A function that returns whether a binding satisfies a formula."""
        value = self.value(formula)
        return value if isinstance(formula, Comparison) else lambda binding: value(binding) is True

    def value(self, expression: Expression) -> Value:
        """A function that returns the value of an expression for a binding; None for NULL."""
        match expression:
            case Literal(value=constant):
                fixed = computed_constant(constant, self.per_microsecond)
                return lambda binding: fixed
            case Attribute(variable=variable, name=name):
                read, bound = self.read(name), variable or ""
                return lambda binding: read(binding[bound]) if bound in binding else None
            case Negative(operand=operand):
                negated = self.value(operand)
                return lambda binding: arithmetic("-", 0, negated(binding))
            case Arithmetic(operator=sign, left=left, right=right):
                one, other = self.value(left), self.value(right)
                return lambda binding: arithmetic(sign, one(binding), other(binding))
            case Comparison(operator=sign, operands=operands):
                return _all([self._compare(sign, a, b) for a, b in pairwise(operands)])
            case Not(operand=operand):
                held = self.test(operand)
                return lambda binding: not held(binding)
            case And(operands=operands):
                return _all([self.test(operand) for operand in operands])
            case Or(operands=operands):
                return _any([self.test(operand) for operand in operands])
            case In(operand=operand, values=values, negated=negated):
                if negated:
                    return _all([self._compare("!=", operand, value) for value in values])
                return _any([self._compare("=", operand, value) for value in values])
            case Between(operand=operand, low=low, high=high, negated=negated):
                if negated:
                    return _any([self._compare("<", operand, low), self._compare(">", operand, high)])
                return _all([self._compare(">=", operand, low), self._compare("<=", operand, high)])
            case IsNull(operand=operand, negated=negated):
                value = self.value(operand)
                return lambda binding: (value(binding) is None) != negated
            case Call(function=function, arguments=arguments):
                called, parts = FUNCTIONS[function], [self.value(argument) for argument in arguments]
                if called.is_own:
                    raise OwnFunctionError(function)
                return lambda binding: called.of_row([part(binding) for part in parts], self.per_microsecond)
        raise AssertionError(f"{expression!r} is not an expression of a plan")

    def _compare(self, sign: str, left: Expression, right: Expression) -> Callable[[Binding], bool]:
        one, other, compare = self.value(left), self.value(right), _COMPARE[sign]

        def compared(binding: Binding) -> bool:
            a, b = one(binding), other(binding)
            return a is not None and b is not None and bool(compare(a, b))

        return compared


def _all(tests: list[Callable[[Binding], bool]]) -> Callable[[Binding], bool]:
    if len(tests) == 1:
        return tests[0]
    return lambda binding: all(test(binding) for test in tests)


def _any(tests: list[Callable[[Binding], bool]]) -> Callable[[Binding], bool]:
    if len(tests) == 1:
        return tests[0]
    return lambda binding: any(test(binding) for test in tests)
