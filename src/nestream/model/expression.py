"""Expressions over the events of a match: predicates and returned values.

The syntax tree and the plans share one set of nodes; binding resolves the names. A predicate is two-valued: a
comparison with NULL is false, so its negation is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias, get_args

from nestream.model.diagnostics import NOWHERE, Span
from nestream.model.time import Duration

Value: TypeAlias = int | float | str | bool | Duration | datetime | Decimal
"""What a literal may hold. A datetime without a zone is in UTC only if the column has a zone.

Text is never read as a decimal: typing turns a number with a point into one where it meets decimals.
"""

TIME_ATTRIBUTE = "ts"
TYPE_ATTRIBUTE = "type"
"""The names of an event's own time and type in a plan."""
END_ATTRIBUTE = "te"
"""The end of an expression; for an event its time, unless the data has a column of that name."""
PATH_MARK = "\0."
"""In the name of an attribute, separates a struct column from its field, and deeper fields."""
COLUMN_MARK = "\0"
"""In a plan, the prefix of a data column `ts` or `type` that is not the event's own."""


def column_name(attribute: str) -> str:
    """The column of an attribute: the struct, if it is a field."""
    return attribute.partition(PATH_MARK)[0]


@dataclass(frozen=True)
class Literal:
    """A constant."""

    value: Value
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Attribute:
    """`variable.name`: an attribute of an event. `ts` and `type` exist on every event.

    The variable is None only in a WHERE clause before binding. `inner` is also set only before binding: in
    `p.b.x`, where `p` is a group of matches, it is their variable `b`.
    """

    variable: str | None
    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    inner: str | None = None
    own: bool = field(default=False, compare=False, repr=False)
    """Whether `ts` is the time of the event even if the data has another column of that name."""


@dataclass(frozen=True)
class Parameter:
    """`$name`: a value that comes with the query. Binding replaces it by a literal."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Negative:
    """`- operand`."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Arithmetic:
    """`left operator right` with one of + - * / %. Division returns a float; % has the sign of its left."""

    operator: str
    left: Expression
    right: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Comparison:
    """`a operator b`, or a chain of equalities `a = b = c` (only `=` has more than two operands)."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Not:
    """`NOT operand`."""

    operand: Expression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class And:
    """Two or more formulas, all of which hold."""

    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Or:
    """Two or more formulas, at least one of which holds."""

    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class In:
    """`operand [NOT] IN (value, ...)`."""

    operand: Expression
    values: tuple[Expression, ...]
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Between:
    """`operand [NOT] BETWEEN low AND high`, both ends included."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class IsNull:
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Call:
    """`function(argument, ...)`, one of `nestream.model.functions`; the name is in lower case.

    LIKE, MATCHES and CASE are calls too.
    """

    function: str
    arguments: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """`SUM(operand)` over the members of a group, or another of `nestream.model.aggregates`.

    The operand is an expression over one member and the variables around the group. Binding sets the `group`,
    and turns `COUNT(f)`, which counts members, into the count of a constant.
    """

    function: str
    operand: Expression
    distinct: bool = False
    group: str | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Previous:
    """`PREV(x)` or `PREV(x, first)` in an aggregate: the previous member's value; else NULL or `first`."""

    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Equivalence:
    """SASE's `[attribute]` or `[attribute = value]` in a WHERE clause; binding expands it."""

    attribute: str
    value: Literal | Parameter | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Expression: TypeAlias = (
    Literal
    | Attribute
    | Parameter
    | Negative
    | Arithmetic
    | Comparison
    | Not
    | And
    | Or
    | In
    | Between
    | IsNull
    | Call
    | Aggregate
    | Previous
    | Equivalence
)


_FIELDS = {kind: tuple(item.name for item in fields(kind)) for kind in get_args(Expression)}
_PARTS = {"operand", "left", "right", "low", "high"}
"""The fields with a part of an expression; those that are tuples have several."""


def children(expression: Expression) -> Iterator[Expression]:
    """The direct parts of an expression, from left to right."""
    for name in _FIELDS[type(expression)]:
        value = getattr(expression, name)
        if isinstance(value, tuple):
            yield from value
        elif name in _PARTS:
            yield value


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def attributes(expression: Expression) -> Iterator[Attribute]:
    """Every attribute that the expression reads, in text order."""
    return (part for part in walk(expression) if isinstance(part, Attribute))


def variables(expression: Expression) -> frozenset[str]:
    """The variables that the expression mentions."""
    return frozenset(part.variable for part in attributes(expression) if part.variable is not None)


def aggregates(expression: Expression) -> Iterator[Aggregate]:
    """Every aggregate in the expression, in text order."""
    return (part for part in walk(expression) if isinstance(part, Aggregate))


def plain_variables(expression: Expression) -> frozenset[str]:
    """The variables that the expression mentions outside aggregates: those of single events."""
    if isinstance(expression, Aggregate):
        return frozenset()
    if isinstance(expression, Attribute):
        return frozenset(() if expression.variable is None else (expression.variable,))
    return frozenset().union(*map(plain_variables, children(expression)))


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The formulas that must all hold for the expression to hold; an AND is split."""
    if isinstance(expression, And):
        for operand in expression.operands:
            yield from conjuncts(operand)
    else:
        yield expression


def constants(expression: Expression) -> list[object]:
    """The values of all literals of an expression."""
    return [part.value for part in walk(expression) if isinstance(part, Literal)]


def transform(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to every part, innermost first."""
    changes: dict[str, object] = {}
    for name in _FIELDS[type(expression)]:
        value = getattr(expression, name)
        if isinstance(value, tuple):
            changes[name] = tuple(transform(part, change) for part in value)
        elif name in _PARTS:
            changes[name] = transform(value, change)
    return change(replace(expression, **changes) if changes else expression)  # type: ignore[arg-type]
