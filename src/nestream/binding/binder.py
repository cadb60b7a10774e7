"""Binds a syntax tree: resolves names, checks scopes, places conditions, and builds the logical plan.

It collects every problem, so that a rejected query reports all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nestream.binding.declare import Declarations, declare
from nestream.binding.groups import mentioned
from nestream.binding.inner_windows import check_inner_window, window_conditions
from nestream.binding.keep import bind_keep
from nestream.binding.output import bind_output
from nestream.binding.placing import Placed, Placing
from nestream.binding.scopes import Scope, Scopes
from nestream.language.ast import Composite, Operator, Primitive, Query, Step, WindowParameter
from nestream.logical.invariants import check_plan
from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Plan,
    WinAnd,
    WinOr,
    WinSeq,
    free_variables,
    target_variables,
)
from nestream.model.diagnostics import Diagnostic, QueryError, Reporting, Severity
from nestream.model.expression import (
    Attribute,
    Expression,
    Parameter,
    transform,
)
from nestream.model.time import UNBOUNDED, Window, WindowKind


@dataclass(frozen=True)
class BoundQuery:
    """A bound query: its text, its tree, its logical plan, and the warnings of `check`."""

    text: str
    tree: Query
    plan: Plan
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def target_variables(self) -> frozenset[str]:
        """TV(q): the variables that a match binds, before any projection."""
        return target_variables(self.plan.root)

    @property
    def free_variables(self) -> frozenset[str]:
        """FV(q): for a whole query, the same as its target variables."""
        return free_variables(self.plan.root)


def bind(tree: Query, text: str) -> BoundQuery:
    """Bind a syntax tree; raises a `QueryError` with every problem."""
    return _Binding(tree, text).run()


class _Binding(Reporting):
    def __init__(self, tree: Query, text: str) -> None:
        super().__init__()
        self.tree = tree
        self.text = text
        self.declared: Declarations = declare(tree.pattern)
        self.scopes: Scopes = self.declared.scopes
        self.diagnostics += self.declared.diagnostics

    def run(self) -> BoundQuery:
        placing = Placing(self.declared)
        unions = placing.alternatives(self.tree.where)
        self.diagnostics += placing.diagnostics
        output, problems = bind_output(self.tree.returns, self.declared, self.tree.into)
        self.diagnostics += problems
        keep, problems = bind_keep(self.tree.keep, self.declared, output)
        self.diagnostics += problems
        self.check_into()
        self.check_window()
        self.check_inner_windows()
        if any(diagnostic.is_error for diagnostic in self.diagnostics):
            raise QueryError(self.diagnostics, self.text)
        roots = [self.node(self.scopes.root, union) for union in unions]
        plan = Plan(
            root=roots[0] if len(roots) == 1 else WinOr(tuple(roots)),
            window=self.window,
            output=output,
            exclusive=self.tree.sase,
            limit=self.limit,
            keep=keep,
            variables=self.declared.order,
            window_span=self.tree.window_span,
        )
        return BoundQuery(self.text, self.tree, check_plan(plan, "binding"), tuple(self.diagnostics))

    @property
    def window(self) -> Window:
        assert not isinstance(self.tree.window, WindowParameter), "parameters have got their values"
        return self.tree.window or UNBOUNDED

    @property
    def limit(self) -> int | None:
        assert not isinstance(self.tree.limit, Parameter), "parameters have got their values"
        return self.tree.limit

    def check_into(self) -> None:
        """Report a LIMIT together with INTO: which matches come first depends on when they are decided."""
        if self.tree.into is not None and self.tree.limit is not None:
            self.report(
                "limited-into",
                "a query with INTO cannot have a LIMIT",
                self.tree.into.span,
                hint="remove the LIMIT, or choose among the matches with KEEP",
            )

    def check_window(self) -> None:
        window = None if self.tree.window is None else self.window
        if window is None and not _is_single_event(self.scopes.root):
            self.report(
                "missing-window",
                "the query has no WITHIN, so its state would grow without limit",
                self.tree.pattern.span,
                hint="add a window such as `WITHIN 1 hour`, or write `WITHIN UNBOUNDED`",
            )
        elif window is not None and window.kind is WindowKind.UNBOUNDED:
            self.report(
                "unbounded-state",
                "without a window the state grows without limit",
                self.tree.window_span,
                severity=Severity.WARNING,
                detail="a stream keeps every event forever",
                hint="add a window such as `WITHIN 1 hour` if you can",
            )

    def check_inner_windows(self) -> None:
        for scope in self.scopes.root.walk():
            for inner in scope.pattern.windows if isinstance(scope.pattern, Composite) else ():
                problem = check_inner_window(inner)
                self.diagnostics += [problem] if problem is not None else []

    def node(self, scope: Scope, placed: Placed) -> Node:
        """The logical node of a scope."""
        predicates = tuple(placed[scope])
        if isinstance(scope.pattern, Primitive):
            (name,) = scope.leaves
            return Leaf(name, scope.pattern.types, (*predicates, *self.of_the_next(scope, name, placed)))
        predicates += tuple(window_conditions(scope, self.tree.sase))
        components: list[Component] = []
        for item in scope.items:
            if isinstance(item, str):
                components.append(Leaf(item, scope.leaves[item].types))
            else:
                components.append(self.nested(item, placed))
        return _operator(scope.pattern, tuple(components), predicates)

    def nested(self, scope: Scope, placed: Placed) -> Component:
        """The component of a nested scope: a negation, a group or an expression."""
        inner = self.node(scope, placed)
        if scope.negated:
            return Negation(inner)
        if scope.group is not None:
            return Group(scope.group_name, inner, scope.group.least, scope.group.most)
        return inner

    def of_the_next(self, scope: Scope, name: str, placed: Placed) -> Iterator[Expression]:
        """What NEXT forbids between: an event that passes all tests on the next event alone."""
        variable = scope.stands_for
        if variable is None or scope.leaves[name].step is Step.DIRECTLY:
            return

        def renamed(part: Expression) -> Expression:
            return replace(part, variable=name) if isinstance(part, Attribute) else part

        assert scope.parent is not None
        for place in dict.fromkeys((scope.parent, self.scopes.of[variable])):  # in an EXISTS, its own
            for predicate in placed[place]:
                if set(mentioned(predicate, self.scopes)) == {variable}:
                    yield transform(predicate, renamed)


def _operator(
    pattern: Composite, components: tuple[Component, ...], predicates: tuple[Expression, ...]
) -> Node:
    match pattern.operator:
        case Operator.SEQ:
            return WinSeq(components, predicates)
        case Operator.AND:
            return WinAnd(components, predicates)
        case Operator.OR:
            branches = tuple(
                component for component in components if not isinstance(component, Negation | Group)
            )
            return WinOr(branches, predicates)


def _is_single_event(scope: Scope) -> bool:
    """Whether every match is one event and nothing else matters, so that no state is needed."""
    if any(inner.apart for inner in scope.nested):
        return False
    if scope.is_or:
        return all(_is_single_event(branch) for branch in scope.nested)
    return len(scope.items) == 1 and all(_is_single_event(inner) for inner in scope.nested)
