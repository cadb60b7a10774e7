"""The plan of a query as a graph, nested as it is written or rewritten.

With events, the nodes show how many rows are expected and how many were found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nestream.logical.explain import leaf_label
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
from nestream.model.text import print_expression, print_name, quantity_text
from nestream.show.rows import NO_ROWS, Rows, rows_over

MOST_NODES = 400
"""The maximum number of nodes; parts beyond it become one node each."""


@dataclass(frozen=True)
class GraphNode:
    """One node: what it is, its predicates, and its number of rows."""

    id: int
    label: str
    kind: str
    detail: str = ""
    estimated_rows: float | None = None
    measured_rows: int | None = None

    def json(self) -> dict[str, Any]:
        """The node as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Graph:
    """A tree: the root is node 0, and the edges lead from each node to its parts, from left to right."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int], ...]
    title: str = "Plan"

    def json(self) -> dict[str, Any]:
        """The graph as plain data."""
        return {"nodes": [node.json() for node in self.nodes], "edges": [list(edge) for edge in self.edges]}

    def svg(self) -> str:
        """The drawing."""
        from nestream.show.graph_svg import graph_svg

        return graph_svg(self)

    def _repr_html_(self) -> str:
        return f'<div class="nestream" style="overflow-x:auto">{self.svg()}</div>'


def plan_graph(
    query: Any,
    rewritten: bool = False,
    analyze: Any = None,
    *,
    time: str = "ts",
    type: str = "type",
    types: Mapping[str, Iterable[str]] | None = None,
    order: str = "time",
) -> Graph:
    """The plan of a query as a graph, `rewritten` to its normal form or nested.

    With events to `analyze`, an event node shows how many events it selects, the root how many matches there
    are, and an alternative of the root how many it finds; the estimates are those of the cost model. The
    other arguments are those of `Query.match`.
    """
    read = {"time": time, "type": type, "types": types, "order": order}
    found = NO_ROWS if analyze is None else rows_over(query, analyze, rewritten, read)
    plan = found.plan or query.plan
    if rewritten and found.plan is None:
        plan = query.rewritten(plan)
    return _Building(plan, found).done("Rewritten plan" if rewritten else "Plan")


class _Building:
    def __init__(self, plan: Plan, found: Rows) -> None:
        self.plan = plan
        self.found = found
        self.nodes: list[GraphNode] = []
        self.edges: list[tuple[int, int]] = []

    def done(self, title: str) -> Graph:
        plan = self.plan
        shown = ", ".join(print_name(column.name) for column in plan.output.columns)
        details = [f"window: {plan.window}" + (", exclusive" if plan.exclusive else "")]
        details += [f"limit: {plan.limit}"] if plan.limit is not None else []
        root = self._node(f"MATCH {shown}", "match", "; ".join(details), self.found.of(None))
        self._add(plan.root, root)
        return Graph(tuple(self.nodes), tuple(self.edges), title)

    def _node(
        self,
        label: str,
        kind: str,
        detail: str,
        rows: tuple[float | None, int | None],
        parent: int | None = None,
    ) -> int:
        number = len(self.nodes)
        self.nodes.append(GraphNode(number, label, kind, detail, *rows))
        if parent is not None:
            self.edges.append((parent, number))
        return number

    def _add(self, component: Component, parent: int) -> None:
        rows = self.found.of(component)
        if len(self.nodes) >= MOST_NODES:
            if self.nodes[-1].kind != "more":
                self._node("…", "more", "the rest of the plan", (None, None), parent)
            return
        match component:
            case Leaf():
                self._node(leaf_label(component), "event", _predicates(component), rows, parent)
            case Negation(body=body):
                self._add(body, self._node("NOT", "negation", "no match in its interval", rows, parent))
            case Group(variable=variable, body=body):
                quantity = quantity_text(component.least, component.most)
                label = f"GROUP {print_name(variable)} {quantity}"
                self._add(body, self._node(label, "group", "all matches in its interval", rows, parent))
            case Proj(variables=names, body=body):
                detail = f"keeps {', '.join(map(print_name, names))}"
                self._add(body, self._node("PROJ", "projection", detail, rows, parent))
            case Witness(chain=chain, absent=absent):
                number = self._node("LATEST", "witness", "must be found in its interval", rows, parent)
                if absent is not None:
                    self._add(Negation(absent), number)
                for leaf in chain:
                    self._add(leaf, number)
            case WinSeq(components=inner) | WinAnd(components=inner) | WinOr(components=inner):
                name = type(component).__name__.removeprefix("Win")
                number = self._node(name.upper(), name.lower(), _predicates(component), rows, parent)
                for part in inner:
                    self._add(part, number)


def _predicates(component: Leaf | WinSeq | WinAnd | WinOr) -> str:
    return "; ".join(print_expression(predicate) for predicate in component.predicates)
