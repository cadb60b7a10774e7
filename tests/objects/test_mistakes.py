"""Mistakes with objects are reported where they are made, with what to write instead."""

# ruff: noqa: E501 - messages are shown as they are

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import nestream
from nestream import (
    QueryError,
    any_of,
    equal,
    event,
    exists,
    expr,
    fn,
    lit,
    not_,
    param,
    pattern,
    same,
    seq,
)

a, b, w = event("A", "a"), event("B", "b"), event("Washing")
anything: Any = None

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "the same event twice": (
        lambda: seq(a, b, a),
        "the event `a` occurs twice in the pattern\n"
        '  hint: one object is one event of a match: make another with a name of its own, as in `event("A", "a2")`',
    ),
    "the same event twice, once with a condition": (
        lambda: any_of(w, seq(b, w.where(w.x == 1))),
        "the event `Washing` occurs twice in the pattern\n"
        "  hint: one object is one event of a match: make another with a name of its own, "
        'as in `event("Washing", "Washing2")`',
    ),
    "the same expression twice": (
        lambda: seq(expression := pattern("SEQ(C c, D d)").named("s"), expression),
        "the expression `s` occurs twice in the pattern\n"
        '  hint: one object is one expression of a match: make another with a name of its own, as in `.named("s2")`',
    ),
    "an event that is not in the pattern": (
        lambda: seq(a, b).where(a.id == w.id).within(10).query(),
        "the event `Washing` is not in the pattern\n  hint: add it to the pattern, or use one of its events: `a`, `b`",
    ),
    "an event that is nearly in the pattern": (
        lambda: nestream.query(seq(event("Wash", "washing"), b).returning(event("Wash", "washng"))),
        "the event `washng` is not in the pattern\n  hint: did you mean `washing`?",
    ),
    "a duration with a misspelt unit": (
        lambda: seq(a, b).within("1 huor"),
        "unknown unit `huor`\n  at line 1, column 1\n  1 | 1 huor\n    | ^^^^^^\n"
        "  hint: did you mean `hour`? the units are us, ms, s, minutes, hours, days and weeks",
    ),
    "a window of nothing": (
        lambda: seq(a, b).within(timedelta()),
        "the window `0 s` is empty\n  hint: a window must be greater than 0",
    ),
    "a window that is none": (
        lambda: seq(a, b).within(1.5),  # type: ignore[arg-type]
        '1.5 is not a window\n  hint: write a duration such as "1 hour", a timedelta, a number in the unit of the '
        'times, "100 events" or "unbounded"',
    ),
    "a negative window": (
        lambda: seq(a, b).within(-5),
        '-5 is not a window\n  hint: write a duration such as "1 hour", a timedelta, a number in the unit of the '
        'times, "100 events" or "unbounded"',
    ),
    "a window of an attribute": (
        lambda: seq(a, b).within(a.x),
        "Expr('a.x') is not a window\n  hint: write a duration such as \"1 hour\", a timedelta, a number in the unit "
        'of the times, "100 events" or "unbounded"',
    ),
    "more than a window": (
        lambda: seq(a, b).within("1 hour LIMIT 1"),
        "`1 hour LIMIT 1` is more than a window\n  hint: write a window alone",
    ),
    "more than a condition": (
        lambda: a.where("a.x = 1 RETURN a"),
        "`a.x = 1 RETURN a` is more than an expression\n  hint: write an expression alone",
    ),
    "two items in one text": (
        lambda: a.returning("a, a.x AS x"),
        "`a, a.x AS x` is more than one item of RETURN\n  hint: write one item of RETURN alone",
    ),
    "a mistake in a condition of text": (
        lambda: a.where("a.x = "),
        "the WHERE clause ends after `=`\n  at line 1, column 5\n  1 | a.x = \n    |     ^\n  hint: expected a value",
    ),
    "EVERY of nothing known": (
        lambda: a.keep("first", every=1.5),  # type: ignore[arg-type]
        '1.5 is not a duration\n  hint: write a duration such as "1 hour", a timedelta, '
        "or a number in the unit of the times",
    ),
    "EVERY with a misspelt unit": (
        lambda: a.keep("first", every="1 huor"),
        "unknown unit `huor`\n  at line 1, column 1",
    ),
    "KEEP of an unknown kind": (
        lambda: a.keep("best"),  # type: ignore[arg-type]
        "keep takes first, last, longest, shortest or disjoint, not 'best'\n  hint: write .keep(\"first\", per=a)",
    ),
    "two KEEP": (
        lambda: a.keep("first").keep("last"),
        "the query has two KEEP clauses\n  hint: remove one of them",
    ),
    "two LIMIT": (lambda: a.limit(1).limit(2), "the query has two LIMIT clauses\n  hint: remove one of them"),
    "a limit of half a match": (
        lambda: a.limit(0.5),  # type: ignore[arg-type]
        'limit takes a whole number, not 0.5\n  hint: write .limit(10), or .limit(param("most"))',
    ),
    "INTO without RETURN": (
        lambda: a.into("X"),
        "the query has INTO and returns no values\n"
        "  hint: INTO makes attributes of the values of RETURN: call .returning(id=o.id) first",
    ),
    "a renamed event": (
        lambda: a.returning(first=a),
        "the event `a` cannot be renamed to `first`\n"
        '  hint: return it alone, or name it in the pattern: event("...", "first")',
    ),
    "RETURN in a component": (
        lambda: seq(a.returning(a), b),
        "a component of a pattern cannot have RETURN\n"
        "  hint: only a whole query has it: call the method on the query around",
    ),
    "LIMIT in a component of text": (
        lambda: seq("A a LIMIT 1", b),
        "a component of a pattern cannot have LIMIT\n"
        "  hint: only a whole query has it: call the method on the query around",
    ),
    "types in a component of text": (
        lambda: seq("// types: A(id)\nA a", b),
        "a part of a query declares the attributes of event types\n"
        "  hint: declare them for the whole query: nestream.query(pattern).with_types(...)",
    ),
    "types in a component that is checked": (
        lambda: seq(nestream.query("A a").with_types("A(id)"), b),
        "a part of a query declares the attributes of event types\n"
        "  hint: declare them for the whole query: nestream.query(pattern).with_types(...)",
    ),
    "a window of an event": (
        lambda: seq(a.within(5), b),
        "a window of a single event\n"
        "  hint: an event has no length: call .within on a seq or all_of, or on the whole query",
    ),
    "a window of a group": (
        lambda: seq(a, b.one_or_more().within(5)),
        'a window of a group\n  hint: set it on the expression that repeats: seq(a, b).within("10 s").one_or_more()',
    ),
    "a condition before a component": (
        lambda: seq(a, a.x == 1, b),
        "the component `PATTERN B b` comes after a condition\n"
        "  hint: write the components of seq first, then the conditions",
    ),
    "conditions alone": (
        lambda: seq(a.x == 1),
        'seq has no component\n  hint: write the events of the pattern, as in seq(event("A"), event("B"))',
    ),
    "nothing": (
        lambda: seq(),
        'seq has no component\n  hint: write the events of the pattern, as in seq(event("A"), event("B"))',
    ),
    "a number as a component": (
        lambda: seq(a, 5),  # type: ignore[arg-type]
        "5 is not a pattern\n"
        '  hint: write an event, as in event("Login"), a pattern of events, or a text: "Login l"',
    ),
    "a condition as a component": (
        lambda: exists(a, a.x == 1),  # type: ignore[arg-type]
        "`a.x = 1` is a condition or a value, not a pattern\n"
        "  hint: write the components first, then the conditions: seq(a, b, a.id == b.id)",
    ),
    "a comparison of events": (
        lambda: seq(a, b).where(a == b),  # type: ignore[arg-type]
        "the condition is False before it is matched with events\n"
        "  hint: Python compared the objects themselves: write an attribute that has the name of a method "
        'in brackets, as in o["count"], and lit(True) for a constant',
    ),
    "an attribute that has the name of a method": (
        lambda: seq(a, b, a.limit == 5),  # type: ignore[arg-type,comparison-overlap]
        "the condition is False before it is matched with events\n"
        "  hint: Python compared the objects themselves: write an attribute that has the name of a method "
        'in brackets, as in o["count"], and lit(True) for a constant',
    ),
    "a method as a value": (
        lambda: fn.coalesce(a.limit, 1),
        "<bound method Pattern.limit of Event('A a')> is not a value of the language\n"
        '  hint: call the method, or write an attribute of that name in brackets, as in o["limit"]',
    ),
    "an event as a value": (
        lambda: a.x > b,
        "`PATTERN B b` is an event or a pattern, but a value is needed here\n"
        "  hint: write one of its attributes, as in `o.id`",
    ),
    "a number as a condition": (
        lambda: a.where(5),  # type: ignore[arg-type]
        '5 is not a condition\n  hint: write one, as in `a.id == b.id`, or as text: "a.id = b.id"',
    ),
    "None": (
        lambda: a.x == None,  # noqa: E711
        "None is not a value of the language\n  hint: test for NULL with .is_null() or .is_not_null()",
    ),
    "a list": (
        lambda: a.x == [1, 2],
        "[1, 2] is not a value of the language\n  hint: compare with a list by .is_in([...])",
    ),
    "a number without end": (
        lambda: a.x == float("inf"),
        "inf is not a value of the language\n"
        "  hint: use a number, a string, a boolean, a datetime, a timedelta, or an attribute of an event",
    ),
    "a decimal with too many digits": (
        lambda: a.x == Decimal("0.1000000000000000000001"),
        "the decimal 0.1000000000000000000001 has more digits than a constant can hold\n"
        '  hint: use a parameter, which holds all of them: param("limit")',
    ),
    "a text in the place of a list": (
        lambda: a.x.is_in("NL"),
        "'NL' is not a list\n  hint: write the values in a list, as in .is_in(['NL'])",
    ),
    "an attribute in the place of a list": (
        lambda: a.x.is_in(a.y),
        "`a.y` is not a list\n  hint: write the values in a list, as in .is_in([a.x, b.x]), or compare with ==",
    ),
    "an empty list": (
        lambda: a.x.is_in([]),
        "the list is empty\n  hint: give at least one value to compare with",
    ),
    "one value that is equal": (
        lambda: equal(a.x),
        "equal takes two values or more\n  hint: write equal(a.id, b.id, c.id)",
    ),
    "a name that is none": (
        lambda: event(""),
        "'' is not the name of an event type\n  hint: a name is a string of at least one character",
    ),
    "a type that is a number": (
        lambda: event(5),  # type: ignore[arg-type]
        "5 is not the name of an event type\n  hint: a name is a string of at least one character",
    ),
    "no types": (
        lambda: event([]),
        "the list of types is empty\n  hint: write event() for an event of any type",
    ),
    "an attribute that is a number": (
        lambda: a[0],  # type: ignore[index]
        "0 is not the name of an attribute\n  hint: a name is a string of at least one character",
    ),
    "a parameter that is no name": (
        lambda: param("a b"),
        "'a b' is not the name of a parameter\n  hint: write letters, digits and `_`",
    ),
    "a number as text": (
        lambda: expr(5),  # type: ignore[arg-type]
        "5 is not text\n  hint: write lit(...) for a constant",
    ),
    "same of an attribute and another": (
        lambda: same(id=a.id),
        "same(id=...) takes a constant\n  hint: compare two attributes with ==",
    ),
    "same of nothing": (
        lambda: same(),
        'same has no attribute\n  hint: write the attributes, as in same("id")',
    ),
    "EXISTS of nothing": (lambda: exists([], a), "exists names no event\n  hint: write exists(b, seq(a, b))"),
    "half an event": (
        lambda: a.repeat(0.5),  # type: ignore[arg-type]
        "repeat takes whole numbers from 0 on, not 0.5\n"
        "  hint: write .repeat(3), .repeat(3, None), .repeat(0, 5) or .repeat(2, 5)",
    ),
    "fewer at most than at least": (
        lambda: a.repeat(5, 2),
        "repeat asks for at least 5 and at most 2\n  hint: write the smaller number first: .repeat(2, 5)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_with_what_to_write(name: str) -> None:
    made, said = MISTAKES[name]
    with pytest.raises(QueryError) as problem:
        made()
    assert str(problem.value).startswith(f"error: {said}")


ASKED = [
    lambda: a.x == 1 and a.y == 1,
    lambda: a.x == 1 or a.y == 1,
    lambda: not a.x == 1,  # noqa: SIM201
    lambda: a.x == a.y == a.z,
    lambda: 1 < a.x < 5,
    lambda: a.x in [1, 2],
    lambda: 1 in a.x,
    lambda: a.x if a.y else a.z,
    lambda: bool(lit(True)),
]


@pytest.mark.parametrize("made", ASKED)
def test_asking_whether_a_condition_is_true_says_what_to_write(made: Callable[[], Any]) -> None:
    with pytest.raises(
        TypeError,
        match=r"a condition is not true or false before it is matched with events\n  hint: write `&`",
    ):
        made()


@pytest.mark.parametrize("made", [lambda: a and b, lambda: a or b, lambda: not a])
def test_asking_whether_a_pattern_is_true_says_what_to_write(made: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"a pattern is not true or false\n  hint: write `&`"):
        made()


def test_calling_a_function_as_a_method_says_how_functions_are_called() -> None:
    with pytest.raises(
        TypeError, match=r"`a\.name\.lower` is an expression, and cannot be called\n.*fn\.lower"
    ):
        a.name.lower()


def test_an_unknown_function_is_guessed_at() -> None:
    with pytest.raises(AttributeError, match=r"unknown function `lowr`\n  hint: did you mean `lower`\?"):
        fn.lowr(a.x)


def test_a_wrong_number_of_arguments_is_reported_with_its_place() -> None:
    with pytest.raises(QueryError, match=r"the function `coalesce` takes at least .*, not 0"):
        a.where(fn.coalesce() == 1).query()


def test_attributes_of_a_pattern_without_a_name_are_refused() -> None:
    with pytest.raises(AttributeError, match=r'has no name\n  hint: name it with \.named\("s"\)'):
        seq(a, b).ts  # noqa: B018


def test_fields_of_a_computed_value_are_refused() -> None:
    with pytest.raises(AttributeError, match="has no field 'city': it is not an attribute"):
        (a.x + 1).city  # noqa: B018


def test_expressions_and_patterns_are_not_iterated() -> None:
    for made in (a.x, a, seq(a, b)):
        with pytest.raises(TypeError, match="not iterable"):
            list(made)  # type: ignore[call-overload]


def test_what_binding_finds_is_shown_in_the_text_of_the_objects() -> None:
    with pytest.raises(QueryError) as problem:
        seq(a, not_(b), event("C")).filter(b.id == a.id).within(10).query()
    assert str(problem.value) == (
        "error: `b` is negated, so it has no event here\n"
        "  at line 1, column 27\n"
        "  1 | PATTERN SEQ(A a, !B b, C, b.id = a.id)\n"
        "    |                           ^^^^^^^^^^^\n"
        "  a condition on a negated event says which events must not occur\n"
        "  hint: write the condition inside the negation\n"
        "  write: !(B b, b.id = a.id)"
    )


def test_a_missing_window_is_reported_as_for_text() -> None:
    with pytest.raises(QueryError, match="the query has no WITHIN"):
        seq(a, b).query()
