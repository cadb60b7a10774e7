"""The normal forms of the ICDE 2011 paper as types, made from a plan's root by a checker.

Disjunctive: an OR of sequences over primitive events (definition 5). Conjunctive: an AND of them (6). Nested
AND/SEQ: OR only at the root, negation only before primitive events, no SEQ directly in a SEQ and no AND
directly in an AND (7). Everything else is nested: some part of the query has no flat form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    walk,
)


@dataclass(frozen=True)
class Disjunctive:
    """An OR of flat sequences; a single one is an OR of one."""

    disjuncts: tuple[Node, ...]

    name = "disjunctive normal form"


@dataclass(frozen=True)
class Conjunctive:
    """An AND of flat sequences."""

    conjuncts: tuple[Node, ...]

    name = "conjunctive normal form"


@dataclass(frozen=True)
class NestedAndSeq:
    """An OR of expressions in which SEQ and AND alternate."""

    disjuncts: tuple[Node, ...]

    name = "nested AND/SEQ form"


@dataclass(frozen=True)
class Nested:
    """No normal form: something stays nested. The disjuncts are those of the root so far."""

    disjuncts: tuple[Node, ...]

    name = "nested"


Form: TypeAlias = Disjunctive | Conjunctive | NestedAndSeq | Nested


def form_of(root: Node) -> Form:
    """The form of a plan's root: the first that fits, in the order of the definitions."""
    found = disjuncts(root)
    if all(is_sequence(_body(disjunct)) for disjunct in found):
        return Disjunctive(found)
    if (
        len(found) == 1
        and isinstance(inner := _body(found[0]), WinAnd)
        and all(map(is_sequence, inner.components))
    ):
        return Conjunctive(tuple(part for part in inner.components if isinstance(part, Leaf | WinSeq)))
    if all(_alternates(_body(disjunct)) for disjunct in found):
        return NestedAndSeq(found)
    return Nested(found)


def expressions(form: Form) -> tuple[Node, ...]:
    """E1, E2, ...: the expressions that a normal form joins, in order."""
    return form.conjuncts if isinstance(form, Conjunctive) else form.disjuncts


def disjuncts(root: Node) -> tuple[Node, ...]:
    """The branches of a root OR, including those nested directly in it; any other root is the only one."""
    if not isinstance(root, WinOr) or root.predicates:
        return (root,)
    return tuple(
        disjunct
        for branch in root.components
        if not isinstance(branch, Negation | Group | Witness)
        for disjunct in disjuncts(branch)
    )


def _body(disjunct: Component) -> Component:
    return disjunct.body if isinstance(disjunct, Proj) else disjunct


def is_sequence(component: Component) -> bool:
    """Whether the component is a sequential pattern over primitive events, or a single one."""
    if isinstance(component, Leaf):
        return True
    return isinstance(component, WinSeq) and all(
        isinstance(part, Leaf) or is_primitive_constraint(part) for part in component.components
    )


def is_primitive_constraint(component: Component) -> bool:
    """Whether the component is a negated primitive event or a witness, which consists only of such."""
    return isinstance(component, Witness) or (
        isinstance(component, Negation) and isinstance(component.body, Leaf)
    )


def _alternates(component: Component) -> bool:
    """Whether the properties of definition 7 hold for a disjunct."""
    for part in walk(component):
        if isinstance(part, WinOr | Proj) or (isinstance(part, Negation) and not isinstance(part.body, Leaf)):
            return False
        if isinstance(part, WinSeq | WinAnd) and any(
            isinstance(inner, type(part)) for inner in part.components
        ):
            return False
    return True
