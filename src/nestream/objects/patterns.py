"""Patterns as objects: events, what `seq` and others make of them, and the clauses of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from nestream.language.ast import (
    Composite,
    IntoType,
    KeepClause,
    Negation,
    Operator,
    Primitive,
    Query,
    Repeated,
    ReturnExpression,
    ReturnVariable,
    Step,
)
from nestream.language.ast import Pattern as Tree
from nestream.language.literals import GREATEST_INTEGER
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.language.type_header import header_types
from nestream.model.expression import Aggregate, And, Attribute, Expression, Parameter, conjuncts
from nestream.model.keep import Kept
from nestream.model.results import Form, Matchable
from nestream.model.text import print_name
from nestream.model.wording import listed, shortened
from nestream.objects.expressions import Expr, checked_name, condition_of, joined, value_of
from nestream.objects.names import mistake, refuse_twice, resolved
from nestream.objects.shapes import filtered, named, variable_of, windowed
from nestream.objects.values import length_of, return_item, window_of

if TYPE_CHECKING:
    from datetime import timedelta

    from nestream.query import Query as CheckedQuery

AnyPattern = TypeVar("AnyPattern", bound="Pattern")

ASKED = (
    "a pattern is not true or false\n"
    "  hint: write `&`, `|` and `~` in place of `and`, `or` and `not`, "
    "or all_of(...), any_of(...) and not_(...)"
)


class Pattern(Matchable):
    """An event, a pattern of events, or a whole query; every method returns a new one.

    `str(pattern)` is the text of the query, as `nestream fmt` prints it. Run it with `match`, or pass it to
    `nestream.query` for everything else.
    """

    __slots__ = ("_infix", "_query")

    def __init__(self, query: Query, *, infix: bool = False) -> None:
        self._query = query
        self._infix = infix
        """Whether `&` or `|` made it, so that another one extends the same list."""

    def __nestream_query__(self) -> Query:
        """The syntax tree; `nestream.query` and others accept any object with this method."""
        return resolved(self._query)

    def __str__(self) -> str:
        return print_query(resolved(self._query, strict=False))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shortened(str(self).removeprefix('PATTERN '), 120)!r})"

    def __bool__(self) -> NoReturn:
        raise TypeError(ASKED)

    __iter__ = None

    def _with(self: AnyPattern, **changes: Any) -> AnyPattern:
        return type(self)(replace(self._query, **changes))

    # ---- attributes ----

    @property
    def _variable(self) -> str | None:
        return variable_of(self._query.pattern)

    def _mentioned(self, name: str) -> str:
        """The variable, when one of its attributes is used."""
        variable = self._variable
        if variable is None:
            raise AttributeError(
                f"the pattern `{shortened(str(self))}` has no attribute {name!r}, because it has no name\n"
                '  hint: name it with .named("s") to mention it, as in s.ts; run it with .query()'
            )
        return variable

    def __getattr__(self, name: str) -> Expr:
        """An attribute of the event: `o.id`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return Expr(Attribute(self._mentioned(name), name))

    def __getitem__(self, name: str | Pattern) -> Expr:
        """An attribute of the event, whatever its name: `o["ins-type"]`; for a group, also `p[b].x`."""
        if isinstance(name, Pattern):
            return Expr(Attribute(self._mentioned("..."), name._mentioned("...")))
        return Expr(Attribute(self._mentioned(str(name)), checked_name(name, "an attribute")))

    # ---- components ----

    def named(self: AnyPattern, name: str) -> AnyPattern:
        """Name the pattern: `Recycle r`, `SEQ(A a, B b) s`, `(SEQ(A a, B b))+ p`.

        >>> from nestream import event, seq
        >>> s = seq(event("B"), event("C")).named("s")
        >>> print(seq(event("A"), s).where(s.te - s.ts <= 2).within(10))
        PATTERN SEQ(A, SEQ(B, C) s)
        WHERE s.te - s.ts <= 2
        WITHIN 10
        """
        tree = named(self._query.pattern, checked_name(name, "a variable"))
        return self._with(pattern=tree)

    def filter(self: AnyPattern, *conditions: Expr | str) -> AnyPattern:
        """Add conditions to the pattern: `(Washing w : w.minutes > 3)`.

        Inside another pattern, `where` does the same. For a whole query, `where` adds a WHERE clause.

        >>> from nestream import event
        >>> w = event("Washing")
        >>> print(w.filter(w.minutes > 3))
        PATTERN (Washing : Washing.minutes > 3)
        """
        return self._with(pattern=filtered(self._query.pattern, map(condition_of, conditions)))

    def repeat(self, least: int, most: int | Literal["same"] | None = "same") -> Pattern:
        """Group at least `least` and at most `most` events or matches; None for any number.

        >>> from nestream import event
        >>> f = event("Failure", "f")
        >>> f.repeat(3), f.repeat(3, None), f.repeat(2, 5)
        (Pattern('Failure{3} f'), Pattern('Failure{3,} f'), Pattern('Failure{2,5} f'))
        """
        greatest = least if most == "same" else most
        for number in (least, 0 if greatest is None else greatest):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 10**18:
                raise mistake(
                    "bad-repetition",
                    f"repeat takes whole numbers from 0 on, not {shortened(repr(number))}",
                    "write .repeat(3), .repeat(3, None), .repeat(0, 5) or .repeat(2, 5)",
                )
        if greatest is not None and least > greatest:
            raise mistake(
                "bad-repetition",
                f"repeat asks for at least {least} and at most {most}",
                f"write the smaller number first: .repeat({most}, {least})",
            )
        return Pattern(Query(Repeated(component(self), least, greatest)))

    def one_or_more(self) -> Pattern:
        """Group all events, or matches, in this place, at least one: `Failure+ f`.

        >>> from nestream import event, seq
        >>> f, s = event("Failure", "f").one_or_more(), event("Success", "s")
        >>> print(seq(f, s).where(f.count() > 2).within("1 hour"))
        PATTERN SEQ(Failure+ f, Success s)
        WHERE COUNT(f) > 2
        WITHIN 1 hour
        """
        return self.repeat(1, None)

    def zero_or_more(self) -> Pattern:
        """Group all events, or matches, in this place, possibly none: `Failure* f`.

        >>> from nestream import event
        >>> event("Failure", "f").zero_or_more()
        Pattern('Failure* f')
        """
        return self.repeat(0, None)

    def count(self) -> Expr:
        """Count the members of the group.

        >>> from nestream import event
        >>> event("Failure", "f").one_or_more().count()
        Expr('COUNT(f)')
        """
        return Expr(Aggregate("count", Attribute(None, self._mentioned("count"))))

    def __and__(self, other: Any) -> Pattern:
        return _infix(Operator.AND, self, other)

    def __rand__(self, other: Any) -> Pattern:
        return _infix(Operator.AND, other, self)

    def __or__(self, other: Any) -> Pattern:
        return _infix(Operator.OR, self, other)

    def __ror__(self, other: Any) -> Pattern:
        return _infix(Operator.OR, other, self)

    def __invert__(self) -> Pattern:
        return Pattern(Query(Negation(component(self))))

    # ---- clauses ----

    def where(self: AnyPattern, *conditions: Expr | str) -> AnyPattern:
        """Add conditions, all of which must hold. Inside another pattern, they belong to the component.

        >>> from nestream import event, seq
        >>> a, b = event("A", "a"), event("B", "b")
        >>> print(seq(a, b).where(a.id == b.id, "b.x > 1").within(10))
        PATTERN SEQ(A a, B b)
        WHERE a.id = b.id AND b.x > 1
        WITHIN 10
        """
        if not conditions:
            return self
        before = () if self._query.where is None else (Expr(self._query.where),)
        return self._with(where=joined(And, (*before, *conditions))._tree)

    def within(self: AnyPattern, length: str | int | timedelta | Expr, *, inner: bool = False) -> AnyPattern:
        """Set the window: "1 hour", a timedelta, a number, "100 events", "unbounded" or a parameter.

        Inside another pattern, it is the window of the component. With `inner`, the window is written in the
        pattern even if the pattern is the whole query.

        >>> from nestream import event, seq
        >>> a, b, c = event("A", "a"), event("B", "b"), event("C", "c")
        >>> print(seq(a, seq(b, c).within("2 s")).within("1 hour"))
        PATTERN SEQ(A a, (SEQ(B b, C c) WITHIN 2 s))
        WITHIN 1 hour
        """
        window = window_of(_unwrapped(length))
        if inner:
            return self._with(pattern=windowed(self._query.pattern, window))
        if self._query.window is not None:  # both hold: the first becomes the component's
            return type(self)(Query(component(self))).within(length)
        return self._with(window=window)

    def returning(self: AnyPattern, *items: Pattern | Expr | str, **values: Any) -> AnyPattern:
        """Choose what matches show: events, values by name, or items as text.

        >>> from nestream import event, seq
        >>> r, o = event("Recycle"), event("Operating")
        >>> print(seq(r, o).within("1 hour").returning(r, tool=o.id, minutes=(o.ts - r.ts)))
        PATTERN SEQ(Recycle, Operating)
        WITHIN 1 hour
        RETURN Recycle, Operating.id AS tool, Operating.ts - Recycle.ts AS minutes
        """
        columns: list[ReturnVariable | ReturnExpression] = []
        for item in items:
            if isinstance(item, Pattern):
                columns.append(ReturnVariable(item._mentioned("...")))
            elif isinstance(item, str):
                columns.append(return_item(item))
            else:
                columns.append(ReturnExpression(value_of(item), getattr(item, "_alias", None)))
        for name, value in values.items():
            if isinstance(value, Pattern):
                known = print_name(value._mentioned("..."))
                raise mistake(
                    "renamed-variable",
                    f"the event `{known}` cannot be renamed to `{name}`",
                    f'return it alone, or name it in the pattern: event("...", "{name}")',
                )
            columns.append(ReturnExpression(value_of(value), name))
        return self._with(returns=(*self._query.returns, *columns))

    def into(self: AnyPattern, type: str) -> AnyPattern:
        """Make each match an event of a type, for the other queries of a set.

        >>> from nestream import event
        >>> o = event("Operating")
        >>> print(o.returning(tool=o.id).into("Use"))
        PATTERN Operating
        RETURN Operating.id AS tool INTO Use
        """
        if not self._query.returns:
            raise mistake(
                "into-without-return",
                "the query has INTO and returns no values",
                "INTO makes attributes of the values of RETURN: call .returning(id=o.id) first",
            )
        self._refuse_second("INTO", self._query.into)
        return self._with(into=IntoType(checked_name(type, "a type")))

    def keep(
        self: AnyPattern,
        kind: Literal["first", "last", "longest", "shortest", "disjoint"],
        *,
        per: Pattern | Expr | str | Sequence[Pattern | Expr | str] = (),
        every: str | int | timedelta | Expr | None = None,
    ) -> AnyPattern:
        """Keep one of the matches that agree on `per`; with `every`, another one after that time.

        >>> from nestream import event, seq
        >>> f, g = event("Failure", "f"), event("Failure", "g")
        >>> print(seq(f, g).within("5 minutes").keep("first", per=g.user, every="1 hour"))
        PATTERN SEQ(Failure f, Failure g)
        WITHIN 5 minutes
        KEEP FIRST PER g.user EVERY 1 hour
        """
        self._refuse_second("KEEP", self._query.keep)
        known = [word.lower() for word in Kept]
        if not isinstance(kind, str) or kind.lower() not in known:
            raise mistake(
                "unknown-keep",
                f"keep takes {listed(known, 'or')}, not {shortened(repr(kind))}",
                'write .keep("first", per=a)',
            )
        agreed = [per] if isinstance(per, Pattern | Expr | str) else list(per)
        again = None if every is None else length_of(_unwrapped(every))
        clause = KeepClause(Kept(kind.upper()), tuple(map(_kept_item, agreed)), again)
        return self._with(keep=clause)

    def limit(self: AnyPattern, number: int | Expr) -> AnyPattern:
        """Return only the first `number` matches; it may be a parameter.

        >>> from nestream import event
        >>> print(event("Operating").limit(10))
        PATTERN Operating
        LIMIT 10
        """
        self._refuse_second("LIMIT", self._query.limit)
        most = _unwrapped(number)
        whole = isinstance(most, int) and not isinstance(most, bool) and 0 <= most <= GREATEST_INTEGER
        if not whole and not isinstance(most, Parameter):
            raise mistake(
                "bad-limit",
                f"limit takes a whole number, not {shortened(repr(number))}",
                'write .limit(10), or .limit(param("most"))',
            )
        return self._with(limit=most)

    def sase(self: AnyPattern) -> AnyPattern:
        """Use the SASE dialect, whose window excludes its end.

        >>> from nestream import event, seq
        >>> print(seq(event("A"), event("B")).within(5).sase())
        EVENT SEQ(A, B)
        WITHIN 5
        """
        return self._with(sase=True)

    def _refuse_second(self, clause: str, present: object) -> None:
        if present is not None:
            raise mistake("repeated-clause", f"the query has two {clause} clauses", "remove one of them")

    # ---- running ----

    def _match(self, events: Any, *, to: Form | None = None, **options: Any) -> Any:
        return self.query().match(events, to=to, **options)

    def stream(self, events: Any = None, **options: Any) -> Any:
        """Match events as they arrive; short for `nestream.query(pattern).stream(events)`.

        >>> from nestream import event, seq
        >>> a, b = event("A"), event("B")
        >>> stream = seq(a, b).within(10).stream()
        >>> stream.push({"ts": 1, "type": "A"}), len(stream.push({"ts": 3, "type": "B"}))
        ([], 1)
        """
        return self.query().stream(events, **options)

    def explain(self, **options: Any) -> Any:
        """Show the plan and how the engine runs it; short for `nestream.query(pattern).explain()`.

        >>> from nestream import event
        >>> print(event("Operating").explain().splitlines()[0])
        Match [Operating]
        """
        return self.query().explain(**options)

    def query(self, *, parameters: Mapping[str, Any] | None = None) -> CheckedQuery:
        """Return the checked query; short for `nestream.query(pattern)`.

        >>> from nestream import event
        >>> o = event("Operating")
        >>> o.where(o.id > 7).query().count([{"ts": 1, "type": "Operating", "id": 8}])
        1
        """
        from nestream.query import query

        return query(self, parameters=parameters)


class Event(Pattern):
    """One event of a match; its attributes are values: `o.id`, `o["ins-type"]`, `o.order.id`."""

    __slots__ = ()

    def next(self) -> Event:
        """Require that no other such event comes between it and the previous component: `NEXT Click c`.

        >>> from nestream import event, seq
        >>> seq(event("Login"), event("Click", "c").next())
        Pattern('SEQ(Login, NEXT Click c)')
        """
        return self._stepped(Step.NEXT)

    def directly(self) -> Event:
        """Require that no event at all comes between it and the previous component: `DIRECTLY Logout o`.

        >>> from nestream import event, seq
        >>> seq(event("Login"), event("Logout", "o").directly())
        Pattern('SEQ(Login, DIRECTLY Logout o)')
        """
        return self._stepped(Step.DIRECTLY)

    def _stepped(self, step: Step) -> Event:
        assert isinstance(self._query.pattern, Primitive)
        return self._with(pattern=replace(self._query.pattern, step=step))


# ---- from objects to the tree ------------------------------------------------------------------------------


def pattern_of(source: Any) -> Pattern:
    """The pattern of an object, a checked query, or a text."""
    if isinstance(source, Pattern):
        return source
    if isinstance(source, str) or hasattr(source, "__nestream_query__"):
        if header_types(source)[0] if isinstance(source, str) else getattr(source, "types", {}):
            raise mistake(
                "types-in-component",
                "a part of a query declares the attributes of event types",
                "declare them for the whole query: nestream.query(pattern).with_types(...)",
            )
        return Pattern(parse(source) if isinstance(source, str) else source.__nestream_query__())
    if isinstance(source, Expr):
        raise mistake(
            "condition-as-component",
            f"`{shortened(str(source))}` is a condition or a value, not a pattern",
            "write the components first, then the conditions: seq(a, b, a.id == b.id)",
        )
    raise mistake(
        "not-a-pattern",
        f"{shortened(repr(source))} is not a pattern",
        'write an event, as in event("Login"), a pattern of events, or a text: "Login l"',
    )


def component(source: Any) -> Tree:
    """The tree of a component: its conditions and its window are written inside the pattern."""
    query = pattern_of(source)._query
    for clause, present in (
        ("RETURN", query.returns),
        ("KEEP", query.keep is not None),
        ("LIMIT", query.limit is not None),
        ("the SASE dialect", query.sase),
    ):
        if present:
            raise mistake(
                "clause-in-component",
                f"a component of a pattern cannot have {clause}",
                "only a whole query has it: call the method on the query around",
            )
    tree = query.pattern
    if query.where is not None:
        tree = filtered(tree, conjuncts(query.where))
    return tree if query.window is None else windowed(tree, query.window)


def _unwrapped(value: Any) -> Any:
    """The parameter inside an object, if it is one; anything else stays as it is."""
    return value._tree if isinstance(value, Expr) and isinstance(value._tree, Parameter) else value


def _kept_item(item: Any) -> str | Expression:
    if isinstance(item, Pattern):
        return item._mentioned("...")
    if isinstance(item, str):
        found = return_item(item)
        return found.variable if isinstance(found, ReturnVariable) else found.expression
    return value_of(item)


def _infix(operator: Operator, *sides: Any) -> Pattern:
    parts: list[Tree] = []
    for side in sides:
        tree = component(side)
        made = isinstance(side, Pattern) and side._infix
        if made and isinstance(tree, Composite) and tree.operator is operator:
            parts += tree.components
        else:
            parts.append(tree)
    return Pattern(composite(operator, parts)._query, infix=True)


def composite(operator: Operator, parts: Sequence[Tree], conditions: Sequence[Expression] = ()) -> Pattern:
    """SEQ, AND or OR of components."""
    tree = Composite(operator, tuple(parts), tuple(conditions))
    refuse_twice(tree)
    return Pattern(Query(tree))
