"""Replaces the parameters of a query by their values: `$floor` becomes a constant, never text.

A value is a constant of the language, or a list of them after IN. The length of a window is a duration, a
`timedelta`, or a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from nestream.language.ast import (
    AnyWindow,
    Composite,
    Exists,
    InnerWindow,
    KeepClause,
    Negation,
    Pattern,
    Primitive,
    Query,
    Repeated,
    ReturnExpression,
    WindowParameter,
)
from nestream.language.literals import (
    GREATEST_INTEGER,
    UnreadableError,
    duration_value,
    number_value,
    string_text,
    timestamp_value,
)
from nestream.language.windows import ANY_WINDOW, full_window, not_a_window
from nestream.model.diagnostics import Diagnostic, Reporting, Span
from nestream.model.expression import Equivalence, Expression, In, Literal, Parameter, Value, transform
from nestream.model.time import UNITS, Duration, DurationError, Window, WindowKind
from nestream.model.wording import shortened

Parameters = Mapping[str, Any]


def known_parameters(given: Parameters | None) -> dict[str, Any]:
    """The values by parameter name, without `$`; raises unless names are mapped to values."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(
            f"parameters must map names to values, not {shortened(repr(given))}\n"
            '  hint: write parameters={"floor": 100} for `$floor`'
        )
    return {name.removeprefix("$"): list(value) if is_list(value) else value for name, value in given.items()}


def is_list(value: Any) -> bool:
    """Whether a value is a list of values, of any kind."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def with_values(query: Query, values: Parameters) -> tuple[Query, list[Diagnostic]]:
    """The query with constants in place of its parameters, and the problems with the values."""
    return _Filling(values).query(query)


class _Filling(Reporting):
    def __init__(self, values: Parameters) -> None:
        super().__init__()
        self.values = values
        self.used: dict[str, Span] = {}
        self.missing: dict[str, Span] = {}

    def query(self, query: Query) -> tuple[Query, list[Diagnostic]]:
        filled = replace(
            query,
            pattern=self.pattern(query.pattern),
            where=None if query.where is None else self.formula(query.where),
            window=None if query.window is None else self.window(query.window),
            returns=tuple(
                replace(item, expression=self.formula(item.expression))
                if isinstance(item, ReturnExpression)
                else item
                for item in query.returns
            ),
            limit=self.limit(query.limit) if isinstance(query.limit, Parameter) else query.limit,
            keep=None if query.keep is None else self.keep(query.keep),
        )
        unused = [name for name in self.values if name not in self.used]
        for name, span in self.missing.items():
            close = get_close_matches(name, unused, 1)
            hint = f'pass it with the query: parameters={{"{name}": ...}}, or `--set {name}=...`'
            if close:
                hint = f"`{close[0]}` has a value: did you mean `${close[0]}`?"
                unused.remove(close[0])
            self.report("missing-parameter", f"the parameter `${name}` has no value", span, hint)
        for name in unused:
            known = [*self.used, *self.missing]
            close = get_close_matches(name, known, 1)
            if close:
                hint = f"did you mean `{close[0]}`?"
            elif known:
                hint = f"its parameters are {', '.join(f'`${other}`' for other in known)}"
            else:
                hint = f"write `${name}` in the query where the value belongs, or leave it out"
            message = f"the query has no parameter `${shortened(name)}`"
            self.report("unknown-parameter", message, Span(0, 0), hint)
        return filled, self.diagnostics

    def pattern(self, pattern: Pattern) -> Pattern:
        match pattern:
            case Primitive():
                return replace(pattern, predicates=tuple(map(self.formula, pattern.predicates)))
            case Composite():
                return replace(
                    pattern,
                    components=tuple(map(self.pattern, pattern.components)),
                    predicates=tuple(map(self.formula, pattern.predicates)),
                    windows=tuple(
                        InnerWindow(self.window(each.window), each.span) for each in pattern.windows
                    ),
                )
            case Negation() | Exists() | Repeated():
                return replace(pattern, body=self.pattern(pattern.body))

    # -- values --------------------------------------------------------------------------------------------

    def given(self, parameter: Parameter) -> Any:
        """The value of a parameter; 0 if it has none, which is reported once."""
        if parameter.name in self.values:
            self.used.setdefault(parameter.name, parameter.span)
            return self.values[parameter.name]
        self.missing.setdefault(parameter.name, parameter.span)
        return 0

    def formula(self, formula: Expression) -> Expression:
        return transform(transform(formula, self.filled), self.single)

    def filled(self, part: Expression) -> Expression:
        match part:
            case Parameter():
                return part if self.is_list(part) else self.constant(part)
            case In(values=values) if any(isinstance(each, Parameter) for each in values):
                # only lists are left
                members = tuple(
                    item
                    for each in values
                    for item in (self.members(each) if isinstance(each, Parameter) else (each,))
                )
                if not members:  # no value is in an empty list
                    return Literal(part.negated, part.span)
                return replace(part, values=members)
            case Equivalence(value=Parameter() as value):
                return replace(part, value=self.constant(value))
            case _:
                return part

    def single(self, part: Expression) -> Expression:
        """A constant for a parameter outside IN, which cannot be a list."""
        return self.constant(part) if isinstance(part, Parameter) else part

    def is_list(self, parameter: Parameter) -> bool:
        return is_list(self.values.get(parameter.name))

    def members(self, parameter: Parameter) -> list[Expression]:
        return [self.literal(item, parameter) for item in self.given(parameter)]

    def constant(self, parameter: Parameter) -> Literal:
        return self.literal(self.given(parameter), parameter)

    def literal(self, value: Any, parameter: Parameter) -> Literal:
        """The constant for a value; reports a value that no constant can represent."""
        found = constant_of(value)
        if found is not None:
            return Literal(found, parameter.span)
        what = "NULL" if value is None else f"{shortened(repr(value))}, a {type(value).__name__}"
        hint = "a value is a number, a text, a boolean, a time or a duration"
        if value is None:
            hint = "no comparison with NULL holds: test with IS NULL, in another query"
        elif isinstance(value, int):
            hint = "an integer has 64 bits"
        elif isinstance(value, float):
            hint = "a number is finite"
        elif self.is_list(parameter):
            hint = f"a list of values comes after IN, as in `x IN ${parameter.name}`"
        message = f"the parameter `${parameter.name}` cannot be {what}"
        self.report("bad-parameter", message, parameter.span, hint)
        return Literal(0, parameter.span)

    def window(self, window: AnyWindow) -> Window:
        if isinstance(window, Window):
            return window
        parameter, value = window.parameter, self.given(window.parameter)
        if parameter.name in self.missing:
            return ANY_WINDOW
        try:
            return _window_of(value, window)
        except (UnreadableError, DurationError) as wrong:
            message = f"the parameter `${parameter.name}`: {wrong.message}"
            self.report("bad-parameter", message, parameter.span, wrong.hint)
            return ANY_WINDOW

    def keep(self, keep: KeepClause) -> KeepClause:
        per = tuple(item if isinstance(item, str) else self.formula(item) for item in keep.per)
        every = keep.every
        if isinstance(every, Parameter):
            value = self.given(every)
            if isinstance(value, str):
                try:
                    value = Duration.read(value)
                except DurationError as wrong:
                    message = f"the parameter `${every.name}`: {wrong.message}"
                    self.report("bad-parameter", message, every.span, wrong.hint)
                    value = 1
            every = self.literal(value, every)
        return replace(keep, per=per, every=every)

    def limit(self, parameter: Parameter) -> int:
        value = constant_of(self.given(parameter))
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        message = f"the parameter `${parameter.name}` of LIMIT cannot be {shortened(repr(value))}"
        self.report("bad-parameter", message, parameter.span, "LIMIT takes a whole number")
        return 0


def constant_of(value: Any) -> Value | None:
    """The value as a constant of the language; None if there is none."""
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = value.item()
    match value:
        case bool() | str() | Duration():
            return value
        case UUID():
            return str(value)
        case int():
            return value if -GREATEST_INTEGER - 1 <= value <= GREATEST_INTEGER else None
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return value if value.is_finite() else None
        case timedelta():
            return Duration(value // timedelta(microseconds=1))
        case datetime():
            return datetime.combine(value.date(), value.timetz())
        case date():
            return datetime(value.year, value.month, value.day)
        case _:
            return None


def _window_of(value: Any, window: WindowParameter) -> Window:
    """The window of a value; raises if it is not one."""
    if isinstance(value, str) and window.unit is None:
        value = Duration.read(value)
    constant, unit = constant_of(value), window.unit
    if isinstance(constant, Duration) and unit is None and constant.microseconds >= 0:
        return full_window(WindowKind.TIME, constant.microseconds, str(constant))
    if isinstance(constant, bool) or not isinstance(constant, int | float | Decimal) or constant < 0:
        raise not_a_window(shortened(f"{value!r}{f' {unit}' if unit else ''}"))
    if unit is not None and unit.upper() not in {"EVENT", "EVENTS"}:
        duration = Duration.of(str(constant), unit)
        return full_window(WindowKind.TIME, duration.microseconds, str(duration))
    if not isinstance(constant, int):
        raise not_a_window(str(constant))
    return full_window(WindowKind.EVENTS if unit else WindowKind.NUMBER, constant, str(constant))


_LIST = re.compile(r"\((.*)\)", re.DOTALL)
_ITEM = re.compile(r"""\s*('(?:[^']|'')*'|"(?:[^"]|"")*"|[^,'"]+)\s*(?:,|$)""")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MOMENT = re.compile(r"(?i)(timestamp|date)\s*'([^']*)'")


def read_value(text: str) -> Any:
    """Parse a value for the command line.

    It is a number, TRUE or FALSE, a duration, `TIMESTAMP '...'`, a quoted string, or a list of these in
    parentheses, as in a query; anything else is an unquoted string. Raises an `UnreadableError`.
    """
    found = _LIST.fullmatch(text.strip())
    if found is None:
        return _read_constant(text)
    items, place = [], 0
    while place < len(found[1].rstrip()):
        item = _ITEM.match(found[1], place)
        if item is None:
            raise UnreadableError("bad-parameter", f"`{shortened(text)}` is not a list of values")
        items.append(_read_constant(item[1]))
        place = item.end()
    return items


def _read_constant(text: str) -> Any:
    plain = text.strip()
    if plain.upper() in {"TRUE", "FALSE"}:
        return plain.upper() == "TRUE"
    if len(plain) > 1 and plain[0] in "'\"" and plain[-1] == plain[0]:
        return string_text(plain)
    if _NUMBER.fullmatch(plain):
        value = number_value(plain.removeprefix("-"))
        return -value if plain.startswith("-") else value
    moment = _MOMENT.fullmatch(plain)
    if moment is not None:
        return timestamp_value(moment[1], moment[2])
    number, _, unit = plain.partition(" ")
    if _NUMBER.fullmatch(number) and unit.strip().lower() in UNITS:
        return duration_value(number, unit.strip())
    return text


def names_of(query: Query) -> tuple[str, ...]:
    """The names of the parameters of a query."""
    reading = _Filling({})
    reading.query(query)
    return tuple(reading.missing)


def spelled(values: Parameters) -> str:
    """The values as text, ordered by name: they are part of the identity of a saved state."""
    return "".join(f"\nSET {name}={_spelled(values[name])}" for name in sorted(values))


def _spelled(value: Any) -> str:
    if is_list(value):
        return "(" + ", ".join(map(_spelled, value)) + ")"
    constant = constant_of(value)
    if isinstance(constant, datetime) and constant.tzinfo is not None:
        constant = constant.astimezone(UTC)
    return str(constant) if isinstance(constant, Duration) else repr(constant)
