"""Declares the variables of a pattern: builds the scope tree, names what the query left unnamed.

A primitive without variable goes by the name of its type where that is unambiguous; where it is not, it gets
a name of its own for the output (`A_1`, `A_2`) that no predicate may use.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count

from nestream.binding.scopes import Scope, Scopes
from nestream.language.ast import Composite, Exists, Negation, Operator, Pattern, Primitive, Step, parts
from nestream.language.printer import print_pattern
from nestream.model.diagnostics import Diagnostic, Severity, Span
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Expression
from nestream.model.text import print_name


@dataclass
class Declarations:
    """The scope tree with the predicates still where the query writes them."""

    scopes: Scopes
    order: tuple[str, ...]
    """The variables in the order of the text."""
    hidden: frozenset[str]
    """The variables that an EXISTS drops from the output."""
    written: list[tuple[Scope, Expression]]
    """Every predicate of the pattern with the scope it is written in."""
    ambiguous: frozenset[str]
    """The type names that stand for several primitives, so that they cannot serve as variables."""
    diagnostics: list[Diagnostic] = field(default_factory=list)


def declare(pattern: Pattern) -> Declarations:
    """Build the scopes of a pattern and name its primitives."""
    return _Declaring(pattern).run()


class _Declaring:
    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.diagnostics: list[Diagnostic] = []
        self.written: list[tuple[Scope, Expression]] = []
        self.hidden: set[str] = set()
        self.hiding: dict[Scope, Exists] = {}
        self.order: list[str] = []
        names, self.ambiguous = _names(pattern)
        self.names = iter(names)
        self.taken = set(names)

    def run(self) -> Declarations:
        root = self.scope(self.pattern, None, negated=False)
        self.check_shown(root)
        return Declarations(
            scopes=Scopes(root),
            order=tuple(self.order),
            hidden=frozenset(self.hidden),
            written=self.written,
            ambiguous=self.ambiguous,
            diagnostics=self.diagnostics,
        )

    def scope(self, pattern: Pattern, parent: Scope | None, *, negated: bool) -> Scope:
        """The scope of a pattern that is not a primitive component of a SEQ or an AND."""
        match pattern:
            case Exists(variables=dropped, body=body):
                scope = self.scope(body, parent, negated=negated)
                self.hide(pattern, dropped, scope)
                return scope
            case Negation(body=body):
                self.misplaced_negation(pattern, parent, negated=negated)
                return self.scope(body, parent, negated=negated)
            case Primitive():
                self.check_step(pattern, parent)
                scope = Scope(pattern, parent, pattern.span, negated)
                self.leaf(pattern, scope)
                return scope
            case Composite():
                scope = Scope(pattern, parent, pattern.span, negated)
                for component in pattern.components:
                    self.component(component, scope)
                self.written += [(scope, predicate) for predicate in pattern.predicates]
                self.check_positive(pattern)
                return scope

    def component(self, component: Pattern, scope: Scope) -> None:
        match component:
            case Primitive() if not scope.is_or:
                self.check_step(component, scope)
                between = self.between(component, scope)
                self.leaf(component, scope)
                if between is not None:
                    self.name_between(between, component, scope)
            case Negation(body=body) if not scope.is_or:
                scope.items.append(self.scope(body, scope, negated=True))
            case _:
                scope.items.append(self.scope(component, scope, negated=False))

    def check_step(self, primitive: Primitive, scope: Scope | None) -> None:
        """Report NEXT or DIRECTLY without an event before it, and a type that may be meant as the word."""
        in_sequence = scope is not None and isinstance(scope.pattern, Composite)
        in_sequence = in_sequence and scope.pattern.operator is Operator.SEQ  # type: ignore[union-attr]
        follows = in_sequence and any(not _is_negative(item) for item in scope.items)  # type: ignore[union-attr]
        word = primitive.types[0].upper()
        if primitive.step is not Step.ANY and not follows:
            self.diagnostics.append(
                Diagnostic(
                    "misplaced-step",
                    f"{primitive.step} has no event on its left"
                    if in_sequence
                    else f"{primitive.step} is not in a SEQ",
                    primitive.span,
                    detail=f"{primitive.step} says what comes between an event and the component before it",
                    hint=f"write it in a SEQ, after a positive component: `SEQ(A a, {primitive.step} B b)`",
                )
            )
        elif follows and word in {Step.NEXT, Step.DIRECTLY} and primitive.variable is not None:
            name = print_name(primitive.variable)
            self.diagnostics.append(
                Diagnostic(
                    "step-as-type",
                    f"`{primitive.types[0]} {name}` is an event of the type `{primitive.types[0]}`",
                    primitive.span,
                    Severity.WARNING,
                    hint=f"for {word} write a type and a variable: `{word} {name} x`",
                )
            )

    def between(self, primitive: Primitive, scope: Scope) -> Scope | None:
        """The place of the negation that NEXT or DIRECTLY is short for."""
        if primitive.step is Step.ANY:
            return None
        types = (ANY_TYPE,) if primitive.step is Step.DIRECTLY else primitive.types
        negation = Scope(replace(primitive, types=types, step=Step.ANY), scope, primitive.span, negated=True)
        scope.items.append(negation)
        return negation

    def name_between(self, negation: Scope, primitive: Primitive, scope: Scope) -> None:
        """Name the event that must not come between, by the word and the variable."""
        variable = next(name for name in reversed(self.order) if name in scope.leaves)
        name = f"{primitive.step.lower()} {variable}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        negation.stands_for = variable
        negation.leaves[name] = primitive
        negation.items.append(name)
        self.order.append(name)

    def leaf(self, primitive: Primitive, scope: Scope) -> None:
        name = next(self.names)
        if name in self.order:
            self.diagnostics.append(
                Diagnostic(
                    "duplicate-variable",
                    f"the variable `{name}` is declared twice",
                    primitive.span,
                    detail="a variable stands for one event of a match",
                    hint="give this component another variable",
                )
            )
            name = f"{name} (again)"
        self.order.append(name)
        scope.leaves[name] = primitive
        scope.items.append(name)
        self.written += [(scope, predicate) for predicate in primitive.predicates]

    def hide(self, pattern: Exists, dropped: tuple[str, ...], scope: Scope) -> None:
        bound = {name for part in scope.walk() if not _is_negated(part, scope) for name in part.leaves}
        for name in dropped:
            if name not in bound:
                self.diagnostics.append(
                    Diagnostic(
                        "exists-unknown-variable",
                        f"EXISTS names `{name}`, which its pattern does not have",
                        pattern.span,
                        hint=f"its variables are {', '.join(f'`{n}`' for n in sorted(bound))}"
                        if bound
                        else "it has no variables",
                    )
                )
        scope.hidden |= frozenset(dropped)
        self.hidden |= set(dropped)
        self.hiding[scope] = pattern

    def check_shown(self, root: Scope) -> None:
        """A match must show an event: EXISTS may drop whole components, but not all of the query."""
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
        self.diagnostics.append(Diagnostic("exists-drops-everything", message, span, severity, hint=hint))

    def shows(self, scope: Scope) -> bool:
        """Whether every match of a positive scope binds a variable that no EXISTS drops."""
        shown = [
            item not in self.hidden if isinstance(item, str) else self.shows(item)
            for item in scope.items
            if isinstance(item, str) or not item.negated
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
        self.diagnostics.append(Diagnostic("misplaced-negation", message, negation.span, hint=hint))

    def check_positive(self, composite: Composite) -> None:
        if composite.operator is Operator.OR:
            return
        if all(isinstance(component, Negation) for component in composite.components):
            self.diagnostics.append(
                Diagnostic(
                    "no-positive-component",
                    f"{composite.operator} has no positive component",
                    composite.span,
                    detail="a negation only filters the matches of the components beside it",
                    hint="add a component without `!`",
                )
            )


def _is_negated(scope: Scope, around: Scope | None = None) -> bool:
    """Whether a scope is negated, as seen from one around it."""
    return any(above.negated for above in scope.path[len(around.path) if around else 0 :])


def _names(pattern: Pattern) -> tuple[list[str], frozenset[str]]:
    """A name for every primitive in the order of the text, and the type names that are ambiguous."""
    primitives = [part for part in parts(pattern) if isinstance(part, Primitive)]
    taken = {primitive.variable for primitive in primitives if primitive.variable is not None}
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
    return isinstance(item, Scope) and item.negated


def negation_with(scope: Scope, predicate: Expression) -> str:
    """The text of a negated expression with one more predicate."""
    body = scope.pattern
    return print_pattern(Negation(replace(body, predicates=(*body.predicates, predicate))))


def span_of(expression: Expression, scope: Scope) -> Span:
    """Where to point for a predicate: its own place, or its scope's where it has none."""
    return expression.span if expression.span.end else scope.span
