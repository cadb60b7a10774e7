"""Finds the parts of a plan in the text of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nestream.language.ast import Pattern, Primitive, Query, parts
from nestream.logical.nodes import Component, Plan, leaves
from nestream.model.diagnostics import NOWHERE, Span
from nestream.model.expression import Expression


class Places:
    """Finds the span of a variable, a negation, a predicate or the window."""

    def __init__(self, tree: Query, plan: Plan, text: str) -> None:
        self.text = text
        self.window = _known(plan.window_span)
        # a component with NEXT or DIRECTLY has two variables: its own, and that of the events between
        primitives = [
            part
            for part in parts(tree.pattern)
            if isinstance(part, Primitive)
            for _ in range(2 if part.step else 1)
        ]
        named = list(zip(primitives, plan.variables, strict=True))
        self._names = {id(part): name for part, name in reversed(named)}
        self._variables: Mapping[str, Span] = {name: part.span for part, name in named}
        self._groups: dict[frozenset[str], Span] = {}
        for part in parts(tree.pattern):  # outermost first, so a negation comes before its body
            self._groups.setdefault(self._declared(part), part.span)

    def _declared(self, pattern: Pattern) -> frozenset[str]:
        return frozenset(self._names[id(part)] for part in parts(pattern) if isinstance(part, Primitive))

    def variable(self, name: str) -> Span | None:
        """Where a variable is declared."""
        return _known(self._variables.get(name, NOWHERE))

    def variables(self, names: Iterable[str]) -> Span | None:
        """The piece of text from the first of some variables' declarations to the last."""
        spans = [span for name in names if (span := self.variable(name)) is not None]
        if not spans:
            return None
        whole = spans[0]
        for span in spans[1:]:
            whole = whole.to(span)
        return whole

    def negation(self, body: Component) -> Span | None:
        """Where a negation is, with its sign."""
        names = frozenset(leaf.variable for leaf in leaves(body))
        return _known(self._groups.get(names, NOWHERE)) or self.variables(names)

    def predicate(self, predicate: Expression, names: Iterable[str]) -> Span | None:
        """Where a predicate is written; one made by binding is placed at its variables."""
        return _known(predicate.span) or self.variables(names)

    def limit(self) -> Span | None:
        """Where LIMIT is."""
        at = self.text.upper().rfind("LIMIT")
        return Span(at, len(self.text.rstrip())) if at >= 0 else None


def _known(span: Span) -> Span | None:
    return None if span == NOWHERE else span
