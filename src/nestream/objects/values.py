"""Converts Python values to constants and durations of the language, and text to parts of a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, TypeVar

from nestream.language.ast import AnyWindow, Query, ReturnExpression, ReturnVariable, WindowParameter
from nestream.language.literals import UnreadableError
from nestream.language.parameters import constant_of
from nestream.language.parser import parse
from nestream.language.windows import full_window
from nestream.model.diagnostics import QueryError, Span
from nestream.model.expression import Expression, Literal, Parameter
from nestream.model.time import Duration, WindowKind
from nestream.model.wording import shortened
from nestream.objects.names import mistake

T = TypeVar("T")


def constant(value: Any) -> Literal:
    """A Python value as a constant; raises for one that the language does not have."""
    if isinstance(value, Decimal) and value.is_finite():
        value = _number_of(value)
    if isinstance(value, datetime) and (value.utcoffset() or timedelta()) % timedelta(minutes=1):
        value = value.astimezone(UTC)  # a text writes offsets in minutes
    found = None if value is None else constant_of(value)
    if found is None:
        raise mistake(
            "not-a-constant", f"{shortened(repr(value))} is not a value of the language", _hint(value)
        )
    return Literal(found)


def _number_of(value: Decimal) -> int | float:
    """The number that a text would produce; decimals are compared by value."""
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    if Decimal(repr(number)) != value:
        raise mistake(
            "not-a-constant",
            f"the decimal {shortened(str(value))} has more digits than a constant can hold",
            'use a parameter, which holds all of them: param("limit")',
        )
    return number


def _hint(value: Any) -> str:
    if value is None:
        return "test for NULL with .is_null() or .is_not_null()"
    if isinstance(value, MethodType | FunctionType | BuiltinMethodType):
        name = getattr(value, "__name__", "x")
        return f'call the method, or write an attribute of that name in brackets, as in o["{name}"]'
    if isinstance(value, list | tuple | set | frozenset):
        return "compare with a list by .is_in([...])"
    return "use a number, a string, a boolean, a datetime, a timedelta, or an attribute of an event"


# ---- lengths -----------------------------------------------------------------------------------------------


def window_of(length: Any) -> AnyWindow:
    """The window from text such as "1 hour" or "100 events", a timedelta, a number or a parameter."""
    if isinstance(length, Parameter):
        return WindowParameter(length)
    if isinstance(length, str):
        found = fragment("WITHIN", length, "a window", lambda query: query.window)
        assert found is not None
        return found
    known = constant_of(length)
    try:
        if isinstance(known, Duration) and known.microseconds >= 0:
            return full_window(WindowKind.TIME, known.microseconds, str(known))
        if isinstance(known, int) and not isinstance(known, bool) and known >= 0:
            return full_window(WindowKind.NUMBER, known, str(known))
    except UnreadableError as wrong:
        raise mistake(wrong.code, wrong.message, wrong.hint or "") from None
    raise mistake(
        "bad-window",
        f"{shortened(repr(length))} is not a window",
        'write a duration such as "1 hour", a timedelta, a number in the unit of the times, '
        '"100 events" or "unbounded"',
    )


def length_of(length: Any) -> Literal | Parameter:
    """The duration after EVERY."""
    if isinstance(length, Parameter):
        return length
    if isinstance(length, str):
        found = fragment("KEEP FIRST EVERY", length, "a length of time", lambda query: query.keep)
        assert found is not None
        assert found.every is not None
        return found.every
    if isinstance(length, timedelta | int) and not isinstance(length, bool):
        return constant(length)
    raise mistake(
        "bad-every",
        f"{shortened(repr(length))} is not a duration",
        'write a duration such as "1 hour", a timedelta, or a number in the unit of the times',
    )


# ---- text --------------------------------------------------------------------------------------------------

_FIELDS = {"WHERE": "where", "WITHIN": "window", "RETURN": "returns", "KEEP FIRST EVERY": "keep"}
_EMPTY: dict[str, Any] = {
    "where": None,
    "window": None,
    "returns": (),
    "into": None,
    "keep": None,
    "limit": None,
}


def formula(text: str) -> Expression:
    """Parse a condition or value from text."""
    found = fragment("WHERE", text, "an expression", lambda query: query.where)
    assert found is not None
    return found


def return_item(text: str) -> ReturnVariable | ReturnExpression:
    """Parse an item of RETURN from text."""
    return fragment("RETURN", text, "one item of RETURN", lambda query: query.returns[0])


def fragment(clause: str, text: str, what: str, taken: Callable[[Query], T]) -> T:
    """Parse the rest of a clause from text; problems point at the text itself."""
    before = f"A {clause} "
    try:
        query = parse(before + text)
    except QueryError as error:
        moved = [replace(each, span=_moved(each.span, len(before))) for each in error.diagnostics]
        raise QueryError(moved, text) from None
    others = {name: empty for name, empty in _EMPTY.items() if name != _FIELDS[clause]}
    if any(getattr(query, name) != empty for name, empty in others.items()) or len(query.returns) > 1:
        raise mistake("too-much-text", f"`{shortened(text)}` is more than {what}", f"write {what} alone")
    return taken(query)


def _moved(span: Span, by: int) -> Span:
    return Span(max(span.start - by, 0), max(span.end - by, 0))
