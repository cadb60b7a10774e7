"""Random queries that bind: the whole language, in three dialects, for the columns of the histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import strategies as st

import nestream
from nestream.language.ast import KeepClause, Query, ReturnExpression, ReturnVariable
from nestream.language.printer import print_query
from nestream.model.expression import (
    And,
    Attribute,
    Comparison,
    Equivalence,
    Expression,
    Literal,
    Or,
    transform,
    variables,
)
from nestream.model.keep import Kept
from nestream.model.time import UNBOUNDED, Window, WindowKind
from tests.generators.aggregates import judged, returned_aggregate
from tests.generators.choices import Choices, DrawnChoices, RandomChoices, chance, pick, some, weighted
from tests.generators.formulas import formula, returned
from tests.generators.shapes import Shape, Style, shape

GENERAL = Style()
"""Everything."""

FLAT = Style(
    max_depth=1,
    most_positive=4,
    most_leaves=6,
    roots=((1, "SEQ"),),
    exists=0,
    keys=((1, "all"),),
    predicates=10,
    sase=10,
    windows=((9, "number"), (1, "events")),
    returns=10,
    limit=0,
)
"""A SEQ of events with simple negations, joined on id."""

KEYED = Style(
    max_depth=4,
    most_positive=4,
    nested=8,
    nested_negation=80,
    negation=45,
    any_of_types=4,
    roots=((8, "SEQ"), (2, "AND")),
    exists=0,
    keys=((1, "all"),),
    predicates=10,
    sase=5,
    windows=((8, "number"), (1, "events"), (1, "unbounded")),
    returns=10,
    limit=0,
)
"""Nested negations joined on id."""


SASE = Style(
    max_depth=1,
    most_positive=4,
    most_leaves=5,
    roots=((1, "SEQ"),),
    exists=0,
    keys=((5, "two"), (2, "all"), (1, "some"), (1, "none")),
    predicates=45,
    sase=90,
    windows=((7, "number"), (2, "events"), (1, "unbounded")),
    returns=10,
    limit=2,
)
"""The queries of SASE: sequences with negations, equivalence tests on two attributes, and predicates."""


GROUPS = Style(
    max_depth=3,
    most_positive=4,
    most_leaves=6,
    negation=50,
    groups=75,
    nested=22,
    nested_negation=25,
    exists=0,
    predicates=30,
    sase=20,
    returns=45,
    roots=((70, "SEQ"), (20, "AND"), (10, "OR")),
)
"""Groups everywhere, with aggregates."""

COUNTED = Style(
    max_depth=1,
    most_positive=5,
    most_leaves=7,
    negation=40,
    groups=80,
    linked=85,
    any_of_types=4,
    roots=((1, "SEQ"),),
    exists=0,
    keys=((5, "none"), (2, "all"), (2, "some")),
    predicates=10,
    sase=10,
    windows=((6, "number"), (4, "unbounded")),
    returns=20,
    keep=5,
)
"""Sequences whose groups and negations have attributes of their own in common with the event after them."""

_LONG = Window(WindowKind.NUMBER, 10_000)
"""A window that any history fits."""


def make_query(choices: Choices, style: Style) -> str:
    """The text of a query that binds."""
    root = shape(choices, style)
    sase = chance(choices, style.sase)
    where: list[Expression] = []
    keys = weighted(choices, *style.keys)
    if sase and keys != "none" and _all_comparable(root) and chance(choices, 50):
        where.append(Equivalence("id"))
        if keys == "two":
            where.append(Equivalence(pick(choices, ("x", "s", "flag"))))
        keys = "none"
    if sase and chance(choices, 8):
        where.append(Equivalence("id", Literal(1)))
    for place, predicate in _judged(choices, root) if style.groups else ():
        place.predicates.append(predicate)
    predicates = [
        *_keys(choices, root, keys),
        *_links(choices, root, style),
        *_predicates(choices, root, style),
    ]
    for place, predicate in predicates:
        if sase and _fits_where(predicate, root) and chance(choices, 80):
            where.append(_bare(choices, predicate, root))
        else:
            _write(choices, place, predicate)
    returns = _returns(choices, root) if chance(choices, style.returns) else ()
    query = Query(
        pattern=root.pattern(),
        where=_where(choices, where, root),
        window=_window(choices, root, style),
        returns=returns,
        limit=choices.integer(1, 3) if chance(choices, style.limit) else None,
        keep=_keep(choices, root, returns) if chance(choices, style.keep) else None,
        sase=sase,
    )
    text = print_query(query)
    if query.where is not None and ("[" in text or style.groups) and not _binds(text):
        # an equivalence test over events that no expression sees together; its other conditions go too
        text = print_query(replace(query, where=None))
    if style.groups and not _binds(text):  # a span of an expression that a group beside it does not see
        return make_query(choices, style)
    return text


def _binds(text: str) -> bool:
    try:
        nestream.query(text)
    except nestream.QueryError:
        return False
    return True


# -- predicates --------------------------------------------------------------------------------------------


def _keys(choices: Choices, root: Shape, mode: str) -> list[tuple[Shape, Expression]]:
    """Equalities that join the events on one attribute, or on two; with `some`, not everywhere."""
    if mode == "none":
        return []
    found: list[tuple[Shape, Expression]] = []
    attributes = ("id", pick(choices, ("x", "s", "flag"))) if mode == "two" else ("id",)
    for attribute in attributes:
        for place in root.walk():
            if not place.is_place or (mode == "some" and chance(choices, 50)):
                continue
            outer = place.outer()
            anchor = [pick(choices, outer)] if outer and _apart(place) else []
            for local in place.local():
                if place.kind != "OR":
                    found += [(place, part) for part in _joined(choices, [*anchor, *local], attribute)]
    return found


def _apart(place: Shape, top: Shape | None = None) -> bool:
    """Whether the places around this one, up to `top`, cannot see its variables, so that it sees theirs."""
    if place is top or place.parent is None:
        return False
    return place.apart or place.parent.kind == "OR" or _apart(place.parent, top)


def _joined(choices: Choices, names: Sequence[str], attribute: str) -> list[Expression]:
    """The variables' attributes are equal: as a chain, pair by pair, or all with the first."""
    parts = tuple(Attribute(name, attribute) for name in names)
    if len(parts) < 2:
        return []
    match weighted(choices, (3, "chain"), (1, "pairs"), (1, "star")):
        case "chain":
            return [Comparison("=", parts)]
        case "pairs":
            return [Comparison("=", parts[at : at + 2]) for at in range(len(parts) - 1)]
        case _:
            return [Comparison("=", (part, parts[0])) for part in parts[1:]]


def _links(choices: Choices, root: Shape, style: Style) -> list[tuple[Shape, Expression]]:
    """Equalities of an event that is negated or repeated with the event after it, on any attribute."""
    found: list[tuple[Shape, Expression]] = []
    for place in root.walk():
        for part, after in pairwise(place.components if place.kind == "SEQ" else ()):
            sees = part.kind == after.kind == "event" and part.apart and after.name in part.outer()
            if sees and chance(choices, style.linked):
                attribute = pick(choices, ("id", "x", "s", "flag"))
                terms = tuple(Attribute(name, attribute) for name in (part.name, after.name))
                found.append((part, Comparison("=", terms)))
    return found


def _predicates(choices: Choices, root: Shape, style: Style) -> list[tuple[Shape, Expression]]:
    """Predicates of all kinds, in random places."""
    found: list[tuple[Shape, Expression]] = []
    places = [place for place in root.walk() if place.is_place and any(place.local())]
    while places and len(found) < 4 and chance(choices, style.predicates):
        place = pick(choices, places)
        local = pick(choices, [names for names in place.local() if names])
        found.append((place, formula(choices, local, [*place.outer(), *local])))
    if chance(choices, 1):
        found.append((pick(choices, list(root.walk())).place, Literal(not chance(choices, 30))))
    return found


def _judged(choices: Choices, root: Shape) -> list[tuple[Shape, Expression]]:
    """Predicates over aggregates, where the groups are."""
    found: list[tuple[Shape, Expression]] = []
    for place in root.walk():
        groups = place.groups() if place.is_place else []
        while groups and chance(choices, 45):
            names = [*place.outer(), *(place.local() or [[]])[0]]
            found.append((place, judged(choices, pick(choices, groups), names)))
    return found


def _all_groups(root: Shape) -> list[Shape]:
    """The groups that a match may have, those of branches of an OR included."""
    found: list[Shape] = []
    for part in root.components:
        if part.group is not None:
            found.append(part)
        elif not part.negated:
            found += _all_groups(part)
    return found


def _write(choices: Choices, place: Shape, predicate: Expression) -> None:
    """Write a predicate with its place, or with an event that the place declares."""
    events = [part for part in place.components if part.kind == "event" and part.place is place]
    if events and chance(choices, 25):
        pick(choices, events).predicates.append(predicate)
    else:
        place.predicates.append(predicate)


# -- WHERE -------------------------------------------------------------------------------------------------


def _all_comparable(root: Shape) -> bool:
    """Whether `[id]` can compare every event with another: those set apart see one that a match binds."""
    if any(place.hidden for place in root.walk()):
        return False
    positive = {leaf.name for leaf in root.positive()}
    tops = root.components if root.kind == "OR" else [root]
    return all(
        not _apart(leaf.place, top) or positive & set(leaf.place.outer())
        for top in tops
        for leaf in top.walk()
        if leaf.kind == "event"
    )


def _fits_where(predicate: Expression, root: Shape) -> bool:
    """Whether the condition and every part of it can stand in WHERE: one place declares and sees it all."""
    declaring = {leaf.name: leaf.place for leaf in root.walk() if leaf.kind == "event"}
    negative = set(declaring) - {leaf.name for leaf in root.positive()}

    def fits(part: Expression) -> bool:
        names = variables(part)
        if any(declaring[name].sees(names) for name in names):
            return True
        return not names & negative and root.sees(names)

    return all(fits(part) for part in _conditions(predicate))


def _conditions(predicate: Expression) -> list[Expression]:
    """The predicate, and the parts that a disjunction over negations may be taken apart into."""
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            return [predicate, *(inner for part in operands for inner in _conditions(part))]
        case _ if hasattr(predicate, "operand") and isinstance(predicate.operand, And | Or):
            return _conditions(predicate.operand)
        case _:
            return [predicate]


def _bare(choices: Choices, predicate: Expression, root: Shape) -> Expression:
    """The predicate without the variable's name at times, where the pattern has only one event."""
    events = [leaf.name for leaf in root.positive()]
    if len(events) != 1 or not chance(choices, 30):
        return predicate

    def without(part: Expression) -> Expression:
        is_only = isinstance(part, Attribute) and part.variable == events[0]
        return Attribute(None, part.name) if is_only and isinstance(part, Attribute) else part

    return transform(predicate, without)


def _where(choices: Choices, conditions: Sequence[Expression], root: Shape) -> Expression | None:
    """The conditions joined, at times with a disjunction.

    A disjunction over a negative component is taken apart; any other must be seen as a whole.
    """
    parts = list(conditions)
    if len(parts) > 1 and chance(choices, 30):
        either = Or((parts[-2], parts[-1]))
        positive = {leaf.name for leaf in root.positive()}
        names = set(variables(either))
        if any(isinstance(part, Equivalence) for part in either.operands):
            names |= positive
        if names - positive or root.sees(names):
            parts[-2:] = [either]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


# -- the rest ----------------------------------------------------------------------------------------------


def _window(choices: Choices, root: Shape, style: Style) -> Window | None:
    events = root.kind == "event" or (
        root.kind == "OR" and all(part.kind == "event" for part in root.components)
    )
    if events and chance(choices, 50):
        return None
    match weighted(choices, *style.windows):
        case "number":
            return Window(WindowKind.NUMBER, weighted(choices, (10, 1), (15, 3), (30, 5), (35, 8), (10, 20)))
        case "events":
            return Window(WindowKind.EVENTS, weighted(choices, (10, 2), (30, 4), (40, 7), (15, 12), (5, 1)))
        case _:
            return UNBOUNDED


def _returns(choices: Choices, root: Shape) -> tuple[ReturnVariable | ReturnExpression, ...]:
    hidden = {name for place in root.walk() for name in place.hidden}
    names = [leaf.name for leaf in root.positive() if leaf.name not in hidden]
    if not names:
        return ()
    if chance(choices, 40):
        groups = _all_groups(root)
        items: list[ReturnVariable | ReturnExpression] = [
            ReturnExpression(
                returned_aggregate(choices, pick(choices, groups), names)
                if groups and chance(choices, 70)
                else returned(choices, names),
                f"v{number}",
            )
            for number in range(choices.integer(1, 3))
        ]
        if groups and chance(choices, 40):
            group = pick(choices, groups)
            items.append(ReturnVariable(group.group_name or group.name))
        if chance(choices, 40):
            items.append(ReturnVariable(pick(choices, names)))
        return tuple(items)
    return tuple(ReturnVariable(name) for name in some(choices, names, 1, 3))


def _keep(
    choices: Choices, root: Shape, returns: Sequence[ReturnVariable | ReturnExpression]
) -> KeepClause | None:
    """Any KEEP over what a match shows."""
    hidden = {name for place in root.walk() for name in place.hidden}
    names = [leaf.name for leaf in root.positive() if leaf.name not in hidden]
    if returns and all(isinstance(item, ReturnVariable) for item in returns):
        names = [item.variable for item in returns if isinstance(item, ReturnVariable)]
    if not names:
        return None
    kind = weighted(choices, *((1, kind) for kind in Kept))
    per: list[str | Expression] = []
    for _ in range(weighted(choices, (2, 0), (5, 1), (2, 2))):
        name = pick(choices, names)
        attribute = Attribute(name, pick(choices, ("id", "x", "s", "flag", "f")))
        per.append(weighted(choices, (3, name), (3, attribute), (1, returned(choices, names))))
    every = Literal(choices.integer(1, 4)) if kind is Kept.FIRST and chance(choices, 40) else None
    return KeepClause(kind, tuple(per), every)


def any_query(choices: Choices) -> str:
    """A query of any style."""
    text = make_query(choices, weighted(choices, (12, FLAT), (18, KEYED), (14, SASE), (56, GENERAL)))
    return _around_a_match(choices, text) if chance(choices, 6) else text


def _around_a_match(choices: Choices, text: str) -> str:
    """A query whose pattern is a negation that looks at the windows before and after an event.

    Returns the text as it is where that pattern cannot be negated.
    """
    try:
        tree = nestream.query(text).bound.tree
        inner = replace(tree, window=_LONG, returns=(), keep=None, limit=None)
        pattern = nestream.all_of(
            nestream.not_(nestream.query(print_query(inner))), nestream.event("D", "d9")
        )
        return str(nestream.seq(pattern).within(choices.integer(1, 8)))
    except nestream.QueryError:
        return text


def random_query(random: Random, style: Style | None = None) -> str:
    """The text of a query from a seeded generator: of the style, or of any."""
    choices = RandomChoices(random)
    return any_query(choices) if style is None else make_query(choices, style)


@st.composite
def valid_queries(draw: st.DrawFn, max_depth: int = 4, style: Style = GENERAL) -> str:
    """Texts of queries that bind."""
    limited = style if max_depth == style.max_depth else Style(**{**vars(style), "max_depth": max_depth})
    return make_query(DrawnChoices(draw), limited)


def flat_queries() -> st.SearchStrategy[str]:
    """Flat sequences with simple negations, joined on id."""
    return valid_queries(FLAT.max_depth, FLAT)


def keyed_nested_queries() -> st.SearchStrategy[str]:
    """Nested negations joined on id."""
    return valid_queries(KEYED.max_depth, KEYED)
