"""Places the conditions of a query: each in the innermost expression that binds what it needs.

Where a condition is written never changes the result. WHERE is split into alternatives where one of its ORs
mentions a negation. It collects every problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nestream.binding.declare import Declarations, span_of
from nestream.binding.groups import GroupBinding, mentioned
from nestream.binding.named_expressions import (
    MOST_BRANCHES,
    apart,
    branch_choices,
    expand,
    too_many,
    wrong_attributes,
)
from nestream.binding.scopes import AGGREGATED, Scope, Unseen
from nestream.binding.variables import hyphens, unknown_variable, unseen_variable
from nestream.binding.where import (
    MOST_ALTERNATIVES,
    TooManyAlternativesError,
    alternatives,
    expand_equivalences,
    inward,
    mentions_negative,
)
from nestream.model.diagnostics import Reporting
from nestream.model.expression import (
    PATH_MARK,
    Aggregate,
    Attribute,
    Equivalence,
    Expression,
    Or,
    attributes,
    conjuncts,
    transform,
    variables,
    walk,
)
from nestream.model.text import print_expression, print_name

Placed = Mapping[Scope, Sequence[Expression]]
"""The conditions of each scope."""


class Placing(Reporting):
    """The conditions of one query, and the problems with them."""

    def __init__(self, declared: Declarations) -> None:
        super().__init__()
        self.declared = declared
        self.scopes = declared.scopes
        self.groups = GroupBinding(self.scopes)
        self.written = [name for name in declared.order if name not in self.scopes.unwritten]

    def alternatives(self, where: Expression | None) -> list[Placed]:
        """The conditions by scope, once for each alternative of the WHERE clause."""
        placed: dict[Scope, list[Expression]] = {scope: [] for scope in self.scopes.root.walk()}
        for scope, predicate in self.declared.written:
            for conjunct in conjuncts(predicate):
                bound = self.groups.bound(conjunct)
                if bound is not None:
                    self.place(bound, scope, placed)
        unions: list[Placed] = [placed] if where is None else self.split(where, placed)
        self.diagnostics += self.groups.diagnostics
        return unions

    # -- predicates ----------------------------------------------------------------------------------------

    def place(self, predicate: Expression, written: Scope, placed: dict[Scope, list[Expression]]) -> None:
        """Check a predicate where it is written; place it in the innermost scope that sees its variables."""
        if not self.known(predicate) or not self.seen(predicate, written):
            return
        names = frozenset(mentioned(predicate, self.scopes))
        if written.is_or:
            branches = {self.scopes.branch(name, written) for name in names} - {None}
            if len(branches) > 1:
                self.report(
                    "across-or-branches",
                    "a condition compares two branches of an OR",
                    span_of(predicate, written),
                    detail="a match has the events of one branch only",
                    hint="write a condition for each branch",
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
        """Whether a predicate with aggregates is at the level of its groups, not inside a neighbour."""
        for name, part in mentioned(predicate, self.scopes).items():
            if not name.startswith(AGGREGATED):
                continue
            around = self.scopes.of[name]
            inside = next((s for s in place.path if s not in around.path and s.apart), None)
            if inside is not None:
                what = "group" if inside.group is not None else "negation"
                self.report(
                    "aggregate-inside",
                    f"`{print_expression(part)}` is inside a {what} beside the group",
                    span_of(part, place),
                    detail=f"a {what} and a group beside it look at their events independently",
                    hint="write the condition around both, or compare with single events",
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
        """Whether the scope sees every variable of the predicate; reports why not."""
        reported = set()
        for name in mentioned(predicate, self.scopes):
            reason = self.scopes.unseen(name, place)
            if reason is not None and reason not in reported:
                reported.add(reason)
                self.diagnostics.append(unseen_variable(reason, name, predicate, place, self.scopes))
        return not reported

    # -- WHERE ---------------------------------------------------------------------------------------------

    def split(self, where: Expression, placed: dict[Scope, list[Expression]]) -> list[Placed]:
        """The conditions of the WHERE clause, added to those already placed, once for each alternative."""
        where = transform(transform(where, _counted), self.with_variable)
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
            self.report(
                "too-many-alternatives",
                f"the WHERE clause splits into more than {MOST_ALTERNATIVES} alternatives",
                where.span,
                detail="each OR over a negated component doubles them or more",
                hint="move conditions out of the ORs, or write several queries",
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
        """Whether all alternatives of the clause give every group the same members."""
        for part in walk(inward(where)):
            if not isinstance(part, Or) or not mentions_negative(part, self.scopes):
                continue
            for name in sorted(variables(part)):
                group = self.scopes.group_of_match(name)
                if group is not None:
                    self.report(
                        "group-or-negation",
                        f"the alternatives of this OR would give the group `{group}` different members",
                        part.span,
                        detail="an OR that mentions a negated component is run as several queries",
                        hint="write each condition with its component, or write two queries",
                    )
                    return False
        return True

    def check_equivalences(self, where: Expression) -> None:
        """Report `[a.id]`: brackets are about all events."""
        for part in walk(where):
            if isinstance(part, Equivalence) and part.attribute.partition(PATH_MARK)[0] in self.written:
                name = part.attribute.partition(PATH_MARK)[2]
                if name:
                    self.report(
                        "equivalence-with-variable",
                        "brackets take attributes without variables",
                        part.span,
                        hint="all events agree on the attribute",
                        suggestion=f"[{print_name(name)}]",
                    )

    def covers_groups(self, where: Expression) -> bool:
        """Whether every `[attribute]` is a condition of its own, so that it can select members of groups."""
        if not self.scopes.groups:
            return True
        joined = [part for part in conjuncts(where) if not isinstance(part, Equivalence)]
        inside = [part for whole in joined for part in walk(whole) if isinstance(part, Equivalence)]
        for part in inside:
            self.report(
                "equivalence-over-group",
                f"`{print_expression(part)}` is under OR or NOT, and the pattern has a group",
                part.span,
                detail="it also applies to the members of the group, and selects them",
                hint="join it with AND alone, or compare the attributes of the single events",
            )
        return not inside

    def with_variable(self, part: Expression) -> Expression:
        """Give an attribute without a variable the only event of the pattern."""
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
            self.report(
                "ambiguous-attribute",
                f"the attribute `{part.name}` has no variable",
                part.span,
                hint=f"write whose attribute it is, as in `{example}.{part.name}`",
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


_COUNTED = "\0"
"""Marks the variable of `COUNT(f)` while attributes without a variable get one."""


def _counted(part: Expression) -> Expression:
    if isinstance(part, Aggregate) and isinstance(part.operand, Attribute) and part.operand.variable is None:
        return replace(part, operand=replace(part.operand, variable="", inner=_COUNTED))
    return part
