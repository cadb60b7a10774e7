"""What `nestream stream --local` knows of the columns: it refuses or reports attributes that no event has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from nestream import Query, QueryError
from nestream.cli.terminal import note
from nestream.queries import QuerySetError
from nestream.source import declared_columns


def refuse_unknown(
    parsed: Any,
    place: str,
    time: str,
    type: str,
    format: str | None,
    *,
    known: dict[str, pa.DataType],
    names: Collection[str] | None = None,
) -> None:
    """Raise for attributes that no file of a source declares; if a file declares no columns, any may come.

    `known` are the columns that are known before; those of the files that are looked at join them. Of a set,
    only the rules with these names are checked.
    """
    of_rules = {} if names is None else {"names": names}

    def unknown() -> Mapping[str, Any]:
        found: Mapping[str, Any] = parsed.unknown_attributes(known, None, time, type, **of_rules)
        return found

    problems = unknown() if known else {}
    if known and not problems:  # usually, so that no file is opened while a stream waits
        return
    declares = False
    for columns in declared_columns(place, time, type, format):
        if columns is None:
            return
        declares = True
        if new := {name: kind for name, kind in columns.items() if _adds(kind, known.get(name))}:
            known |= new
            problems = unknown()
            if not problems:  # usually after one file
                return
    if not declares or not problems:
        return
    if isinstance(parsed, Query):
        raise QueryError(problems["query"], parsed.text)
    raise QuerySetError({name: QueryError(own, parsed[name].text) for name, own in problems.items()})


def _adds(kind: pa.DataType, known: pa.DataType | None) -> bool:
    """Whether a column is new, or may have new fields."""
    return known is None or (pa.types.is_nested(kind) and kind != known)


class UnseenNotes:
    """Reports once for each rule what it names and no event has had so far."""

    def __init__(self, *, names: bool) -> None:
        self._names = names
        self._told: set[tuple[str, str]] = set()

    def __call__(self, unseen: Mapping[str, list[str]], clear: Callable[[], None]) -> None:
        """Print what is new, after `clear`."""
        for name, sentences in unseen.items():
            for sentence in sentences:
                which = (name, sentence.partition(";")[0])  # the hint changes with the columns
                if which not in self._told:
                    self._told.add(which)
                    clear()
                    note(f"warning: {f'rule {name}: ' if self._names else ''}{sentence}")
