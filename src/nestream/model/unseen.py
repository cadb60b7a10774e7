"""Warns about types that a query names and no event has: most likely misspelt, and otherwise unnoticed.

A type may be missing because the day was quiet. So a type is reported only if the events have a similar one
that the query does not name, or if they have none of the types that the query names.
"""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator

from nestream.model.lazy import pa, pc

_SIMILAR = 0.6
_FIRST_LOOK = 1 << 14
"""How many events are checked first, then four times more, until all types are found."""
MOST_TYPES = 1000
"""The maximum number of event types among which a similar one is searched."""


class UnseenTypeWarning(UserWarning):
    """The query names a type that no event has.

    >>> import warnings
    >>> import nestream
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     number = nestream.query("SEQ(Login a, Logut b) WITHIN 10").count([{"ts": 1, "type": "Logout"}])
    >>> found[0].category.__name__
    'UnseenTypeWarning'
    """


def unseen_types(wanted: Iterable[str], column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Messages about the types of a query that no event has; empty if that is likely to be correct."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    wanted = list(dict.fromkeys(wanted))
    present: set[str] = set()
    possible: set[str] = set()
    first, size = 0, _FIRST_LOOK
    while first < len(column):
        part = column.slice(first, size)
        words = _words(part)
        if words is None or not words.isdisjoint(set(wanted) - present):
            present.update(_names(part))
        else:  # none of the types that are missing can be there
            possible |= words
        if present.issuperset(wanted):  # usually after a few events
            return []
        first, size = first + size, 4 * size
    absent = [name for name in wanted if name not in present]
    if not possible <= present and sentences(wanted, absent, present | possible - set(wanted)):
        present.update(_names(column))
    return sentences(wanted, absent, present)


def _words(column: pa.ChunkedArray) -> set[str] | None:
    """The types that a column of small dictionaries may hold; None for any other column."""
    if not pa.types.is_dictionary(column.type):
        return None
    dictionaries = [chunk.dictionary for chunk in column.chunks]
    if any(len(words) > MOST_TYPES for words in dictionaries):
        return None
    return {str(name) for words in dictionaries for name in words.to_pylist() if name is not None}


def sentences(wanted: Collection[str], absent: Iterable[str], present: Collection[str]) -> list[str]:
    """Messages about the missing types, given those that the events have."""
    if not present or len(present) > MOST_TYPES:
        return []
    all_absent = not any(name in present for name in wanted)
    told = []
    for name in absent:
        meant = similar_type(name, wanted, present)
        if meant is not None:
            told.append(f"no event has type {name!r}; did you mean {meant!r}?")
        elif all_absent:
            shown = ", ".join(repr(other) for other in sorted(present)[:5])
            more = ", ..." if len(present) > 5 else ""
            told.append(f"no event has type {name!r}; the events have {shown}{more}")
    return told


def similar_type(name: str, wanted: Collection[str], present: Collection[str]) -> str | None:
    """The type that a missing one is most likely meant to be: one that came and that nobody names."""
    others = {other.casefold(): other for other in present if other not in wanted}
    meant = difflib.get_close_matches(name.casefold(), others, n=1, cutoff=_SIMILAR)
    return others[meant[0]] if meant and not _differ_by_number(name, others[meant[0]]) else None


def warn_of(told: Iterable[str]) -> None:
    """Warn the caller of nestream, once for each place in their program."""
    for sentence in told:
        level, frame = 2, sys._getframe(1)
        while (
            frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "nestream"
        ):
            level, frame = level + 1, frame.f_back
        warnings.warn(sentence, UnseenTypeWarning, stacklevel=level)


class Seen:
    """Which of the expected types a stream has seen, and which others."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self.wanted = tuple(wanted)
        self.absent = dict.fromkeys(self.wanted)
        self.present: set[str] = set()

    def note(self, column: pa.ChunkedArray | pa.Array) -> None:
        """Note the types of more events; once all are seen, this costs nothing."""
        if self.absent and len(self.present) <= MOST_TYPES:
            self.present.update(_names(column))
            self.absent = {name: None for name in self.absent if name not in self.present}

    def sentences(self) -> list[str]:
        """The messages at the end of the events."""
        return sentences(self.wanted, self.absent, self.present)


def _names(column: pa.ChunkedArray | pa.Array) -> Iterator[str]:
    """The types in a column; chunks may have different dictionaries."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        yield from (str(name) for name in pc.unique(chunk).to_pylist() if name is not None)


def _differ_by_number(one: str, other: str) -> bool:
    """Whether two names differ only in their digits, like `Sensor1` and `Sensor2`."""
    return re.sub(r"\d", "", one) == re.sub(r"\d", "", other)
