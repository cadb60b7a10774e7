"""Random predicates and values over the events of given variables, with the columns of the histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from tests.generators.choices import Choices, chance, pick, some, weighted

ORDERS = ("<", "<=", ">", ">=", "!=", "=")


def equal(left: Attribute, right: Expression) -> Comparison:
    """`left = right`."""
    return Comparison("=", (left, right))


def single(choices: Choices, name: str) -> Expression:
    """A predicate on one event that often holds."""

    def of(attribute: str) -> Attribute:
        return Attribute(name, attribute)

    def number() -> Literal:
        return Literal(choices.integer(0, 3))

    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (5, lambda: Comparison(pick(choices, (">=", "<=", "<", ">", "!=")), (of("x"), number()))),
        (1, lambda: equal(of("x"), number())),
        (2, lambda: equal(of("id"), Literal(1))),
        (2, lambda: In(of("x"), tuple(some(choices, _NUMBERS, 2, 3)), chance(choices, 30))),
        (2, lambda: Between(of("x"), Literal(1), Literal(choices.integer(1, 3)), chance(choices, 30))),
        (2, lambda: IsNull(of(pick(choices, ("x", "id", "f", "s", "flag"))), chance(choices, 75))),
        (2, lambda: Comparison(pick(choices, ("!=", "=")), (of("s"), pick(choices, _STRINGS)))),
        (1, lambda: In(of("s"), (Literal("u"), Literal("U")), chance(choices, 30))),
        (1, lambda: Comparison("<=", (of("s"), Literal("u")))),
        (2, lambda: equal(of("flag"), Literal(bool(choices.integer(0, 1))))),
        (1, lambda: of("flag")),
        (2, lambda: Comparison(pick(choices, ("<=", ">", "!=")), (of("f"), pick(choices, _FLOATS)))),
        (1, lambda: Comparison("!=", (Arithmetic("%", of("x"), Literal(2)), Literal(1)))),
        (1, lambda: Comparison("<=", (Arithmetic("*", of("x"), Literal(2)), Literal(4)))),
        (1, lambda: Comparison("<", (Negative(of("x")), Literal(0)))),
        (1, lambda: Comparison("<=", (Call("abs", (Arithmetic("-", of("x"), Literal(2)),)), Literal(1)))),
        (1, lambda: equal2(Call("coalesce", (of("x"), Literal(1))), Literal(1))),
        (1, lambda: equal2(Call(pick(choices, ("lower", "upper")), (of("s"),)), pick(choices, _STRINGS))),
        (1, lambda: Comparison(">=", (Call("length", (of("s"),)), Literal(1)))),
        (1, lambda: Comparison("!=", (of("type"), Literal("A")))),
        (1, lambda: Comparison(">", (Arithmetic("/", of("f"), of("x")), Literal(0.5)))),
        (1, lambda: Comparison("<=", (of("ts"), Literal(choices.integer(5, 12))))),
    )
    return weighted(choices, *kinds)()


def equal2(left: Expression, right: Expression) -> Comparison:
    """`left = right`, for any two values."""
    return Comparison("=", (left, right))


_NUMBERS: Sequence[Expression] = [Literal(number) for number in range(4)]
_STRINGS: Sequence[Expression] = [Literal("u"), Literal("v"), Literal("U")]
_FLOATS: Sequence[Expression] = [Literal(1.0), Literal(0.5), Literal(1)]


def pair(choices: Choices, a: str, b: str) -> Expression:
    """A predicate that relates two events."""

    def number(name: str) -> Expression:
        value: Expression = Attribute(name, weighted(choices, (6, "x"), (2, "f"), (1, "id"), (1, "ts")))
        if chance(choices, 25):
            value = Arithmetic(
                pick(choices, ("+", "-", "*", "%", "/")), value, Literal(choices.integer(1, 2))
            )
        return value

    difference = Arithmetic("-", Attribute(a, "ts"), Attribute(b, "ts"))
    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (6, lambda: Comparison(pick(choices, ORDERS), (Attribute(a, "x"), Attribute(b, "x")))),
        (3, lambda: equal(Attribute(a, "id"), Attribute(b, "id"))),
        (1, lambda: Comparison("!=", (Attribute(a, "id"), Attribute(b, "id")))),
        (3, lambda: Comparison(pick(choices, ORDERS), (number(a), number(b)))),
        (2, lambda: Comparison("<=", (difference, Literal(choices.integer(0, 4))))),
        (1, lambda: Comparison(">=", (difference, Literal(-choices.integer(1, 4))))),
        (1, lambda: Comparison("<=", (Call("abs", (difference,)), Literal(choices.integer(1, 4))))),
        (2, lambda: Comparison(pick(choices, ("=", "!=", "<")), (Attribute(a, "s"), Attribute(b, "s")))),
        (1, lambda: equal(Attribute(a, "flag"), Attribute(b, "flag"))),
        (1, lambda: equal(Attribute(a, "x"), Attribute(b, "f"))),
        (1, lambda: Between(Attribute(a, "x"), Literal(0), number(b), chance(choices, 30))),
        (1, lambda: In(Attribute(a, "x"), (Attribute(b, "x"), Literal(1)), chance(choices, 30))),
        (1, lambda: Comparison(">", (Arithmetic("+", number(a), number(b)), Literal(1)))),
        (1, lambda: equal2(Call("coalesce", (Attribute(a, "x"), Attribute(b, "x"))), Literal(1))),
    )
    return weighted(choices, *kinds)()


def formula(choices: Choices, local: Sequence[str], visible: Sequence[str], depth: int = 1) -> Expression:
    """A predicate that mentions at least one local variable, and perhaps other visible ones."""
    first = pick(choices, local)
    others = [name for name in visible if name != first]
    if depth > 0 and chance(choices, 20):
        parts = tuple(formula(choices, local, visible, depth - 1) for _ in range(choices.integer(2, 3)))
        kinds: tuple[tuple[int, Expression], ...] = (
            (6, Or(parts)),
            (2, And(parts)),
            (1, Not(Or(parts))),
            (1, Not(And(parts))),
        )
        return weighted(choices, *kinds)
    if chance(choices, 5):
        return Not(formula(choices, local, visible, 0))
    if len(others) > 1 and chance(choices, 8):
        second, third = some(choices, others, 2, 2)
        total = Arithmetic("+", Attribute(first, "x"), Attribute(second, "x"))
        return Comparison(pick(choices, (">=", "<")), (total, Attribute(third, "x")))
    if others and chance(choices, 55):
        second = pick(choices, others)
        return pair(choices, first, second) if chance(choices, 50) else pair(choices, second, first)
    return single(choices, first)


def returned(choices: Choices, names: Sequence[str]) -> Expression:
    """A value to return; not a plain variable."""
    first, second = pick(choices, names), pick(choices, names)
    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (6, lambda: Attribute(first, pick(choices, ("id", "x", "ts", "f", "s", "flag", "type", "n")))),
        (2, lambda: Arithmetic("-", Attribute(first, "ts"), Attribute(second, "ts"))),
        (1, lambda: Arithmetic(pick(choices, ("+", "/")), Attribute(first, "x"), Attribute(second, "f"))),
        (1, lambda: Arithmetic("%", Attribute(first, "x"), Literal(2))),
        (1, lambda: Comparison("<", (Attribute(first, "x"), Attribute(second, "x")))),
        (1, lambda: IsNull(Attribute(first, "x"))),
        (1, lambda: Call("upper", (Attribute(first, "s"),))),
        (1, lambda: Call("coalesce", (Attribute(first, "x"), Attribute(second, "x"), Literal(-1)))),
        (1, lambda: Negative(Attribute(first, "f"))),
    )
    return weighted(choices, *kinds)()
