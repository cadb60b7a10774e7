"""Prints a logical plan as indented text, one node per line, deterministically; and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
)
from nestream.model.event_types import ANY_TYPE, named_types
from nestream.model.expression import Expression, variables
from nestream.model.output import ValueColumn
from nestream.model.text import print_expression, print_name, quantity_text


def explain(plan: Plan) -> str:
    """The plan as indented text."""
    return "\n".join(_plan_lines(plan))


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield f"Match {_output(plan)}"
    yield f"  window: {_window(plan)}"
    if plan.keep is not None:
        yield f"  keep: {plan.keep}"
    if plan.limit is not None:
        yield f"  limit: {plan.limit}"
    yield from _lines(plan.root, 1, frozenset(), "")


def _window(plan: Plan) -> str:
    return f"{plan.window}" + (", exclusive" if plan.exclusive else "")


def _output(plan: Plan) -> str:
    shown = ", ".join(
        print_name(column.name)
        if not isinstance(column, ValueColumn)
        else f"{print_expression(column.expression)} AS {print_name(column.name)}"
        for column in plan.output.columns
    )
    return f"[{shown}]" + (" distinct" if plan.output.distinct else "")


def _lines(component: Component, depth: int, outer: frozenset[str], prefix: str) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(component, Negation):
        yield from _lines(component.body, depth, outer, "! ")
        return
    if isinstance(component, Group):
        yield f"{indent}{_group_label(component)}"
        yield from _lines(component.body, depth + 1, outer, "")
        return
    if isinstance(component, Witness):
        yield f"{indent}{_witness(component, outer)}"
        return
    if isinstance(component, Proj):
        yield f"{indent}Proj [{', '.join(map(print_name, component.variables))}]"
        yield from _lines(component.body, depth + 1, outer, "")
        return
    if isinstance(component, Leaf):
        yield f"{indent}{prefix}{_leaf(component, outer)}"
        return
    yield f"{indent}{prefix}{type(component).__name__}" + _predicates(component, outer)
    inside = outer | _declared(component)
    for inner in component.components:
        yield from _lines(inner, depth + 1, inside, "")


def _leaf(leaf: Leaf, outer: frozenset[str]) -> str:
    return leaf_label(leaf) + _predicates(leaf, outer)


def _witness(witness: Witness, outer: frozenset[str]) -> str:
    """A witness on one line: `! A a, latest B b, latest C c`."""
    absent = [] if witness.absent is None else [f"! {_leaf(witness.absent, outer)}"]
    return ", ".join([*absent, *(f"latest {_leaf(leaf, outer)}" for leaf in witness.chain)])


def leaf_label(leaf: Leaf, quantity: str = "") -> str:
    """The leaf as the language writes it: `Type variable`, `ANY(A, B) variable`, a group `Type+ variable`."""
    return f"{types_label(leaf.types)}{quantity} {print_name(leaf.variable)}"


def types_label(types: Sequence[str]) -> str:
    """Types as the language writes them: `Type`, `ANY(A, B)`, or `ANY`."""
    if ANY_TYPE in types:
        return "ANY"
    names = [print_name(name) for name in types]
    return names[0] if len(names) == 1 else f"ANY({', '.join(names)})"


def _group_label(group: Group) -> str:
    return f"Group {print_name(group.variable)} {quantity_text(group.least, group.most)}"


def _declared(component: WinSeq | WinAnd | WinOr) -> frozenset[str]:
    return frozenset(inner.variable for inner in component.components if isinstance(inner, Leaf))


def _predicates(component: Leaf | WinSeq | WinAnd | WinOr, outer: frozenset[str]) -> str:
    """The predicates; those that mention an outer variable are marked as correlated."""
    if not component.predicates:
        return ""
    simple = [print_expression(p) for p in component.predicates if not variables(p) & outer]
    correlated = [print_expression(p) for p in component.predicates if variables(p) & outer]
    shown = [f"simple: {', '.join(simple)}"] if simple else []
    shown += [f"correlated: {', '.join(correlated)}"] if correlated else []
    return f" [{'; '.join(shown)}]"


def explain_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain data."""
    return {
        "output": {
            "columns": [
                {"name": column.name, "variable": column.variable}
                if not isinstance(column, ValueColumn)
                else {"name": column.name, "expression": print_expression(column.expression)}
                for column in plan.output.columns
            ],
            "distinct": plan.output.distinct,
        },
        "window": {
            "kind": plan.window.kind.value,
            "size": plan.window.size,
            "text": str(plan.window),
            "exclusive": plan.exclusive,
        },
        **({"keep": str(plan.keep)} if plan.keep is not None else {}),
        "limit": plan.limit,
        "root": _json(plan.root, frozenset()),
    }


def _json(component: Component, outer: frozenset[str]) -> dict[str, Any]:
    match component:
        case Negation(body=body):
            return {"node": "Negation", "body": _json(body, outer)}
        case Group(variable=variable, body=body, least=least, most=most):
            return {
                "node": "Group",
                "variable": variable,
                "least": least,
                "most": most,
                "body": _json(body, outer),
            }
        case Witness(chain=chain, absent=absent):
            return {
                "node": "Witness",
                "absent": None if absent is None else _json(absent, outer),
                "chain": [_json(leaf, outer) for leaf in chain],
            }
        case Proj(variables=names, body=body):
            return {"node": "Proj", "variables": list(names), "body": _json(body, outer)}
        case Leaf(variable=variable, types=types, predicates=predicates):
            return {
                "node": "Leaf",
                "variable": variable,
                "types": list(named_types(types)),
                "predicates": _json_predicates(predicates, outer),
            }
        case WinSeq() | WinAnd() | WinOr():
            inside = outer | _declared(component)
            return {
                "node": type(component).__name__,
                "predicates": _json_predicates(component.predicates, outer),
                "components": [_json(inner, inside) for inner in component.components],
            }


def _json_predicates(predicates: Sequence[Expression], outer: frozenset[str]) -> list[dict[str, str]]:
    return [
        {"text": print_expression(p), "kind": "correlated" if variables(p) & outer else "simple"}
        for p in predicates
    ]
