"""Builds patterns: `event`, `seq`, `all_of`, `any_of`, `not_`, `exists`, and `pattern` from text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from nestream.language.ast import Exists, Negation, Operator, Primitive, Query
from nestream.language.ast import Pattern as Tree
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import And, Expression, Or
from nestream.model.wording import shortened
from nestream.objects.expressions import Expr, checked_name, condition_of, joined
from nestream.objects.names import Key, Variable, implied_name, mistake
from nestream.objects.patterns import Event, Pattern, component, composite, pattern_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from nestream.query import Query as CheckedQuery

    AnyPart: TypeAlias = Pattern | CheckedQuery | str
    """What a pattern consists of: patterns, checked queries, or text that is parsed as a pattern."""


def event(type: str | Iterable[str] | None = None, name: str | None = None) -> Event:
    """Create an event of a type, of one of several types, or of any type.

    Without a `name`, the event is named after its type.

    >>> from nestream import event
    >>> event("Recycle"), event("Recycle", "r"), event(["Email", "Call"], "x"), event(name="y")
    (Event('Recycle'), Event('Recycle r'), Event('ANY(Email, Call) x'), Event('ANY y'))
    """
    if type is None:
        types: tuple[str, ...] = (ANY_TYPE,)
    else:
        listed = [type] if isinstance(type, str) or not isinstance(type, Iterable) else list(type)
        if not listed:
            raise mistake("bad-name", "the list of types is empty", "write event() for an event of any type")
        types = tuple(checked_name(each, "an event type") for each in listed)
    if name is None:
        variable = Variable(implied_name(types), Key(), named=False)
    else:
        variable = Variable(checked_name(name, "a variable"), Key())
    return Event(Query(Primitive(types, variable)))


def pattern(source: AnyPart) -> Pattern:
    """Parse a pattern, with its clauses, from text.

    >>> from nestream import event, pattern
    >>> print(pattern("SEQ(A a, B b)").where("a.id = b.id").within("1 hour"))
    PATTERN SEQ(A a, B b)
    WHERE a.id = b.id
    WITHIN 1 hour
    """
    return pattern_of(source)


def seq(*parts: AnyPart | Expr) -> Pattern:
    """Match the components one after the other (SEQ); conditions may follow the components.

    >>> from nestream import event, not_, seq
    >>> a, b, c = event("A", "a"), event("B", "b"), event("C", "c")
    >>> seq(a, not_(b), c, a.id == c.id)
    Pattern('SEQ(A a, !B b, C c, a.id = c.id)')
    """
    return _operator(Operator.SEQ, "seq", parts)


@overload
def all_of(first: AnyPart, /, *parts: AnyPart | Expr) -> Pattern: ...


@overload
def all_of(first: Expr, /, *conditions: Expr) -> Expr: ...


def all_of(*parts: Any) -> Any:
    """Match all components in any order (AND); given conditions, require all of them.

    `a & b` is the same.

    >>> from nestream import all_of, event
    >>> a, b = event("A", "a"), event("B", "b")
    >>> all_of(a, b, a.id == b.id)
    Pattern('AND(A a, B b, a.id = b.id)')
    >>> all_of(a.x > 1, b.x > 1)
    Expr('a.x > 1 AND b.x > 1')
    """
    if parts and all(isinstance(part, Expr) for part in parts):
        return joined(And, parts)
    return _operator(Operator.AND, "all_of", parts)


@overload
def any_of(first: AnyPart, /, *parts: AnyPart | Expr) -> Pattern: ...


@overload
def any_of(first: Expr, /, *conditions: Expr) -> Expr: ...


def any_of(*parts: Any) -> Any:
    """Match one of the components (OR); given conditions, require one of them. `a | b` is the same.

    For an event of one of several types write `event(["A", "B"])`.

    >>> from nestream import any_of, event
    >>> a, b = event("A", "a"), event("B", "b")
    >>> any_of(a, b)
    Pattern('OR(A a, B b)')
    >>> any_of(a.x > 1, a.y > 1)
    Expr('a.x > 1 OR a.y > 1')
    """
    if parts and all(isinstance(part, Expr) for part in parts):
        return joined(Or, parts)
    return _operator(Operator.OR, "any_of", parts)


@overload
def not_(part: AnyPart) -> Pattern: ...


@overload
def not_(part: Expr) -> Expr: ...


def not_(part: AnyPart | Expr) -> Pattern | Expr:
    """Require that no such event occurs here, `!Washing w`; negate a condition. `~a` is the same.

    >>> from nestream import event, not_, seq
    >>> r, w, o = event("Recycle"), event("Washing"), event("Operating")
    >>> seq(r, not_(w.where(w.id == r.id)), o)
    Pattern('SEQ(Recycle, !(Washing, Washing.id = Recycle.id), Operating)')
    """
    if isinstance(part, Expr):
        return ~part
    return Pattern(Query(Negation(component(part))))


def exists(hidden: Pattern | str | Sequence[Pattern | str], part: AnyPart) -> Pattern:
    """Leave some events of a pattern out of the matches: `EXISTS b : SEQ(A a, B b)`.

    >>> from nestream import event, exists, seq
    >>> a, b = event("A", "a"), event("B", "b")
    >>> exists(b, seq(a, b))
    Pattern('EXISTS b : SEQ(A a, B b)')
    """
    listed: list[Any] = [hidden] if isinstance(hidden, Pattern | str) else list(hidden)
    if not listed:
        raise mistake("bad-name", "exists names no event", "write exists(b, seq(a, b))")
    names = tuple(
        each._mentioned("...") if isinstance(each, Pattern) else checked_name(each, "a variable")
        for each in listed
    )
    return Pattern(Query(Exists(names, component(part))))


def _operator(operator: Operator, function: str, parts: Sequence[Any]) -> Pattern:
    components: list[Tree] = []
    conditions: list[Expression] = []
    for part in parts:
        if isinstance(part, Expr | bool):
            conditions.append(condition_of(part))
            continue
        if conditions:
            raise mistake(
                "component-after-predicate",
                f"the component `{shortened(str(part))}` comes after a condition",
                f"write the components of {function} first, then the conditions",
            )
        components.append(component(part))
    if not components:
        raise mistake(
            "no-component",
            f"{function} has no component",
            f'write the events of the pattern, as in {function}(event("A"), event("B"))',
        )
    return composite(operator, components, conditions)
