"""The syntax tree of a query, in any of the three dialects, before its names are resolved.

Spans point into the query text and are ignored in comparisons, so `parse(print(tree)) == tree`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

from nestream.model.diagnostics import NOWHERE, Span
from nestream.model.expression import Expression, Literal, Parameter
from nestream.model.keep import Kept
from nestream.model.time import Window


class Dialect(StrEnum):
    """The three dialects of the language."""

    NEEL = "neel"
    NEEL_PLUS = "neel+"
    SASE = "sase"


class Operator(StrEnum):
    """The operators that compose event expressions."""

    SEQ = "SEQ"
    AND = "AND"
    OR = "OR"


class Step(StrEnum):
    """What may come between an event of a SEQ and the component before it."""

    ANY = ""
    """Anything."""
    NEXT = "NEXT"
    """No other event that could take its place."""
    DIRECTLY = "DIRECTLY"
    """No event at all."""


@dataclass(frozen=True)
class WindowParameter:
    """A window whose length comes with the query: `WITHIN $length`, `WITHIN $count EVENTS`."""

    parameter: Parameter
    unit: str | None = None

    def __str__(self) -> str:
        return f"${self.parameter.name}" + (f" {self.unit}" if self.unit else "")


AnyWindow: TypeAlias = Window | WindowParameter


@dataclass(frozen=True)
class Primitive:
    """`A x : p`: an event of a type, with `ANY(A, B) x` of one of several types, with `ANY x` of any type.

    `types` is just `ANY_TYPE` for an event of any type. `variable` is None if the query omits it.
    `predicates` are the formulas written with it.
    """

    types: tuple[str, ...]
    variable: str | None = None
    predicates: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    step: Step = Step.ANY


@dataclass(frozen=True)
class Composite:
    """`SEQ(...)`, `AND(...)`, `OR(...)` or infix `A a OR B b`, with the predicates after its components.

    `windows` are its own windows: `(SEQ(...) WITHIN 10 s)`. `variable` is its name: `SEQ(...) s`.
    """

    operator: Operator
    components: tuple[Pattern, ...]
    predicates: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    windows: tuple[InnerWindow, ...] = ()
    variable: str | None = None


@dataclass(frozen=True)
class InnerWindow:
    """`WITHIN` inside the pattern."""

    window: AnyWindow
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Repeated:
    """A group: `A+ a`, `A{2,5} a`, or an expression that repeats, `(SEQ(B b, C c))+ p`.

    A primitive that repeats keeps its own variable, and `variable` is None; `variable` names a group of
    matches. `most` is None without an upper limit. Predicates written with the group belong to the body.
    """

    body: Pattern
    least: int
    most: int | None
    variable: str | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Negation:
    """`! body`. Predicates written with the negation belong to the body."""

    body: Pattern
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Exists:
    """`EXISTS x, y : body`: the body's matches without those variables."""

    variables: tuple[str, ...]
    body: Pattern
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Pattern: TypeAlias = Primitive | Composite | Repeated | Negation | Exists


@dataclass(frozen=True)
class ReturnVariable:
    """A variable in RETURN."""

    variable: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class ReturnExpression:
    """`expression AS name` in RETURN; `name` is None if the query has none (binding rejects that)."""

    expression: Expression
    name: str | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class IntoType:
    """`INTO Violation` after the items of RETURN: the type of the events that the matches become."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class KeepClause:
    """`KEEP FIRST PER a, b.x EVERY 1 hour`; a string in `per` is a variable."""

    kind: Kept
    per: tuple[str | Expression, ...] = ()
    every: Literal | Parameter | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Query:
    """A whole query.

    `sase` says that the text is in the SASE dialect, which changes the meaning of the window; `dialect` is
    the recognised dialect. `window` is None without WITHIN, `returns` is empty without RETURN.
    """

    pattern: Pattern
    where: Expression | None = None
    window: AnyWindow | None = None
    returns: tuple[ReturnVariable | ReturnExpression, ...] = ()
    limit: int | Parameter | None = None
    keep: KeepClause | None = None
    into: IntoType | None = None
    sase: bool = False
    dialect: Dialect = field(default=Dialect.NEEL, compare=False)
    window_span: Span = field(default=NOWHERE, compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@runtime_checkable
class HasTree(Protocol):
    """Represents a query without being text, such as the objects of `nestream.objects`."""

    def __nestream_query__(self) -> Query:
        """The syntax tree of the query."""


def parts(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all patterns nested in it, outermost first, from left to right."""
    yield pattern
    match pattern:
        case Composite(components=components):
            for component in components:
                yield from parts(component)
        case Repeated(body=body) | Negation(body=body) | Exists(body=body):
            yield from parts(body)
        case Primitive():
            return
