"""Constants and names: from the text of a token to its value, or to what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches

from nestream.model.time import UNITS, Duration, DurationError
from nestream.model.wording import shortened

GREATEST_INTEGER = 2**63 - 1
_LONGEST_INTEGER = len(str(GREATEST_INTEGER))


@dataclass(eq=False)
class UnreadableError(Exception):
    """A constant that cannot be read: the parts of its diagnostic."""

    code: str
    message: str
    hint: str | None = None
    suggestion: str | None = None
    detail: str | None = None


def name_text(token: str) -> str:
    """The name in a token, without backticks."""
    return token[1:-1].replace("``", "`") if token.startswith("`") else str(token)


def string_text(token: str) -> str:
    """The value of a string token in any quotes; a doubled closing quote is one quote."""
    return token[1:-1].replace(token[-1] * 2, token[-1])


def number_value(token: str) -> int | float:
    """The number of a token. An integer may exceed 64 bits by one, for `-9223372036854775808`."""
    if token.isdigit():
        digits = token.lstrip("0") or "0"
        if len(digits) > _LONGEST_INTEGER or int(digits) > GREATEST_INTEGER + 1:
            raise integer_too_large(token)
        return int(digits)
    value = float(token)
    if value == float("inf"):
        raise UnreadableError(
            "number-too-large",
            f"the number {shortened(token)} is too large",
            "the greatest number is about 1.8e308",
        )
    return value


def integer_too_large(token: str) -> UnreadableError:
    """Report an integer beyond 64 bits."""
    return UnreadableError(
        "number-too-large",
        f"the integer {shortened(token)} does not fit in 64 bits",
        "the greatest integer is 9223372036854775807; write a floating-point number for more, as in `1.0e19`",
    )


def duration_value(number: str, unit: str) -> Duration:
    """The duration of a number and a unit, which must be a whole number of microseconds."""
    if unit.lower() not in UNITS and (unit.startswith("_") or any(map(str.isdigit, unit))):
        raise UnreadableError(
            "bad-number",
            f"`{shortened(number + unit)}` is not a number",
            "write digits alone, without `_` or a prefix, as in `1000`, `2.5` or `1e-3`",
        )
    try:
        return Duration.of(number, unit)
    except DurationError as wrong:
        raise UnreadableError(wrong.code, wrong.message, wrong.hint) from None


_PLAIN_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def quoted_value(kind: str, text: str, unit: str | None = None) -> datetime | Duration:
    """The value of `TIMESTAMP '...'`, `DATE '...'`, `INTERVAL '5' MINUTE` or `INTERVAL '5 minutes'`."""
    if kind.upper() != "INTERVAL":
        if unit is not None:
            message = f"unexpected `{shortened(unit)}` after the string"
            raise UnreadableError("unexpected-string", message, "only INTERVAL takes a unit")
        return timestamp_value(kind, text)
    number, _, rest = text.strip().partition(" ")
    unit = unit or rest.strip()
    if not _PLAIN_NUMBER.fullmatch(number) or not unit or (rest.strip() and rest.strip() != unit):
        message = f"`{shortened(text)}` is not the length of an interval"
        raise UnreadableError("bad-interval", message, "write a number and a unit, as in `5 minutes`")
    return duration_value(number, unit)


_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)? ?(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


def timestamp_value(kind: str, text: str) -> datetime:
    """The moment of `TIMESTAMP '...'`, or the midnight of `DATE '...'`."""
    if kind.upper() not in {"TIMESTAMP", "DATE"}:
        close = get_close_matches(kind.upper(), ["TIMESTAMP", "DATE"], n=1)
        raise UnreadableError(
            "unexpected-string",
            f"unexpected string after the name `{shortened(kind)}`",
            f"did you mean `{close[0]}`?"
            if close
            else "compare with `=`; only TIMESTAMP and DATE take a string",
        )
    wrong = UnreadableError(
        "bad-timestamp",
        f"`{shortened(text)}` is not a {kind.lower()}",
        "write DATE '2026-01-31'"
        if kind.upper() == "DATE"
        else "write TIMESTAMP '2026-01-31 12:00:00', with an optional fraction of a second "
        "(up to 6 digits) and zone (Z or +01:00)",
    )
    if not _TIMESTAMP.fullmatch(text) or (kind.upper() == "DATE" and len(text) != len("2026-01-31")):
        raise wrong
    try:
        moment = datetime.fromisoformat(text.replace(" +", "+").replace(" -", "-").replace(" Z", "Z").upper())
        if moment.tzinfo is not None:
            moment.astimezone(UTC)  # the first or last day may be outside the calendar in UTC
    except (ValueError, OverflowError):
        raise wrong from None
    return moment
