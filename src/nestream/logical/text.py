"""A logical expression on one line, in the form of the papers: `SEQ(A a, !B b, C c)`.

A witness is inline, as if its events were components: `!S s, D d, C c`; it is in parentheses if it is not the
only constraint of its gap. The Proj around the expression shows which events a match binds, and the plan of
`explain` says `latest` where the difference matters.
"""

from __future__ import annotations

from collections.abc import Iterator

from nestream.logical.explain import leaf_label
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
    is_constraint,
)
from nestream.model.text import print_expression, print_name, quantity_text

_NAMES = {WinSeq: "SEQ", WinAnd: "AND", WinOr: "OR"}


def expression_text(component: Component) -> str:
    """The component on one line."""
    match component:
        case Leaf(predicates=()):
            return _event(component)
        case Leaf():
            return f"({', '.join([_event(component), *_predicates(component)])})"
        case Negation(body=body):
            return f"!{expression_text(body)}"
        case Group(body=Leaf(predicates=()) as leaf) if leaf.variable == component.variable:
            return leaf_label(leaf, quantity_text(component.least, component.most))
        case Group(variable=variable, body=body):
            quantity = quantity_text(component.least, component.most)
            if isinstance(body, Leaf) and body.variable == variable:
                return f"({', '.join([leaf_label(body, quantity), *_predicates(body)])})"
            return f"({expression_text(body)}){quantity} {print_name(variable)}"
        case Witness():
            return f"({', '.join(_inline(component))})"
        case Proj(variables=names, body=body):
            return f"Proj[{', '.join(map(print_name, names))}] {expression_text(body)}"
        case WinSeq() | WinAnd() | WinOr():
            inner = [
                text for index in range(len(component.components)) for text in _component(component, index)
            ]
            return f"{_NAMES[type(component)]}({', '.join([*inner, *_predicates(component)])})"


def disjuncts_text(root: Node) -> list[str]:
    """The branches of a root OR, one text each; otherwise one text for the root."""
    if isinstance(root, WinOr) and not root.predicates:
        return [expression_text(branch) for branch in root.components]
    return [expression_text(root)]


def _component(node: WinSeq | WinAnd | WinOr, index: int) -> Iterator[str]:
    """A component; a witness is inline if it is alone in its gap, so that it is clear what belongs to it."""
    component = node.components[index]
    around = (*node.components[max(index - 1, 0) : index], *node.components[index + 1 : index + 2])
    if isinstance(component, Witness) and isinstance(node, WinSeq) and not any(map(is_constraint, around)):
        yield from _inline(component)
    else:
        yield expression_text(component)


def _inline(witness: Witness) -> Iterator[str]:
    if witness.absent is not None:
        yield f"!{expression_text(witness.absent)}"
    yield from map(expression_text, witness.chain)


def _event(leaf: Leaf) -> str:
    """The leaf as a query writes it: only its type if the variable has the same name."""
    return print_name(leaf.variable) if leaf.types == (leaf.variable,) else leaf_label(leaf)


def _predicates(component: Leaf | WinSeq | WinAnd | WinOr) -> list[str]:
    return [print_expression(predicate) for predicate in component.predicates]
