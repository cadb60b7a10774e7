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
    known: Mapping[str, pa.DataType] | None = None,
    names: Collection[str] | None = None,
) -> Mapping[str, pa.DataType]:
    """Raise for attributes that no file of a source declares; if a file declares no columns, any may come.

    Returns the columns of the files that were looked at. `known` are more columns, of events that came
    before. Of a set, only the rules with these names are checked.
    """
    found = dict(known or {})
    problems: Mapping[str, Any] = {}
    for columns in declared_columns(place, time, type, format):
        if columns is None:
            return found
        found |= columns
        problems = parsed.unknown_attributes(found, None, time, type)
        problems = {name: own for name, own in problems.items() if names is None or name in names}
        if not problems:  # usually after one file
            return found
    if not problems:
        return found
    if isinstance(parsed, Query):
        raise QueryError(problems["query"], parsed.text)
    raise QuerySetError({name: QueryError(own, parsed[name].text) for name, own in problems.items()})


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
