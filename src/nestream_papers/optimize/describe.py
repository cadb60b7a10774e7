"""Describes a normalised expression of the logical plan as a shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Plan,
    Proj,
    WinSeq,
    Witness,
    is_constraint,
    leaves,
    target_variables,
    walk,
)
from nestream.model.event_types import said_types
from nestream.model.expression import (
    Attribute,
    Comparison,
    Expression,
    conjuncts,
    transform,
    variables,
)
from nestream.model.text import print_expression, quantity_text
from nestream_papers.optimize.shape import EVENT, Constraint, Joint, Shape, Step


def shapes_of(plan: Plan, expressions: Sequence[Node], owner: str = "") -> list[Shape]:
    """The shapes of the expressions E1, E2, ... of a plan."""
    return [shape_of(plan, node, f"E{number}", owner) for number, node in enumerate(expressions, 1)]


def shape_of(plan: Plan, node: Node, name: str, owner: str = "") -> Shape:
    """The shape of one expression; one that is not a plain sequence has its steps in text order."""
    body = node.body if isinstance(node, Proj) else node
    components = body.components if isinstance(body, WinSeq) else (body,)
    ordered = all(isinstance(part, Leaf) or is_constraint(part) for part in components)
    events = [part for part in components if isinstance(part, Leaf)] if ordered else _positive_leaves(body)
    places = {leaf.variable: place for place, leaf in enumerate(events)}
    formulas = [f for part in _around(body, ordered) for p in part.predicates for f in conjuncts(p)]
    formulas += [f for leaf in events for p in leaf.predicates for f in conjuncts(p)] if ordered else []
    local = {v: [f for f in formulas if variables(f) == {v}] for v in places}
    joint = [f for f in formulas if len(variables(f)) > 1]
    return Shape(
        name=name,
        steps=tuple(_step(leaf, local[leaf.variable]) for leaf in events),
        constraints=tuple(_constraints(components, places)) if ordered else (),
        joints=tuple(dict.fromkeys(_joints(joint, places))),
        names=tuple(leaf.variable for leaf in events),
        window=plan.window,
        exclusive=plan.exclusive,
        owner=owner,
        ordered=ordered,
    )


def _around(body: Node, ordered: bool) -> list[Node]:
    """The nodes whose predicates concern the positive events."""
    if ordered:
        return [] if isinstance(body, Leaf) else [body]
    inside = {id(part) for node in walk(body) if is_constraint(node) for part in walk(node)}
    return [
        node
        for node in walk(body)
        if not isinstance(node, Negation | Group | Witness) and id(node) not in inside
    ]


def _positive_leaves(body: Node) -> list[Leaf]:
    bound = target_variables(body)
    return [leaf for leaf in leaves(body) if leaf.variable in bound]


def _step(leaf: Leaf, formulas: Sequence[Expression]) -> Step:
    return Step(leaf.types, tuple(_renamed(f, {leaf.variable: EVENT}) for f in formulas))


def _renamed(formula: Expression, names: Mapping[str, str]) -> Expression:
    def change(part: Expression) -> Expression:
        if isinstance(part, Attribute) and part.variable is not None and part.variable in names:
            return Attribute(names[part.variable], part.name)
        return part

    return transform(formula, change)


def _joints(formulas: Sequence[Expression], places: Mapping[str, int]) -> Iterator[Joint]:
    """The predicates between steps; a chain of equalities is one for each pair of neighbours."""
    for formula in formulas:
        for part in _pairs(formula, places):
            mentioned = [places[v] for v in variables(part) if v in places]
            if len(mentioned) < 2:
                continue
            first, last = min(mentioned), max(mentioned)
            names = {v: str(places[v] - first) for v in variables(part) if v in places}
            yield Joint(first, last, _renamed(part, names))


def _pairs(formula: Expression, places: Mapping[str, int]) -> Iterator[Expression]:
    match formula:
        case Comparison(operator="=", operands=operands) if all(
            isinstance(operand, Attribute) and operand.variable in places for operand in operands
        ):
            ordered = sorted(
                (o for o in operands if isinstance(o, Attribute)), key=lambda o: places[o.variable or ""]
            )
            for left, right in pairwise(ordered):
                yield Comparison("=", (left, right))
        case _:
            yield formula


# -- constraints -------------------------------------------------------------------------------------------


def _constraints(components: Sequence[Component], places: Mapping[str, int]) -> Iterator[Constraint]:
    gap = 0
    for part in components:
        if isinstance(part, Leaf):
            gap += 1
        elif is_constraint(part):
            yield _constraint(part, gap, places)


def _constraint(part: Component, gap: int, places: Mapping[str, int]) -> Constraint:
    inner = {leaf.variable: f"n{number}" for number, leaf in enumerate(leaves(part))}
    outer = {name: f"{place - gap:+d}" for name, place in places.items()}
    formulas = [
        p for node in walk(part) if not isinstance(node, Negation | Group | Witness) for p in node.predicates
    ]
    linked = {places[v] for f in formulas for v in variables(f) if v in places}
    absent, chain = _occurring(part)
    first, last, key = gap - 1, gap, _link(formulas, inner, places)
    if key is None:  # by a key, it can be joined with any step
        first, last = min([first, *linked]), max([last, *linked])
    return Constraint(gap, _text(part, {**inner, **outer}), absent, chain, first, last, key)


def _occurring(part: Component) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """What must be absent, and what must occur."""
    match part:
        case Witness(chain=chain, absent=absent):
            return tuple(_own_step(leaf) for leaf in ((absent,) if absent else ())), tuple(
                map(_own_step, chain)
            )
        case Negation(body=body):
            return tuple(map(_own_step, _positive_leaves(body))), ()
        case _:
            return tuple(map(_own_step, leaves(part))), ()


def _own_step(leaf: Leaf) -> Step:
    own = [f for p in leaf.predicates for f in conjuncts(p) if variables(f) == {leaf.variable}]
    return _step(leaf, own)


def _link(formulas: Sequence[Expression], inner: Mapping[str, str], places: Mapping[str, int]) -> str | None:
    """The attribute by which equalities join inner events with the match, if nothing else does."""
    names: set[str] = set()
    for formula in (f for p in formulas for f in conjuncts(p)):
        if not variables(formula) & places.keys():
            continue
        match formula:
            case Comparison(operator="=", operands=operands) if all(
                isinstance(operand, Attribute) for operand in operands
            ):
                names |= {o.name for o in operands if isinstance(o, Attribute) and o.variable in inner}
            case _:
                return None
    return min(names) if len(names) == 1 else None


def _text(part: Component, names: Mapping[str, str]) -> str:
    """The constraint with its variables by place, so that equal ones have equal text."""
    match part:
        case Leaf(types=types):
            head = said_types(types, "|")
        case Negation(body=body):
            return f"!{_text(body, names)}"
        case Group(body=body):
            return f"({_text(body, names)}){quantity_text(part.least, part.most)}"
        case Witness(chain=chain, absent=absent):
            inside = [
                *([f"!{_text(absent, names)}"] if absent else []),
                *(_text(one, names) for one in chain),
            ]
            return f"({', '.join(inside)})"
        case _:
            nested = part.components if not isinstance(part, Proj) else (part.body,)
            head = f"{type(part).__name__}({', '.join(_text(inner, names) for inner in nested)})"
    said = sorted(print_expression(_renamed(p, names)) for p in part.predicates)
    return head + (f"[{'; '.join(said)}]" if said else "")
