"""Random syntax trees: every operator, every kind of predicate, strange names, all clauses.

The trees are those that a text can say: AND is not directly inside AND, a minus before a number is part of
the number, an attribute without variable stands only in WHERE, and there `[id]` is a condition, not a value.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from struct import pack, unpack
from typing import TypeVar

from hypothesis import strategies as st

from nestream.language.ast import (
    AnyWindow,
    Composite,
    Exists,
    InnerWindow,
    IntoType,
    KeepClause,
    Negation,
    Operator,
    Pattern,
    Primitive,
    Query,
    ReturnExpression,
    ReturnVariable,
    Step,
    WindowParameter,
)
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import (
    PATH_MARK,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Equivalence,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    Parameter,
    Value,
)
from nestream.model.functions import FUNCTIONS
from nestream.model.keep import Kept
from nestream.model.text import RESERVED_WORDS
from nestream.model.time import MICROSECONDS, UNBOUNDED, Duration, Window, WindowKind
from tests.generators.choices import Choices, DrawnChoices, RandomChoices, chance, pick, weighted

T = TypeVar("T")

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%")
_GREATEST = 2**63 - 1
_SIGNS = "ab _-.`\"'“”‘’()[],:!=<>+*/%\\\n\t&é²ſKı名∧∨∃"
_PLAIN_NAMES = (
    "a",
    "b",
    "x",
    "A",
    "ins-type",
    "Create-profile",
    "_1",
    "a1-2",
    "units",
    "minutes",
    "s",
    "abs",
    "keep",
    "FIRST",
    "last",
    "per",
    "EVERY",
    "next",
    "DIRECTLY",
    "interval",
)
_NEAR_NAMES = (
    "ſeq",
    "wıthin",
    "a-",
    "-a",
    "a--b",
    "1a",
    "`",
    "``",
    "a`b",
    "a.b",
    "Operating Room",
    "é-1",
    "²",
    "ﬁ",
    "名前",
    "\n",
    " ",
)


class Trees:
    """Makes trees out of choices."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def several(self, make: Callable[[], T], least: int, most: int) -> tuple[T, ...]:
        return tuple(make() for _ in range(self.choices.integer(least, most)))

    def perhaps(self, make: Callable[[], T], percent: int = 50) -> T | None:
        return make() if chance(self.choices, percent) else None

    def text(self, least: int = 0) -> str:
        return "".join(self.several(self.character, least, 5))

    def character(self) -> str:
        if chance(self.choices, 20):
            code = self.choices.integer(1, 0x2FFFF)
            return chr(code) if not 0xD800 <= code <= 0xDFFF else "?"
        return pick(self.choices, _SIGNS)

    def name(self) -> str:
        kind = weighted(self.choices, (6, "plain"), (2, "reserved"), (2, "near"), (2, "any"))
        if kind == "plain":
            return pick(self.choices, _PLAIN_NAMES)
        if kind == "reserved":
            word = pick(self.choices, RESERVED_WORDS)
            return pick(self.choices, [word, word.lower(), word.title()])
        return pick(self.choices, _NEAR_NAMES) if kind == "near" else self.text(least=1)

    # ---- constants ----

    def integer(self) -> int:
        edges = (0, 1, -1, _GREATEST, -_GREATEST - 1, -_GREATEST)
        if chance(self.choices, 30):
            return pick(self.choices, edges)
        return self.choices.integer(-_GREATEST - 1, _GREATEST)

    def real(self) -> float:
        if chance(self.choices, 50):
            return pick(self.choices, (0.5, 0.0, -0.0, 1e16, 1e-7, 1.5e300, 5e-324, -2.25))
        value: float = unpack("d", pack("Q", self.choices.integer(0, 2**64 - 1)))[0]
        return value if value - value == 0 else 1.0

    def duration(self) -> Duration:
        if chance(self.choices, 50):
            return Duration(
                pick(self.choices, tuple(MICROSECONDS.values())) * self.choices.integer(-100, 100)
            )
        return Duration(self.choices.integer(-_GREATEST, _GREATEST))

    def moment(self) -> datetime:
        zone = pick(self.choices, (None, UTC, timezone(timedelta(minutes=self.choices.integer(-1439, 1439)))))
        second = self.choices.integer(0, 250_000_000_000)
        microsecond = self.perhaps(lambda: self.choices.integer(0, 999_999)) or 0
        return datetime(10, 1, 1, tzinfo=zone) + timedelta(seconds=second, microseconds=microsecond)

    def literal(self) -> Literal:
        makers: tuple[Callable[[], Value], ...] = (
            self.integer,
            lambda: self.choices.integer(0, 9),
            self.real,
            self.text,
            lambda: chance(self.choices, 50),
            self.duration,
            self.moment,
        )
        return Literal(pick(self.choices, makers)())

    # ---- formulas ----

    def formula(self, depth: int = 3, where: bool = False, value: bool = False) -> Expression:
        if depth == 0 or chance(self.choices, 35):
            return self.leaf(where, value)

        def part() -> Expression:
            return self.formula(depth - 1, where, value=True)

        def condition() -> Expression:
            return self.formula(depth - 1, where, value)

        choose = self.choices
        match choose.integer(0, 10):
            case 0:
                return Comparison(pick(choose, _COMPARISONS), (part(), part()))
            case 1:
                return Comparison("=", self.several(part, 2, 4))
            case 2:
                return _flat(And, self.several(condition, 2, 4))
            case 3:
                return _flat(Or, self.several(condition, 2, 4))
            case 4:
                return Not(condition())
            case 5:
                return Arithmetic(pick(choose, _ARITHMETIC), part(), part())
            case 6:
                operand = part()
                return operand if _is_number(operand) else Negative(operand)
            case 7:
                return In(part(), self.several(part, 1, 3), chance(choose, 50))
            case 8:
                return Between(part(), part(), part(), chance(choose, 50))
            case 9:
                return IsNull(part(), chance(choose, 50))
            case _:
                function = pick(choose, [f for f in FUNCTIONS.values() if not f.is_implicit])
                return Call(function.name, self.several(part, function.least, function.most or 3))

    def leaf(self, where: bool, value: bool) -> Expression:
        if where and chance(self.choices, 50):
            if value or chance(self.choices, 50):
                return Attribute(None, self.name())
            return Equivalence(self.name(), self.perhaps(self.literal))
        if chance(self.choices, 5):
            return self.parameter()
        if chance(self.choices, 50):
            return self.literal()
        if chance(self.choices, 15):
            path = self.several(self.name, 1, 2)
            return Attribute(self.name(), PATH_MARK.join(path), inner=self.name())
        return Attribute(self.name(), self.name())

    # ---- patterns and queries ----

    def primitive(self) -> Primitive:
        types = self.several(self.name, 1, 3) if chance(self.choices, 20) else (self.name(),)
        if chance(self.choices, 10):
            types = (ANY_TYPE,)
        variable = self.perhaps(self.name, 80)
        step = Step.ANY if variable is None or chance(self.choices, 80) else pick(self.choices, tuple(Step))
        return Primitive(types, variable, self.predicates(), step=step)

    def predicates(self) -> tuple[Expression, ...]:
        return self.several(self.formula, 0, 2) if chance(self.choices, 40) else ()

    def pattern(self, depth: int = 3) -> Pattern:
        if depth == 0 or chance(self.choices, 30):
            return self.primitive()

        def part() -> Pattern:
            return self.pattern(depth - 1)

        match weighted(self.choices, (5, "operator"), (3, "negation"), (1, "exists")):
            case "operator":
                operator = pick(self.choices, tuple(Operator))
                windows = self.several(lambda: InnerWindow(self.window()), 0, 1)
                name = self.perhaps(self.name, 25)
                parts = self.several(part, 1, 4)
                return Composite(operator, parts, self.predicates(), windows=windows, variable=name)
            case "negation":
                return Negation(part())
            case _:
                return Exists(self.several(self.name, 1, 3), part())

    def window(self) -> AnyWindow:
        if chance(self.choices, 10):
            return WindowParameter(self.parameter(), self.perhaps(lambda: "EVENTS"))
        kind = pick(self.choices, tuple(WindowKind))
        if kind is WindowKind.UNBOUNDED:
            return UNBOUNDED
        return Window(kind, self.choices.integer(1, pick(self.choices, (100, 10**10, _GREATEST))))

    def return_item(self) -> ReturnVariable | ReturnExpression:
        if chance(self.choices, 50):
            return ReturnVariable(self.name())
        return ReturnExpression(self.formula(2), self.perhaps(self.name, 80))

    def parameter(self) -> Parameter:
        return Parameter(pick(self.choices, ("floor", "w", "per", "_1")))

    def keep(self) -> KeepClause:
        def item() -> str | Expression:
            return self.name() if chance(self.choices, 50) else self.formula(2)

        every: Literal | Parameter | None = None
        if chance(self.choices, 40):
            length = self.choices.integer(1, 100)
            every = Literal(Duration(length)) if chance(self.choices, 50) else Literal(length)
            every = self.parameter() if chance(self.choices, 20) else every
        return KeepClause(pick(self.choices, tuple(Kept)), self.several(item, 0, 3), every)

    def query(self) -> Query:
        returns = self.several(self.return_item, 0, 3)
        return Query(
            pattern=self.pattern(),
            where=self.perhaps(lambda: self.formula(where=True)),
            window=self.perhaps(self.window, 70),
            returns=returns,
            into=self.perhaps(lambda: IntoType(self.name()), 30) if returns else None,
            limit=self.perhaps(lambda: self.choices.integer(0, _GREATEST), 20),
            keep=self.perhaps(self.keep, 30),
            sase=chance(self.choices, 30),
        )


def _is_number(expression: Expression) -> bool:
    return (
        isinstance(expression, Literal)
        and isinstance(expression.value, int | float | Duration)
        and not isinstance(expression.value, bool)
    )


def _flat(kind: type[And] | type[Or], operands: tuple[Expression, ...]) -> Expression:
    flattened: list[Expression] = []
    for operand in operands:
        flattened.extend(operand.operands if isinstance(operand, kind) else [operand])
    return kind(tuple(flattened))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Queries drawn from Hypothesis, which shrinks them."""
    return Trees(DrawnChoices(draw)).query()


@st.composite
def where_formulas(draw: st.DrawFn) -> Expression:
    """Formulas of a WHERE clause, drawn from Hypothesis."""
    return Trees(DrawnChoices(draw)).formula(where=True)


def random_query(seed: int) -> Query:
    """The query of a seed: many of them are made fast."""
    return Trees(RandomChoices(Random(seed))).query()
