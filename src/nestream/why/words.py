"""Writes events, times, intervals and compared values, for people and for programs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from nestream.logical.explain import leaf_label
from nestream.logical.nodes import Component, Leaf, Negation, WinAnd, WinOr, WinSeq
from nestream.logical.text import expression_text
from nestream.model.aggregates import kind_of
from nestream.model.expression import (
    Aggregate,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Expression,
    Literal,
    Negative,
    Previous,
    aggregates,
    attributes,
    plain_variables,
)
from nestream.model.functions import FUNCTIONS
from nestream.model.schema import Kind, Schema
from nestream.model.text import print_expression, print_name, print_value
from nestream.model.time import Duration, counted
from nestream.model.zones import zone_named
from nestream.reference import Event, Interval, Limit, Members, holds, value

_INSTEAD = {"=": "≠", "!=": "=", "<": "≥", "<=": ">", ">": "≤", ">=": "<"}
_TIMES = (Kind.TIMESTAMP, Kind.ZONED)
_LONGEST = 60
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:\d\d(?::\d\d)?)$")


class Words:
    """Writes about events of one schema; times are numbers in the resolution of computations.

    `first` is the number of row 0 for people.
    """

    def __init__(self, schema: Schema, date: str = "", first: int = 0) -> None:
        self.schema = schema
        self.date = date
        self.first = first
        self.by_arrival = schema.by_arrival
        self.scale = schema.per_microsecond
        self.time_kind = schema.kind("ts") or Kind.INTEGER
        self.zone = zone_named(getattr(schema.columns[schema.time], "tz", None) or "UTC")

    # -- times ---------------------------------------------------------------------------------------------

    def time(self, at: int) -> int | str:
        """A time as JSON data: the number, or ISO-8601 text."""
        return self._moment(at, self.time_kind) if self.time_kind in _TIMES else at

    def time_text(self, at: int) -> str:
        """A time for people, without the date if that is known from others."""
        text = str(self.time(at)).replace("T", " ", 1)
        return text.removeprefix(f"{self.date} ") if self.date else text

    def clock_text(self, at: int) -> str:
        """A time for a sentence: without seconds if there are none, and without its offset."""
        text = self.time_text(at)
        if self.time_kind not in _TIMES:
            return text
        text = _OFFSET.sub("", text)
        return text[:-3] if text.count(":") == 2 and text.endswith(":00") else text

    def dated(self, times: Iterable[int]) -> Words:
        """The same, for times next to these: if all are on one day, the date is not repeated."""
        dates = {str(self.time(at))[:10] for at in times} if self.time_kind in _TIMES else set()
        date = dates.pop() if len(dates) == 1 else ""
        return Words(self.schema, date, self.first)

    def number(self, row: int) -> str:
        """An event by its number."""
        return f"#{row + self.first}"

    def length_text(self, length: int) -> str:
        """A difference of times for people."""
        return self._duration(length) if self.time_kind in _TIMES else str(length)

    def _moment(self, at: int, kind: Kind) -> str:
        seconds, rest = divmod(at, 1_000_000 * self.scale)
        try:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
            text = moment.astimezone(self.zone).isoformat(timespec="seconds")
        except OverflowError:
            return str(at)
        digits = str(rest).zfill(6 if self.scale == 1 else 9).rstrip("0")
        fraction = f".{digits}" if digits else ""
        if kind is not Kind.ZONED:
            return moment.isoformat(timespec="seconds")[:19] + fraction
        return text[:19] + fraction + _offset(text)

    def _duration(self, length: int) -> str:
        """A duration in units: `1 h 26 min 21.6 s`."""
        sign, length = ("-" if length < 0 else ""), abs(length)
        parts = []
        for unit, seconds in (("days", 86_400), ("h", 3_600), ("min", 60)):
            whole, length = divmod(length, seconds * 1_000_000 * self.scale)
            parts += [counted(whole, unit)] if whole else []
        if length or not parts:
            whole, rest = divmod(length, 1_000_000 * self.scale)
            digits = str(rest).zfill(6 if self.scale == 1 else 9).rstrip("0")
            parts.append(f"{whole}.{digits} s" if digits else f"{whole} s")
        return sign + " ".join(parts)

    # -- events and intervals ------------------------------------------------------------------------------

    def event(self, event: Event) -> str:
        """An event for people: its number, type and time."""
        return f"{self.number(event.row)} ({event.type} at {self.time_text(event.ts)})"

    def bound(self, variable: str, event: Event) -> str:
        """A variable with its event."""
        return f"{print_name(variable)} = {self.event(event)}"

    def interval(self, interval: Interval) -> dict[str, Any]:
        """An interval as JSON: null if an end is not a time, and which ends are excluded."""
        return {
            "from": self._end(interval.left),
            "to": self._end(interval.right),
            "open": [not interval.left.inclusive, not interval.right.inclusive],
        }

    def _end(self, limit: Limit) -> int | str | None:
        if isinstance(limit.at, Event):
            return self.time(limit.at.ts)
        return self.time(limit.at) if limit.at is not None and limit.measure == "time" else None

    def interval_text(self, interval: Interval, names: Mapping[Event, str]) -> str:
        """An interval for people: `between r (event 3, 7) and o (event 9, 12)`."""
        left, right = interval.left, interval.right
        if isinstance(left.at, Event) and isinstance(right.at, Event) and not right.inclusive:
            return f"between {self._named(left.at, names)} and {self._named(right.at, names)}"
        ends = [self._end_text(left, names, "after", "from"), self._end_text(right, names, "before", "up to")]
        return " and ".join(end for end in ends if end) or "anywhere"

    def _named(self, event: Event, names: Mapping[Event, str]) -> str:
        return f"{names[event]} ({self.number(event.row)} at {self.time_text(event.ts)})"

    def _end_text(self, limit: Limit, names: Mapping[Event, str], strictly: str, loosely: str) -> str:
        word = loosely if limit.inclusive else strictly
        if isinstance(limit.at, Event):
            if limit.inclusive and not self.by_arrival:  # others at its time are inside as well
                word += " the time of"
            return f"{word} {self._named(limit.at, names)}"
        if limit.at is None:
            return ""
        if limit.measure == "position":
            return f"{word} position {max(limit.at, 0)} in the order of time"
        return f"{word} {self.time_text(limit.at)}"

    # -- values --------------------------------------------------------------------------------------------

    def failed(self, formula: Expression, binding: Mapping[str, Event], groups: Members | None = None) -> str:
        """Why a formula does not hold: the formula, and the compared values."""
        text = print_expression(formula)
        if isinstance(formula, Comparison):
            for left, right in pairwise(formula.operands):
                pair = Comparison(formula.operator, (left, right))
                if not holds(pair, binding, self.scale, groups):
                    return f"{text}: {self._compared(pair, binding, len(formula.operands) > 2, groups)}"
        shown = []
        plain = plain_variables(formula)
        parts: list[Expression] = [part for part in attributes(formula) if part.variable in plain]
        for part in dict.fromkeys((*parts, *aggregates(formula))):
            shown.append(f"{print_expression(part)} is {self.value(part, binding, groups)}")
        return f"{text}: {', '.join(shown)}" if shown else f"{text} does not hold"

    def _compared(
        self,
        pair: Comparison,
        binding: Mapping[str, Event],
        named: bool,
        groups: Members | None = None,
    ) -> str:
        left, right = pair.operands
        values = [value(part, binding, self.scale, groups) for part in pair.operands]
        texts = [self.value(part, binding, groups) for part in pair.operands]
        if named:
            texts = [
                f"{print_expression(part)} {text}" if isinstance(part, Attribute) else text
                for part, text in zip((left, right), texts, strict=True)
            ]
        if None in values:
            return f"{texts[0]} beside {texts[1]}, and a comparison with NULL does not hold"
        return f"{texts[0]} {_INSTEAD[pair.operator]} {texts[1]}"

    def value(
        self, expression: Expression, binding: Mapping[str, Event], groups: Members | None = None
    ) -> str:
        """The value of an expression as the language writes it."""
        if isinstance(expression, Literal):
            return print_value(expression.value)
        return self.written(expression, value(expression, binding, self.scale, groups))

    def written(self, expression: Expression, found: Any) -> str:
        """A known value of an expression."""
        kind = self._kind(expression)
        if found is None:
            return "NULL"
        if kind in _TIMES:
            return self._moment(found, kind).replace("T", " ", 1)
        if kind is Kind.DURATION:
            return self._duration(found)
        return shortened(
            print_value(found) if isinstance(found, bool | int | float | str | Decimal) else str(found)
        )

    def _kind(self, expression: Expression) -> Kind:
        """The kind of an expression, as far as times and durations are concerned."""
        match expression:
            case Attribute(name=name):
                return self.schema.kind(name) or Kind.OTHER
            case Literal(value=Duration()):
                return Kind.DURATION
            case Literal(value=datetime()):
                return Kind.TIMESTAMP
            case Negative(operand=operand):
                return self._kind(operand)
            case Aggregate(function=function, operand=operand):
                return kind_of(function, self._kind(operand))
            case Previous(operands=operands):
                return self._kind(operands[0])
            case Call(function=function, arguments=arguments):
                return FUNCTIONS[function].gives or self._kind(arguments[FUNCTIONS[function].least - 1])
            case Arithmetic(operator=operator, left=left, right=right):
                kinds = self._kind(left), self._kind(right)
                if operator == "-" and kinds[0] in _TIMES and kinds[1] in _TIMES:
                    return Kind.DURATION
                return next((kind for kind in kinds if kind in (*_TIMES, Kind.DURATION)), Kind.OTHER)
            case _:
                return Kind.OTHER


def shortened(text: str) -> str:
    """Text of bounded length."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _offset(text: str) -> str:
    """The zone of an ISO-8601 text; empty if it has none."""
    found = _OFFSET.search(text[19:])
    return "" if found is None else "Z" if found[0] == "+00:00" else found[0]


def plain(item: Any) -> Any:
    """A value of a column as JSON data: times as ISO-8601 text, other types as text."""
    match item:
        case None | bool() | int() | str():
            return item
        case float():
            return item if math.isfinite(item) else None
        case datetime():
            text = item.replace(tzinfo=None).isoformat()
            return (text.rstrip("0") if "." in text else text) + _offset(item.isoformat())
        case dict():
            return {str(name): plain(part) for name, part in item.items()}
        case list() | tuple():
            return [plain(part) for part in item]
        case _:
            return str(item)


def pattern(component: Component) -> str:
    """A component on one line without its predicates, as a name."""
    match component:
        case Leaf():
            return leaf_label(component)
        case Negation(body=body):
            return f"!{pattern(body)}"
        case WinSeq(components=inner) | WinAnd(components=inner) | WinOr(components=inner):
            name = type(component).__name__.removeprefix("Win").upper()
            return f"{name}({', '.join(map(pattern, inner))})"
        case _:
            return expression_text(component)
