"""The evidence of known matches of one query over one table of events.

A match is the rows of its events by variable. If the query returns only some of its variables, the others are
searched: any events that complete the match are as good as the original ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nestream.model.schema import Schema
from nestream.reference import Binding, Event, Meaning
from nestream.why.evidence import Evidence
from nestream.why.obstacles import Judge
from nestream.why.places import Places
from nestream.why.reach import Reach, Timeline, TooManyWaysError
from nestream.why.search import Search
from nestream.why.shapes import Shape, shapes
from nestream.why.words import Words

MOST_TRIED = 500_000
"""How many events are tried for the evidence of one match: a picture should not take long."""


@dataclass(frozen=True)
class FoundMatch:
    """A match with all its single events, and what its negations and groups examined."""

    binding: Mapping[str, Event]
    evidence: tuple[Evidence, ...]


class MatchEvidence:
    """Finds the evidence of matches; what it computes from the table is shared."""

    def __init__(self, query: Any, table: pa.Table, schema: Schema, first: int = 0) -> None:
        self.plan, _ = query.typed(schema)
        self.meaning = Meaning(self.plan, schema.order, schema.per_microsecond)
        self.timeline = Timeline(table, schema)
        self.places = Places(query.bound.tree, self.plan, query.text)
        self.words = Words(schema, first=first)
        self.shapes = shapes(self.plan.root)

    def of(self, rows: Mapping[str, int]) -> FoundMatch | None:
        """The evidence of the match with these rows; None if the rest of it cannot be found."""
        if not rows:
            return None
        whole = [shape for shape in self.shapes if set(shape.variables) == rows.keys()]
        found = None
        for found in self._whole(whole, rows) if whole else self._completed(rows):
            if all(evidence.found is None for evidence in found.evidence):
                return found
        return found

    def _whole(self, whole: list[Shape], rows: Mapping[str, int]) -> Iterator[FoundMatch]:
        picked = self.timeline.covering((), list(rows.values()), self.plan)
        binding = dict(zip(rows, picked.picked, strict=True))
        for shape in whole:
            part = shape.part(binding)
            intervals = self._judge(picked).constrained.intervals(part)
            reach: Reach | None = None
            with suppress(TooManyWaysError):
                reach = self.timeline.covering(intervals, list(rows.values()), self.plan)
            judge = self._judge(reach or picked)
            yield FoundMatch(binding, tuple(judge.constrained.evidence(part, reach)))

    def _completed(self, rows: Mapping[str, int]) -> Iterator[FoundMatch]:
        """The first completion of a match with some known variables."""
        reach = self.timeline.around(list(rows.values()), self.plan, self.meaning)
        known = dict(zip(rows, reach.picked, strict=True))
        judge = self._judge(reach)
        try:
            for shape in self.shapes:
                if rows.keys() <= set(shape.variables):
                    for binding in judge.search.bindings(shape, reach, known, {}, windowed=True):
                        if next(judge.constraints(shape, binding, reach), None) is None:
                            yield self._found(judge, shape, binding, reach)
                            return
        except TooManyWaysError:
            return

    def _found(self, judge: Judge, shape: Shape, binding: Binding, reach: Reach) -> FoundMatch:
        ordered = {name: binding[name] for name in shape.variables}
        return FoundMatch(ordered, judge.evidence(shape, ordered, reach))

    def _judge(self, reach: Reach) -> Judge:
        words = self.words.dated(event.ts for event in (reach.events[0], reach.events[-1]))
        return Judge(self.meaning, self.places, words, Search(self.meaning, MOST_TRIED))
