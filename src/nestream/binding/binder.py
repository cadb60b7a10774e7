"""Binds a syntax tree: resolves names, checks scopes, places predicates, and builds the logical plan.

Every problem is collected, so that a rejected query shows all of them at once. A predicate is placed in the
innermost expression that binds what it needs; where it was written never changes the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nestream.binding.declare import Declarations, declare, span_of
from nestream.binding.groups import GroupBinding, mentioned
from nestream.binding.inner_windows import check_inner_window, window_conditions
from nestream.binding.keep import bind_keep
from nestream.binding.named_expressions import (
    MOST_BRANCHES,
    apart,
    branch_choices,
    expand,
    too_many,
    wrong_attributes,
)
from nestream.binding.output import bind_output
from nestream.binding.scopes import AGGREGATED, Scope, Scopes, Unseen
from nestream.binding.variables import hyphens, unknown_variable, unseen_variable
from nestream.binding.where import (
    MOST_ALTERNATIVES,
    TooManyAlternativesError,
    alternatives,
    expand_equivalences,
    inward,
    mentions_negative,
)
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
from nestream.model.diagnostics import Diagnostic, QueryError, Severity
from nestream.model.expression import (
    PATH_MARK,
    Aggregate,
    Attribute,
    Equivalence,
    Expression,
    Or,
    Parameter,
    attributes,
    conjuncts,
    transform,
    variables,
    walk,
)
from nestream.model.text import print_expression, print_name
from nestream.model.time import UNBOUNDED, Window, WindowKind

Placed = Mapping[Scope, Sequence[Expression]]


@dataclass(frozen=True)
class BoundQuery:
    """A query that means something: its text, its tree, its logical plan, and what `check` warns about."""

    text: str
    tree: Query
    plan: Plan
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def target_variables(self) -> frozenset[str]:
        """TV(q): the variables that a match binds before any projection."""
        return target_variables(self.plan.root)

    @property
    def free_variables(self) -> frozenset[str]:
        """FV(q): for a whole query the same as its target variables."""
        return free_variables(self.plan.root)


def bind(tree: Query, text: str) -> BoundQuery:
    """Bind a syntax tree; raises a `QueryError` with every problem."""
    return _Binding(tree, text).run()


class _Binding:
    def __init__(self, tree: Query, text: str) -> None:
        self.tree = tree
        self.text = text
        self.declared: Declarations = declare(tree.pattern)
        self.scopes: Scopes = self.declared.scopes
        self.diagnostics: list[Diagnostic] = list(self.declared.diagnostics)
        self.groups = GroupBinding(self.scopes)
        self.written = [name for name in self.declared.order if name not in self.scopes.unwritten]

    def run(self) -> BoundQuery:
        placed: dict[Scope, list[Expression]] = {scope: [] for scope in self.scopes.root.walk()}
        for scope, predicate in self.declared.written:
            for conjunct in conjuncts(predicate):
                bound = self.groups.bound(conjunct)
                if bound is not None:
                    self.place(bound, scope, placed)
        unions = self.split_where(placed)
        self.diagnostics += self.groups.diagnostics
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
        """Report a LIMIT beside INTO: which matches come first depends on when they are decided."""
        if self.tree.into is not None and self.tree.limit is not None:
            self.diagnostics.append(
                Diagnostic(
                    "limited-into",
                    "a query with INTO cannot have a LIMIT",
                    self.tree.into.span,
                    hint="remove the LIMIT, or choose among the matches with KEEP",
                )
            )

    # -- predicates ----------------------------------------------------------------------------------------

    def place(self, predicate: Expression, written: Scope, placed: dict[Scope, list[Expression]]) -> None:
        """Check a predicate where it is written; place it in the innermost scope that sees its variables."""
        if not self.known(predicate) or not self.seen(predicate, written):
            return
        names = frozenset(mentioned(predicate, self.scopes))
        if written.is_or:
            branches = {self.scopes.branch(name, written) for name in names} - {None}
            if len(branches) > 1:
                self.diagnostics.append(
                    Diagnostic(
                        "across-or-branches",
                        "a condition compares two branches of an OR",
                        span_of(predicate, written),
                        detail="a match has the events of one branch only",
                        hint="write a condition for each branch",
                    )
                )
                return
        if branch_choices(predicate, self.scopes) > MOST_BRANCHES:
            self.diagnostics.append(too_many(predicate))
            return
        for chosen, expanded in expand(predicate, self.scopes):
            inside = max(chosen, key=lambda branch: len(branch.path), default=written)
            names = frozenset(mentioned(expanded, self.scopes))
            if chosen and (
                not set(chosen) <= set(inside.path)
                or any(self.scopes.unseen(name, inside) not in (None, Unseen.HIDDEN) for name in names)
            ):
                self.diagnostics.append(apart(predicate, self.scopes))
                return
            place = self.scopes.innermost(names, inside)
            if self.reaches(expanded, place):
                placed[place].append(expanded)

    def reaches(self, predicate: Expression, place: Scope) -> bool:
        """Whether a predicate with aggregates stands with its groups, not in what is beside them."""
        for name, part in mentioned(predicate, self.scopes).items():
            if not name.startswith(AGGREGATED):
                continue
            around = self.scopes.of[name]
            inside = next((s for s in place.path if s not in around.path and s.apart), None)
            if inside is not None:
                what = "group" if inside.group is not None else "negation"
                self.diagnostics.append(
                    Diagnostic(
                        "aggregate-inside",
                        f"`{print_expression(part)}` stands inside a {what} beside the group",
                        span_of(part, place),
                        detail=f"a {what} and a group beside it look at their events independently",
                        hint="write the condition around both, or compare with single events",
                    )
                )
                return False
        return True

    def known(self, predicate: Expression) -> bool:
        """Whether every variable of the predicate is declared; reports those that are not."""
        unknown = [part for part in attributes(predicate) if part.variable not in self.scopes.of]
        for part in unknown:
            self.diagnostics.append(
                unknown_variable(part, self.scopes, self.declared.ambiguous, self.written)
            )
        self.diagnostics += hyphens(predicate, self.written)
        wrong = list(wrong_attributes(predicate, self.scopes))
        self.diagnostics += wrong
        return not unknown and not wrong

    def seen(self, predicate: Expression, place: Scope) -> bool:
        """Whether every variable of the predicate can be seen from the scope; reports why not."""
        reported = set()
        for name in mentioned(predicate, self.scopes):
            reason = self.scopes.unseen(name, place)
            if reason is not None and reason not in reported:
                reported.add(reason)
                self.diagnostics.append(unseen_variable(reason, name, predicate, place, self.scopes))
        return not reported

    # -- WHERE ---------------------------------------------------------------------------------------------

    def split_where(self, placed: dict[Scope, list[Expression]]) -> list[Placed]:
        """The predicates by scope, once for each alternative of the WHERE clause."""
        if self.tree.where is None:
            return [placed]
        where = transform(transform(self.tree.where, _counted), self.with_variable)
        bound = self.groups.bound(where)
        if bound is None or not self.known(bound) or not self.covers_groups(bound):
            return [placed]
        self.check_equivalences(where)
        where = expand_equivalences(bound, self.declared.order, self.scopes)
        if not self.keeps_groups(where):
            return [placed]
        try:
            split = alternatives(where, lambda formula: mentions_negative(formula, self.scopes))
        except TooManyAlternativesError:
            self.diagnostics.append(
                Diagnostic(
                    "too-many-alternatives",
                    f"the WHERE clause splits into more than {MOST_ALTERNATIVES} alternatives",
                    where.span,
                    detail="each OR over a negated component doubles them or more",
                    hint="move conditions out of the ORs, or write several queries",
                )
            )
            return [placed]
        unions: list[Placed] = []
        for conditions in split:
            union = {scope: list(predicates) for scope, predicates in placed.items()}
            for condition in conditions:
                self.place(condition, self.home(condition), union)
            unions.append(union)
        return unions

    def keeps_groups(self, where: Expression) -> bool:
        """Whether the alternatives of the clause give every group the same members."""
        for part in walk(inward(where)):
            if not isinstance(part, Or) or not mentions_negative(part, self.scopes):
                continue
            for name in sorted(variables(part)):
                group = self.scopes.group_of_match(name)
                if group is not None:
                    self.diagnostics.append(
                        Diagnostic(
                            "group-or-negation",
                            f"the alternatives of this OR would give the group `{group}` different members",
                            part.span,
                            detail="an OR that mentions a negated component stands for several queries",
                            hint="write each condition with its component, or write two queries",
                        )
                    )
                    return False
        return True

    def check_equivalences(self, where: Expression) -> None:
        """Report `[a.id]`: brackets are about all events."""
        for part in walk(where):
            if isinstance(part, Equivalence) and part.attribute.partition(PATH_MARK)[0] in self.written:
                name = part.attribute.partition(PATH_MARK)[2]
                if name:
                    self.diagnostics.append(
                        Diagnostic(
                            "equivalence-with-variable",
                            "brackets take attributes without variables",
                            part.span,
                            hint="all events agree on the attribute",
                            suggestion=f"[{print_name(name)}]",
                        )
                    )

    def covers_groups(self, where: Expression) -> bool:
        """Whether every `[attribute]` is a condition of its own, so that it can say which members belong."""
        if not self.scopes.groups:
            return True
        joined = [part for part in conjuncts(where) if not isinstance(part, Equivalence)]
        inside = [part for whole in joined for part in walk(whole) if isinstance(part, Equivalence)]
        for part in inside:
            self.diagnostics.append(
                Diagnostic(
                    "equivalence-over-group",
                    f"`{print_expression(part)}` stands under OR or NOT, and the pattern has a group",
                    part.span,
                    detail="it covers the members of the group too, and says which events belong",
                    hint="join it with AND alone, or compare the attributes of the single events",
                )
            )
        return not inside

    def with_variable(self, part: Expression) -> Expression:
        """An attribute without variable belongs to the only event of the pattern."""
        if isinstance(part, Aggregate):
            found = part.operand
            if isinstance(found, Attribute) and found.inner == _COUNTED:
                return replace(part, operand=Attribute(None, found.name, found.span))
            return part
        if not isinstance(part, Attribute) or part.variable is not None:
            return part
        events = [name for name in self.declared.order if self.scopes.positive(name)]
        example = (events or self.declared.order)[0]
        if len(events) != 1:
            self.diagnostics.append(
                Diagnostic(
                    "ambiguous-attribute",
                    f"the attribute `{part.name}` has no variable",
                    part.span,
                    hint=f"write whose attribute it is, as in `{example}.{part.name}`",
                )
            )
        return Attribute(example, part.name, part.span)

    def home(self, condition: Expression) -> Scope:
        """The scope that a condition of WHERE belongs to: the innermost one that sees all its variables."""
        found = mentioned(condition, self.scopes)
        names = [name for name in self.scopes.of if name in found]
        around = dict.fromkeys(scope for name in names for scope in self.scopes.of[name].path)
        for scope in sorted(around, key=lambda scope: -len(scope.path)):
            if all(self.scopes.unseen(name, scope) is None for name in names):
                return scope
        apart = (self.scopes.of[name] for name in names if not self.scopes.positive(name))
        return next(apart, self.scopes.root)

    # -- the rest ------------------------------------------------------------------------------------------

    def check_window(self) -> None:
        window = None if self.tree.window is None else self.window
        if window is None and not _is_single_event(self.scopes.root):
            self.diagnostics.append(
                Diagnostic(
                    "missing-window",
                    "the query has no WITHIN, so its state would grow without limit",
                    self.tree.pattern.span,
                    hint="add a window such as `WITHIN 1 hour`, or write `WITHIN UNBOUNDED`",
                )
            )
        elif window is not None and window.kind is WindowKind.UNBOUNDED:
            self.diagnostics.append(
                Diagnostic(
                    "unbounded-state",
                    "without a window the state grows without limit",
                    self.tree.window_span,
                    Severity.WARNING,
                    detail="a stream keeps every event forever",
                    hint="add a window such as `WITHIN 1 hour` if you can",
                )
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
        """What an event between must be for NEXT: all that is asked of the next event alone."""
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


_COUNTED = "\0"
"""Marks the variable of `COUNT(f)` while attributes without a variable get one."""


def _counted(part: Expression) -> Expression:
    if isinstance(part, Aggregate) and isinstance(part.operand, Attribute) and part.operand.variable is None:
        return replace(part, operand=replace(part.operand, variable="", inner=_COUNTED))
    return part


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
    """Whether every match is one event and nothing else matters, so that no state is held."""
    if any(inner.apart for inner in scope.nested):
        return False
    if scope.is_or:
        return all(_is_single_event(branch) for branch in scope.nested)
    return len(scope.items) == 1 and all(_is_single_event(inner) for inner in scope.nested)
