"""Random aggregates over a group, as predicates and as returned values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nestream.model.expression import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Or,
    Previous,
    transform,
)
from tests.generators.choices import Choices, chance, pick, weighted
from tests.generators.formulas import ORDERS, pair, single
from tests.generators.shapes import Shape


def judged(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    """A condition on a group that often holds."""
    value = _value(choices, group, visible)
    number = Literal(choices.integer(0, 4))
    outer = Attribute(pick(choices, visible), "x") if visible else number
    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (6, lambda: Comparison(pick(choices, (">=", "<=", "!=")), (value, number))),
        (3, lambda: Comparison(pick(choices, ORDERS), (value, outer))),
        (4, lambda: _every(choices, group, visible)),
        (1, lambda: IsNull(value, chance(choices, 50))),
        (1, lambda: Or((Comparison(">", (value, number)), _every(choices, group, visible)))),
        (1, lambda: Comparison("=", (_over("first", group, choices, "s"), Literal("u")))),
        (1, lambda: Comparison("<=", (value, _count(group)))),
    )
    return weighted(choices, *kinds)()


def returned_aggregate(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    """A value of a group for RETURN."""
    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (6, lambda: _value(choices, group, visible)),
        (2, lambda: _over(pick(choices, ("first", "last", "min", "max")), group, choices, "s")),
        (1, lambda: _over(pick(choices, ("first", "last")), group, choices, "flag")),
        (2, lambda: _every(choices, group, visible)),
        (1, lambda: Arithmetic("+", _value(choices, group, visible), Literal(1))),
    )
    return weighted(choices, *kinds)()


def _value(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    """A number of a group."""
    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (5, lambda: _count(group)),
        (4, lambda: _over(pick(choices, ("sum", "min", "max", "avg")), group, choices, "x")),
        (2, lambda: _over(pick(choices, ("first", "last", "count", "stddev")), group, choices, "x")),
        (2, lambda: _over(pick(choices, ("sum", "avg", "min", "max")), group, choices, "f")),
        (2, lambda: Aggregate("count", _member(choices, group, pick(choices, ("x", "s", "f"))), True)),
        (2, lambda: Aggregate(pick(choices, ("sum", "max")), _relation(choices, group, visible))),
        (2, lambda: Aggregate(pick(choices, ("max", "min", "sum")), _pause(choices, group, visible))),
    )
    return weighted(choices, *kinds)()


def _relation(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    own = _member(choices, group, "x")
    other = Attribute(pick(choices, visible), "x") if visible and chance(choices, 70) else Literal(2)
    return Arithmetic(pick(choices, ("-", "+", "*")), own, other)


def _pause(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    """The time since the member before."""
    first = [Attribute(pick(choices, visible), "ts")] if visible and chance(choices, 50) else []
    own = _member(choices, group, "ts")
    return Arithmetic("-", own, Previous((own, *first)))


def _every(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    own = _member(choices, group, pick(choices, ("x", "x", "f")))
    first = [Attribute(pick(choices, visible), "x")] if visible and chance(choices, 50) else []
    if own.name == "f" and first:
        first = [Attribute(first[0].variable, "f")]
    kinds: tuple[tuple[int, Callable[[], Expression]], ...] = (
        (3, lambda: Comparison(pick(choices, (">=", ">", "!=")), (own, Previous((own, *first))))),
        (3, lambda: _of_member(choices, group, single(choices, _leaf(choices, group)))),
        (2, lambda: _related(choices, group, visible)),
    )
    return Aggregate("every", weighted(choices, *kinds)())


def _related(choices: Choices, group: Shape, visible: Sequence[str]) -> Expression:
    leaf = _leaf(choices, group)
    if not visible:
        return _of_member(choices, group, single(choices, leaf))
    return _of_member(choices, group, pair(choices, leaf, pick(choices, visible)))


def _leaf(choices: Choices, group: Shape) -> str:
    return pick(choices, [leaf.name for leaf in group.positive()])


def _member(choices: Choices, group: Shape, attribute: str) -> Attribute:
    """An attribute of a member: `f.x`, or `p.b.x` of a group of matches."""
    leaf = _leaf(choices, group)
    if group.group_name is None:
        return Attribute(leaf, attribute)
    return Attribute(group.group_name, attribute, inner=leaf)


def _of_member(choices: Choices, group: Shape, formula: Expression) -> Expression:
    """The formula with the group named before the variables of its members, at times."""
    own = {leaf.name for leaf in group.positive()}

    def named(part: Expression) -> Expression:
        if isinstance(part, Attribute) and part.variable in own and group.group_name is not None:
            return Attribute(group.group_name, part.name, inner=part.variable)
        return part

    return transform(formula, named)


def _over(function: str, group: Shape, choices: Choices, attribute: str) -> Expression:
    return Aggregate(function, _member(choices, group, attribute))


def _count(group: Shape) -> Expression:
    return Aggregate("count", Attribute(None, group.group_name or group.name))
