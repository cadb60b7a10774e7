"""Explains whether the output has a match, and if not, whether RETURN, KEEP or LIMIT drops it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nestream.logical.nodes import Plan
from nestream.model.keep import Kept
from nestream.model.output import EventColumn
from nestream.model.text import print_expression, print_name
from nestream.model.wording import listed
from nestream.reference import Binding, Event, value
from nestream.why.obstacle import Obstacle
from nestream.why.places import Places
from nestream.why.reach import Timeline
from nestream.why.words import Words

MOST_COMPARED = 5_000
"""How many kept matches are searched for the one that was kept instead."""
_ROW = "number of the row"

Rows = tuple[int | None, ...]
"""The rows of the events that the output keeps of a match, by variable."""


class Output:
    """The matches in the output: with KEEP or LIMIT, they are found by running the query."""

    def __init__(
        self,
        query: Any,
        plan: Plan,
        timeline: Timeline,
        words: Words,
        places: Places,
        read: Mapping[str, Any],
    ) -> None:
        self.query, self.plan = query, plan
        self.timeline, self.words, self.places = timeline, words, places
        self._read = read
        self._found: dict[int | None, dict[Rows, None]] = {}

    def shows(self, binding: Binding) -> bool:
        """Whether the output has a match."""
        if not any(name in binding for name in self.plan.output.kept):
            return False
        if self.plan.limit is None and self.plan.keep is None:
            return True
        return self._rows(binding) in self._matches(self.plan.limit)

    def obstacle(self, binding: Binding) -> Obstacle:
        """Why the output does not have a match."""
        plan, rows = self.plan, tuple(event.row for event in binding.values())
        if not any(name in binding for name in plan.output.kept):
            told = "this is a match, but it returns none of its events, so the output does not have it"
            return Obstacle("output", told, tuple(binding), rows)
        if plan.keep is not None and self._is_dropped(binding):
            kept = self._kept_instead(binding)
            more = {} if kept is None else {"kept": {name: event.row for name, event in kept.items()}}
            told = f"this is a match, but KEEP {plan.keep} keeps {self._told(binding, kept)}"
            all_rows = (*rows, *(row for row in more.get("kept", {}).values() if row not in rows))
            return Obstacle("keep", told, tuple(binding), all_rows, plan.keep.span, more)
        told = f"this is a match, but others come before it and LIMIT {plan.limit} leaves it out"
        return Obstacle("limit", told, tuple(binding), rows, self.places.limit())

    def _is_dropped(self, binding: Binding) -> bool:
        """Whether KEEP, and not LIMIT, drops a match."""
        limit = self.plan.limit
        if limit is not None and len(self._matches(limit)) >= limit:
            return self._rows(binding) not in self._matches(None)
        return True

    # -- KEEP ----------------------------------------------------------------------------------------------

    def _kept_instead(self, binding: Binding) -> dict[str, Event] | None:
        """The match that KEEP prefers to a dropped one; None if there are too many to search."""
        keep = self.plan.keep
        assert keep is not None
        own = self._rows(binding)
        same = [place for place, name in enumerate(self.plan.output.kept) if name in keep.variables]
        agreeing = [rows for rows in self._matches(None) if all(rows[place] == own[place] for place in same)]
        if len(agreeing) > MOST_COMPARED:
            return None
        agreed = self._agreed(self._binding(own))
        others = [found for found in map(self._binding, agreeing) if self._agreed(found) == agreed]
        if keep.kind is Kept.DISJOINT or keep.every is not None:
            before = [found for found in others if self._rank(found) < self._rank(self._binding(own))]
            return before[-1] if before else None
        return others[0] if others else None

    def _agreed(self, binding: Binding) -> list[Any]:
        assert self.plan.keep is not None
        scale = self.timeline.schema.per_microsecond
        return [value(item, binding, scale) for item in self.plan.keep.expressions]

    def _rank(self, binding: Binding) -> tuple[int, list[int]]:
        """The order of the output."""
        positions = [binding[name].pos if name in binding else -1 for name in self.plan.output.kept]
        return _end(binding), positions

    def _told(self, binding: Binding, kept: Binding | None) -> str:
        """The kept match, and what it has that the other does not."""
        keep = self.plan.keep
        assert keep is not None
        if kept is None:
            return "another"
        own = self._binding(self._rows(binding))
        per = [print_name(item) if isinstance(item, str) else print_expression(item) for item in keep.per]
        one = f"one with the same {listed(per)}" if per else "one"
        match keep.kind:
            case Kept.LONGEST | Kept.SHORTEST if _length(kept) == _length(own):
                which = f"{one} that is as long and comes first"
            case Kept.LONGEST:
                which = f"a longer {one}"
            case Kept.SHORTEST:
                which = f"a shorter {one}"
            case Kept.LAST:
                which = f"a later {one}"
            case Kept.DISJOINT:
                which = f"{one} that has not ended when it begins"
            case Kept.FIRST if keep.every is not None:
                which = f"{one} that ends less than {keep.every} before it"
            case Kept.FIRST:
                which = f"an earlier {one}"
        events = ", ".join(self.words.bound(name, event) for name, event in kept.items())
        return f"{which}: {events}"

    # -- runs ----------------------------------------------------------------------------------------------

    def _rows(self, binding: Binding) -> Rows:
        return tuple(binding[name].row if name in binding else None for name in self.plan.output.kept)

    def _binding(self, rows: Rows) -> dict[str, Event]:
        known = {name: row for name, row in zip(self.plan.output.kept, rows, strict=True) if row is not None}
        return dict(zip(known, self.timeline.events(list(known.values()), self.plan), strict=True))

    def _matches(self, limit: int | None) -> dict[Rows, None]:
        """The matches that KEEP keeps, up to a limit, in output order."""
        if limit not in self._found:
            self._found[limit] = dict.fromkeys(self._run(limit))
        return self._found[limit]

    def _run(self, limit: int | None) -> Sequence[Rows]:
        table, name = self.timeline.table, _ROW
        while name in table.column_names:
            name += "_"
        numbered = table.append_column(name, pa.array(np.arange(table.num_rows)))
        plan = self.query.bound.plan
        output = replace(plan.output, columns=tuple(EventColumn(kept) for kept in plan.output.kept))
        plan = replace(plan, output=output, limit=limit)
        asked = replace(self.query, bound=replace(self.query.bound, plan=plan))
        matches = asked.match(numbered, **self._read)
        columns = [pc.struct_field(matches.column(kept), name).to_pylist() for kept in plan.output.kept]
        return list(zip(*columns, strict=True))


def _end(binding: Binding) -> int:
    return max(event.ts for event in binding.values())


def _length(binding: Binding) -> int:
    return _end(binding) - min(event.ts for event in binding.values())
