"""Finds what running queries name and no event has had so far: attributes and types, most likely misspelt.

JSON lines declare no columns, so nothing can be refused: an attribute or a type may still come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.diagnostics import Diagnostic
from nestream.model.event_types import ANY_TYPE
from nestream.model.unseen import MOST_TYPES, similar_type

ENOUGH = 10
"""After how many events of a type an attribute counts as missing, unless a close name says so earlier."""


class Unseen:
    """The columns and the types of the events so far, and what the running queries miss in them."""

    def __init__(self, parsed: Callable[[], Any], time: str, type: str) -> None:
        self._parsed, self._time, self._type = parsed, time, type
        self.columns: dict[str, pa.DataType] = {}
        self._types: Counter[str] = Counter()
        self._is_known = True
        """Whether all events since the first start were noted."""
        self._asked: tuple[Any, ...] = ()
        self._found: dict[str, list[str]] = {}

    def note(self, events: pa.Table) -> None:
        """Note more events."""
        if not events.num_rows or self._type not in events.column_names:
            return
        if any(name not in self.columns for name in events.column_names):
            own = dict(zip(events.schema.names, events.schema.types, strict=True))
            self.columns = {**own, **self.columns}
        for chunk in events.column(self._type).chunks:
            for entry in pc.value_counts(chunk).to_pylist():
                name = str(entry["values"])
                if entry["values"] is not None and (name in self._types or len(self._types) <= MOST_TYPES):
                    self._types[name] += entry["counts"]

    def json(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"columns": list(self.columns), "types": dict(self._types)} if self._is_known else {}

    def go_on(self, saved: Mapping[str, Any]) -> None:
        """Continue from a checkpoint; one of an earlier version does not know what came."""
        self._is_known = "types" in saved
        self.columns = dict.fromkeys(saved.get("columns", ()), pa.null())
        self._types = Counter(saved.get("types", {}))

    def sentences(self, *, ended: bool) -> dict[str, list[str]]:
        """What each query misses; at the end of the events, a few of a type are enough."""
        if not self._is_known or not self._types:
            return {}
        parsed = self._parsed()
        few = tuple(min(number, ENOUGH) for number in self._types.values())
        asked = (parsed, len(self.columns), few, ended)
        if asked != self._asked:
            self._asked, self._found = asked, self._missing(parsed, ended)
        return self._found

    def _missing(self, parsed: Any, ended: bool) -> dict[str, list[str]]:
        often = {name for name, number in self._types.items() if ended or number >= ENOUGH}
        if ended or self._types.total() >= ENOUGH:
            often.add(ANY_TYPE)
        all_columns = (self.columns, {*self._types, ANY_TYPE}, self._time, self._type)
        found: dict[str, list[str]] = {}
        sure = parsed.unknown_attributes(self.columns, often, self._time, self._type)
        for name, problems in parsed.unknown_attributes(*all_columns).items():
            told = [one for one in problems if one in sure.get(name, ()) or _is_close(one)]
            found[name] = list(dict.fromkeys(map(_so_far, told)))
        meant: dict[str, str | None] = {}
        for name, wanted in parsed.types_by_query().items():
            for absent in (one for one in wanted if one not in self._types):
                if absent not in meant:  # many rules may name it
                    meant[absent] = similar_type(absent, (), self._types)
                close = meant[absent]
                if close in often and close not in wanted and len(self._types) <= MOST_TYPES:
                    said = f"no event so far has the type `{absent}`; did you mean `{close}`?"
                    found.setdefault(name, []).append(said)
        return {name: told for name, told in found.items() if told}


def _is_close(problem: Diagnostic) -> bool:
    return (problem.hint or "").startswith("did you mean")


def _so_far(problem: Diagnostic) -> str:
    """The diagnostic of `nestream run`, said of events that keep coming."""
    owner, lacks, attribute = problem.message.partition(" events have no attribute ")
    said = f"{problem.message} so far"
    if lacks:
        said = f"no {'' if owner == 'the' else f'{owner} '}event so far has {attribute}"
    return said if problem.hint is None else f"{said}; {problem.hint}"
