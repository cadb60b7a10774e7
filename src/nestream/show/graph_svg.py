"""Draws the graph of a plan: a tree from top to bottom, each node over the middle of its parts."""

from __future__ import annotations

from collections.abc import Iterator

from nestream.show.drawing import cut, document, number, text_of
from nestream.show.graph import Graph, GraphNode

CHARACTER, LINE, GAP, LEVEL, MARGIN = 6.8, 16.0, 14.0, 34.0, 10.0
_WIDEST = 34
_COLOURS = {
    "match": "#7c7ce8",
    "seq": "#3b82f6",
    "and": "#0d97a8",
    "or": "#a68000",
    "negation": "#d6455d",
    "witness": "#22a06b",
    "projection": "#7c7ce8",
}


def graph_svg(graph: Graph) -> str:
    """The drawing of a graph."""
    return _Drawing(graph).svg()


class _Drawing:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parts: dict[int, list[int]] = {node.id: [] for node in graph.nodes}
        for above, below in graph.edges:
            self.parts[above].append(below)
        self.lines = {node.id: list(_lines(node)) for node in graph.nodes}
        self.box = {
            number_: (max(map(len, lines)) * CHARACTER + 18, len(lines) * LINE + 10)
            for number_, lines in self.lines.items()
        }
        self.x: dict[int, float] = {}
        self.y: dict[int, float] = {}
        self.width = MARGIN * 2
        self.height = MARGIN * 2
        if graph.nodes:
            self._place()

    def _place(self) -> None:
        """Place the nodes: levels by depth, columns from the leaves up."""
        depth = {0: 0}
        for above, below in self.graph.edges:  # a node comes after its parent
            depth[below] = depth[above] + 1
        tallest: dict[int, float] = {}
        for number_, level in depth.items():
            tallest[level] = max(tallest.get(level, 0.0), self.box[number_][1])
        top = {level: MARGIN + sum(tallest[n] + LEVEL for n in range(level)) for level in tallest}
        span: dict[int, float] = {}
        for node in reversed(self.graph.nodes):  # parts first
            inner = [span[part] for part in self.parts[node.id]]
            span[node.id] = max(self.box[node.id][0], sum(inner) + GAP * max(len(inner) - 1, 0))
        left = {0: MARGIN}
        for node in self.graph.nodes:
            self.x[node.id] = left[node.id] + span[node.id] / 2
            self.y[node.id] = top[depth[node.id]]
            inner = [span[part] for part in self.parts[node.id]]
            at = self.x[node.id] - (sum(inner) + GAP * max(len(inner) - 1, 0)) / 2
            for part in self.parts[node.id]:
                left[part] = at
                at += span[part] + GAP
        self.width = span[0] + MARGIN * 2
        self.height = max(self.y[n] + self.box[n][1] for n in self.y) + MARGIN

    def svg(self) -> str:
        """Draw edges, then nodes."""
        parts = [*self._edges(), *(piece for node in self.graph.nodes for piece in self._node(node))]
        told = "; ".join(" ".join(self.lines[node.id]) for node in self.graph.nodes[:30])
        return document(self.width, self.height, self.graph.title, cut(told, 1000), parts)

    def _edges(self) -> Iterator[str]:
        for above, below in self.graph.edges:
            x1, y1 = self.x[above], self.y[above] + self.box[above][1]
            x2, y2 = self.x[below], self.y[below]
            middle = number((y1 + y2) / 2)
            yield (
                f'<path d="M{number(x1)} {number(y1)}C{number(x1)} {middle} {number(x2)} {middle}'
                f' {number(x2)} {number(y2)}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
            )

    def _node(self, node: GraphNode) -> Iterator[str]:
        width, height = self.box[node.id]
        x, y = self.x[node.id] - width / 2, self.y[node.id]
        colour = _COLOURS.get(node.kind, "currentColor")
        dashed = ' stroke-dasharray="5 3"' if node.kind in ("negation", "witness") else ""
        yield (
            f"<g><title>{text_of(f'{node.label} {node.detail}')}</title>"
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" rx="6"'
            f' fill="{colour}" fill-opacity=".09" stroke="{colour}" stroke-opacity=".85"{dashed}/>'
        )
        for place, line in enumerate(self.lines[node.id]):
            look = ' font-weight="600"' if place == 0 else ' class="quiet" font-size="11"'
            yield (
                f'<text x="{number(self.x[node.id])}" y="{number(y + 16 + LINE * place)}"'
                f' text-anchor="middle"{look}>{text_of(line)}</text>'
            )
        yield "</g>"


def _lines(node: GraphNode) -> Iterator[str]:
    yield cut(node.label, _WIDEST)
    details = [piece for piece in node.detail.split("; ") if piece]
    yield from (cut(piece, _WIDEST) for piece in details[:3])
    if len(details) > 3:
        yield f"and {len(details) - 3} more"
    rows = []
    if node.measured_rows is not None:
        rows.append(f"{node.measured_rows:,} found")
    if node.estimated_rows is not None:
        rows.append(f"{_rounded(node.estimated_rows)} expected")
    if rows:
        yield ", ".join(rows)


def _rounded(rows: float) -> str:
    if rows >= 10 or rows == 0:
        return f"{rows:,.0f}"
    return f"{rows:.2g}"
