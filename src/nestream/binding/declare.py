"""Declares the variables of a pattern: builds the scope tree, and names what the query left unnamed.

A primitive without a variable is named after its type if that is unambiguous. Otherwise it gets a name for
the output (`A_1`, `A_2`) that predicates cannot use.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count

from nestream.binding.scopes import Scope, Scopes, group_names, member_variables
from nestream.language.ast import (
    Composite,
    Exists,
    Negation,
    Operator,
    Pattern,
    Primitive,
    Repeated,
    Step,
    parts,
)
from nestream.language.printer import print_pattern
from nestream.model.diagnostics import Diagnostic, Reporting, Severity, Span
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Expression
from nestream.model.text import print_name


@dataclass
class Declarations:
    """The scope tree, with the predicates where the query writes them."""

    scopes: Scopes
    order: tuple[str, ...]
    """The variables in text order."""
    shown: tuple[str, ...]
    """The variables and groups that a match may show, in text order."""
    hidden: frozenset[str]
    """The variables that an EXISTS drops from the output."""
    written: list[tuple[Scope, Expression]]
    """Every predicate of the pattern, with the scope it is written in."""
    ambiguous: frozenset[str]
    """The type names that several primitives share, so that they cannot serve as variables."""
    diagnostics: list[Diagnostic] = field(default_factory=list)


def declare(pattern: Pattern) -> Declarations:
    """Build the scopes of a pattern and name its primitives."""
    return _Declaring(pattern).run()


class _Declaring(Reporting):
    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self.pattern = pattern
        self.written: list[tuple[Scope, Expression]] = []
        self.hidden: set[str] = set()
        self.hiding: dict[Scope, Exists] = {}
        self.order: list[str] = []
        self.shown: list[str] = []
        self.named: set[str] = set()
        names, self.ambiguous = _names(pattern)
        self.names = iter(names)
        self.taken = set(names)

    def run(self) -> Declarations:
        root = self.scope(self.pattern, None, negated=False)
        self.check_shown(root)
        return Declarations(
            scopes=Scopes(root),
            order=tuple(self.order),
            shown=tuple(self.shown),
            hidden=frozenset(self.hidden),
            written=self.written,
            ambiguous=self.ambiguous,
            diagnostics=self.diagnostics,
        )

    def scope(self, pattern: Pattern, parent: Scope | None, *, negated: bool) -> Scope:
        """The scope of a pattern that is not a primitive component of a SEQ or AND."""
        match pattern:
            case Exists(variables=dropped, body=body):
                scope = self.scope(body, parent, negated=negated)
                self.hide(pattern, dropped, scope)
                return scope
            case Negation(body=body):
                self.misplaced_negation(pattern, parent, negated=negated)
                return self.scope(body, parent, negated=negated)
            case Repeated(body=body):
                self.misplaced_group(pattern, parent, negated=negated)
                return self.scope(body, parent, negated=negated)
            case Primitive():
                self.check_step(pattern, None)
                scope = Scope(pattern, parent, pattern.span, negated)
                self.leaf(pattern, scope)
                return scope
            case Composite():
                pattern = self.with_new_name(pattern)
                scope = Scope(pattern, parent, pattern.span, negated)
                shown = len(self.shown)
                for component in pattern.components:
                    self.component(component, scope)
                if pattern.variable is not None:
                    self.named.add(pattern.variable)
                    self.shown[shown:] = [pattern.variable]
                self.written += [(scope, predicate) for predicate in pattern.predicates]
                self.check_positive(pattern)
                return scope

    def with_new_name(self, composite: Composite) -> Composite:
        """The expression without its variable, if another has that variable."""
        name = composite.variable
        if name is None or (name not in self.taken and self.new_name(name, composite)):
            return composite
        if name in self.taken:
            self.report_duplicate(name, composite)
        return replace(composite, variable=None)

    def component(self, component: Pattern, scope: Scope) -> None:
        match component:
            case Primitive() if not scope.is_or:
                self.check_step(component, scope)
                between = self.between(component, scope)
                self.leaf(component, scope)
                if between is not None:
                    self.name_between(between, component, scope)
            case Exists(body=Primitive(step=Step.NEXT | Step.DIRECTLY) as body) if not scope.is_or:
                self.check_step(body, scope)
                between = self.between(body, scope)
                dropped = replace(component, body=replace(body, step=Step.ANY))
                inner = self.scope(dropped, scope, negated=False)
                scope.items.append(inner)
                if between is not None:
                    self.name_between(between, body, inner)
            case Negation(body=body) if not scope.is_or:
                scope.items.append(self.scope(body, scope, negated=True))
            case Repeated() if not scope.is_or:
                scope.items.append(self.group(component, scope))
            case _:
                scope.items.append(self.scope(component, scope, negated=False))

    def check_step(self, primitive: Primitive, scope: Scope | None) -> None:
        """Report NEXT or DIRECTLY without an event before it, and a type that may be the word itself."""
        pattern = None if scope is None else scope.pattern
        in_sequence = isinstance(pattern, Composite) and pattern.operator is Operator.SEQ
        before = [] if scope is None or not in_sequence else scope.items
        follows = any(not _is_negative(item) for item in before)
        word = primitive.types[0].upper()
        if primitive.step is not Step.ANY and not follows:
            hint = f"write it in a SEQ, after a positive component: `SEQ(A a, {primitive.step} B b)`"
            if any(isinstance(item, Scope) and item.group for item in before):
                hint = f"put an event before the group: `SEQ(A a, A+ more, {primitive.step} B b)`"
            self.report(
                "misplaced-step",
                f"{primitive.step} has no event on its left"
                if in_sequence
                else f"{primitive.step} is not in a SEQ",
                primitive.span,
                detail=f"{primitive.step} limits what comes between an event and the component before it",
                hint=hint,
            )
        elif follows and word in {Step.NEXT, Step.DIRECTLY} and primitive.variable is not None:
            name = print_name(primitive.variable)
            self.report(
                "step-as-type",
                f"`{primitive.types[0]} {name}` is an event of the type `{primitive.types[0]}`",
                primitive.span,
                severity=Severity.WARNING,
                hint=f"for {word} write a type and a variable: `{word} {name} x`",
            )

    def between(self, primitive: Primitive, scope: Scope) -> Scope | None:
        """The place of the negation that NEXT or DIRECTLY abbreviates."""
        if primitive.step is Step.ANY:
            return None
        types = (ANY_TYPE,) if primitive.step is Step.DIRECTLY else primitive.types
        negation = Scope(replace(primitive, types=types, step=Step.ANY), scope, primitive.span, negated=True)
        scope.items.append(negation)
        return negation

    def name_between(self, negation: Scope, primitive: Primitive, scope: Scope) -> None:
        """Name the event that must not come between after the word and the variable."""
        variable = next(name for name in reversed(self.order) if name in scope.leaves)
        name = f"{primitive.step.lower()} {variable}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        negation.stands_for = variable
        negation.leaves[name] = primitive
        negation.items.append(name)
        self.order.append(name)

    def group(self, group: Repeated, parent: Scope) -> Scope:
        """The scope of the members of a group."""
        if group.variable is not None:
            self.new_name(group.variable, group)
            self.shown.append(group.variable)
        shown = len(self.shown)
        scope = self.scope(group.body, parent, negated=False)
        if group.variable is not None:
            del self.shown[shown:]
        scope.group = group
        if isinstance(group.body, Primitive) and group.body.step is not Step.ANY:
            self.report(
                "misplaced-step",
                f"{group.body.step} cannot be used in a group",
                group.span,
                detail="a group takes all events in its interval",
                hint=f"leave {group.body.step} out, or write a single event",
            )
        if group.variable is None and not isinstance(group.body, Primitive):
            self.report(
                "unnamed-group",
                "a group of matches needs a name",
                group.span,
                hint="name it after its number, as in `(SEQ(B b, C c))+ p`",
            )
        if group.most == 0:
            self.report(
                "group-of-none",
                "a group of no members is a negation",
                group.span,
                severity=Severity.WARNING,
                hint="write `!`",
                suggestion=print_pattern(Negation(group.body)),
            )
        return scope

    def new_name(self, name: str, pattern: Pattern) -> bool:
        """Whether a variable is new; reports one that is declared twice."""
        if name not in self.order and name not in self.shown and name not in self.named:
            return True
        self.report_duplicate(name, pattern)
        return False

    def report_duplicate(self, name: str, pattern: Pattern) -> None:
        self.report(
            "duplicate-variable",
            f"the variable `{name}` is declared twice",
            pattern.span,
            detail="a variable names one part of a match",
            hint="give this component another variable",
        )

    def misplaced_group(self, group: Repeated, parent: Scope | None, *, negated: bool) -> None:
        """Report a group that is the root, a branch of an OR, or directly under a negation or a group."""
        if negated:
            fewer = replace(group, least=0, most=group.least - 1)
            fits = group.most is None and group.least > 1
            message = "a group cannot be negated"
            hint = (
                "for fewer members write a smaller group"
                if fits
                else "write `!` before the component without the number"
            )
            suggestion = print_pattern(fewer if fits else Negation(group.body))
        elif parent is not None and parent.is_or:
            message, suggestion = "a branch of an OR is a group", None
            hint = "write a SEQ or AND with a single event as the branch, and the group in it"
        else:
            message, suggestion = "a group has no single event beside it", None
            hint = "write it in a SEQ or AND with a single event, as in `SEQ(A a, B+ b)`"
        self.report("misplaced-group", message, group.span, hint=hint, suggestion=suggestion)

    def leaf(self, primitive: Primitive, scope: Scope) -> None:
        name = next(self.names)
        if not self.new_name(name, primitive):
            name = f"{name} (again)"
        self.order.append(name)
        self.shown.append(name)
        scope.leaves[name] = primitive
        scope.items.append(name)
        self.written += [(scope, predicate) for predicate in primitive.predicates]

    def hide(self, pattern: Exists, dropped: tuple[str, ...], scope: Scope) -> None:
        named = {
            inner.variable: {*member_variables(inner), *group_names(inner)}
            for inner in scope.walk()
            if inner.variable is not None and not any(each.apart for each in inner.path[len(scope.path) :])
        }
        bound = {*member_variables(scope), *group_names(scope), *named}
        for name in dropped:
            if name not in bound:
                self.report(
                    "exists-unknown-variable",
                    f"EXISTS names `{name}`, which its pattern does not have",
                    pattern.span,
                    hint=f"its variables are {', '.join(f'`{n}`' for n in sorted(bound))}"
                    if bound
                    else "it has no variables",
                )
        hidden = set(dropped).union(*(named.get(name, ()) for name in dropped))
        hidden |= {name for name, events in named.items() if events & hidden}
        scope.hidden |= hidden
        self.hidden |= hidden
        self.hiding[scope] = pattern

    def check_shown(self, root: Scope) -> None:
        """Check that a match shows an event: EXISTS may drop whole components, but not the whole query."""
        if not self.hidden or self.shows(root):
            return
        bound = {name for scope in root.walk() if not _is_negated(scope) for name in scope.leaves}
        place, severity = root, Severity.ERROR
        message, hint = "EXISTS drops every variable of the query", "keep at least one variable"
        if not bound <= self.hidden:
            severity = Severity.WARNING
            message = "EXISTS drops every variable of a branch, so the matches of that branch are not shown"
            hint = "keep a variable of the branch, or remove the branch"
            while place.is_or:
                place = next(branch for branch in place.nested if not self.shows(branch))
        span = self.hiding[place].span if place in self.hiding else place.span
        self.report("exists-drops-everything", message, span, severity=severity, hint=hint)

    def shows(self, scope: Scope) -> bool:
        """Whether every match of a positive scope binds a variable that no EXISTS drops."""
        shown = [
            item not in self.hidden if isinstance(item, str) else self.shows(item)
            for item in scope.items
            if isinstance(item, str) or not item.apart
        ]
        return all(shown) if scope.is_or else any(shown)

    def misplaced_negation(self, negation: Negation, parent: Scope | None, *, negated: bool) -> None:
        if negated:
            message, hint = (
                "a negation is negated",
                "remove both `!`, or negate a SEQ or AND that has a positive component",
            )
        elif parent is not None and parent.is_or:
            message, hint = (
                "a branch of an OR is a negation",
                "write a SEQ or AND with a positive component as the branch, and negate inside it",
            )
        else:
            message, hint = (
                "a negation has nothing to filter here",
                "write it in a SEQ or AND with a positive component",
            )
        self.report("misplaced-negation", message, negation.span, hint=hint)

    def check_positive(self, composite: Composite) -> None:
        if composite.operator is Operator.OR:
            return
        self.check_neighbours(composite)
        if all(isinstance(component, Negation | Repeated) for component in composite.components):
            grouped = any(isinstance(component, Repeated) for component in composite.components)
            self.report(
                "no-positive-component",
                f"{composite.operator} has no positive component",
                composite.span,
                detail="a group takes the events around single events, so it needs one beside it"
                if grouped
                else "a negation only filters the matches of the components beside it",
                hint="add a component that is one event" if grouped else "add a component without `!`",
            )

    def check_neighbours(self, composite: Composite) -> None:
        """Report groups of a SEQ with nothing between them that separates their events."""
        if composite.operator is not Operator.SEQ:
            return
        last: Repeated | None = None
        for component in composite.components:
            if isinstance(component, Repeated) and last is not None:
                both = [last.body, component.body]
                types = dict.fromkeys(name for b in both if isinstance(b, Primitive) for name in b.types)
                either = all(isinstance(body, Primitive) for body in both)
                self.report(
                    "adjacent-groups",
                    "two groups have no single event between them",
                    last.span.to(component.span),
                    detail="a group takes all the events between its neighbours, so both would take "
                    "the same events",
                    hint="put a single event between them"
                    + (", or write one group of both types" if either else ""),
                    suggestion=f"ANY({', '.join(map(print_name, types))})+ x" if either else None,
                )
            if not isinstance(component, Negation):
                last = component if isinstance(component, Repeated) else None


def _is_negated(scope: Scope, around: Scope | None = None) -> bool:
    """Whether a scope is a negation or a group, as seen from an outer one."""
    return any(above.apart for above in scope.path[len(around.path) if around else 0 :])


def _names(pattern: Pattern) -> tuple[list[str], frozenset[str]]:
    """A name for every primitive in text order, and the ambiguous type names."""
    primitives = [part for part in parts(pattern) if isinstance(part, Primitive)]
    taken = {primitive.variable for primitive in primitives if primitive.variable is not None}
    taken |= {part.variable for part in parts(pattern) if isinstance(part, Repeated) and part.variable}
    implicit = Counter(_implicit_name(primitive) for primitive in primitives if primitive.variable is None)
    ambiguous = frozenset(name for name, count in implicit.items() if count > 1 or name in taken)
    used = taken | set(implicit)
    names = []
    for primitive in primitives:
        name = primitive.variable or _implicit_name(primitive)
        if primitive.variable is None and name in ambiguous:
            name = next(fresh for n in count(1) if (fresh := f"{name}_{n}") not in used)
            used.add(name)
        names.append(name)
    return names, ambiguous


def _implicit_name(primitive: Primitive) -> str:
    return "any" if primitive.types == (ANY_TYPE,) else "_or_".join(primitive.types)


def _is_negative(item: str | Scope) -> bool:
    return isinstance(item, Scope) and item.apart


def negation_with(scope: Scope, predicate: Expression) -> str:
    """The text of a negated expression, or of a group, with one more predicate."""
    body = replace(scope.pattern, predicates=(*scope.pattern.predicates, predicate))
    return print_pattern(Negation(body) if scope.group is None else replace(scope.group, body=body))


def span_of(expression: Expression, scope: Scope) -> Span:
    """Where to point for a predicate: its own place, or that of its scope if it has none."""
    return expression.span if expression.span.end else scope.span
