"""Numbers as text, worded the same wherever matches or events are counted, cut off or drawn."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun: `1 event`, `2,000 events`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def counted_matches(number: int) -> str:
    """The number of matches: `1 match`, `2,000 matches`."""
    return counted(number, "match", "matches")


def showing(shown: int, total: int, noun: str, plural: str | None = None, *, more: bool = False) -> str:
    """How many of how many are shown: `2,000 events`, or `showing 20 of 2,000 events`.

    With `more`, there are more than `total`, and the exact number is unknown.
    """
    if shown >= total and not more:
        return counted(total, noun, plural)
    return f"showing {shown:,} of {'more than ' if more else ''}{counted(total, noun, plural)}"


def showing_matches(shown: int, total: int, *, more: bool = False) -> str:
    """How many of how many matches are shown."""
    return showing(shown, total, "match", "matches", more=more)


def rough_duration(seconds: float) -> str:
    """A number of seconds in the greatest unit of which there are at least two: `90 s`, `3 h`."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:,.0f} s"
