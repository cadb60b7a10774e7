"""Reads windows: from the tokens after WITHIN to a window, or to what is wrong with it."""

from __future__ import annotations

from lark import Token

from nestream.language.literals import (
    GREATEST_INTEGER,
    UnreadableError,
    duration_value,
    integer_too_large,
    quoted_value,
    string_text,
)
from nestream.model.time import UNBOUNDED, Duration, Window, WindowKind
from nestream.model.wording import shortened

ANY_WINDOW = Window(WindowKind.NUMBER, 1)
"""Stands for a window that could not be read: nothing more is reported about it."""


def read_window(size: Token, unit: Token | None = None, interval_unit: Token | None = None) -> Window:
    """The window from the tokens after WITHIN; raises an `UnreadableError`."""
    if unit is not None and unit.type == "STRING":
        duration = quoted_value(size, string_text(unit), interval_unit)
        if not isinstance(duration, Duration):
            raise not_a_window(f"{size} {unit}")
        return full_window(WindowKind.TIME, duration.microseconds, f"{duration}")
    if size.type == "NAME":
        if size.upper() == "UNBOUNDED":
            return UNBOUNDED
        raise not_a_window(size)
    if unit is not None and unit.upper() not in {"EVENTS", "EVENT"}:
        duration = duration_value(size, unit)
        window = Window(WindowKind.TIME, duration.microseconds)
    else:
        if not size.isdigit():
            what = "a window in events" if unit else "a window without a unit"
            raise UnreadableError(
                "bad-window",
                f"{what} must be a whole number, not {shortened(size)}",
                None if unit else "add a unit to make it a duration, as in `1.5 hours`",
            )
        if len(size.lstrip("0")) > 19 or int(size) > GREATEST_INTEGER:
            raise integer_too_large(size)
        window = Window(WindowKind.EVENTS if unit else WindowKind.NUMBER, int(size))
    return full_window(window.kind, window.size, f"{shortened(str(size))}{f' {unit}' if unit else ''}")


def not_a_window(text: str) -> UnreadableError:
    """Report something else after WITHIN."""
    return UnreadableError(
        "bad-window",
        f"`{shortened(text)}` is not a window",
        "write a duration (`WITHIN 1 hour`), a number (`WITHIN 100`), a count (`WITHIN 100 EVENTS`) "
        "or `WITHIN UNBOUNDED`",
    )


def full_window(kind: WindowKind, size: int, text: str) -> Window:
    """The window of a size other than 0."""
    if size == 0:
        raise UnreadableError(
            "empty-window", f"the window `{text}` is empty", "a window must be greater than 0"
        )
    return Window(kind, size)
