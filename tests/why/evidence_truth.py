"""Checks the evidence of a match against the reference evaluator: its intervals, events, lacks and sentences.

Where it is decidable, the event that a sentence says is missing is added to the history, in the gap and with
values that satisfy the predicates: then the reference no longer has the match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pyarrow as pa

from nestream.logical.nodes import Group, Negation, WinOr, leaves
from nestream.model.event_types import ANY_TYPE, fits
from nestream.model.expression import attributes, variables
from nestream.model.time import WindowKind
from nestream.query import Query
from nestream.reference import Event, Interval, Order, evaluate, history, holds
from nestream.why import Evidence
from nestream.why.evidence import Way
from nestream.why.partial import Lack
from nestream.why.search import groups_of, negations
from nestream.why.shapes import Shape, shapes
from tests.property.meaning import complete
from tests.why.truth import Truth

VALUES = {"id": (0, 1, 2, 3), "x": (-1, 0, 1, 2, 3, 5), "s": ("u", "v", "w"), "flag": (True, False)}


class EvidenceTruth(Truth):
    """The truth about the evidence of one query's matches over one history."""

    def __init__(self, query: Query, table: pa.Table, order: str) -> None:
        super().__init__(query, table, order)
        self.table, self.order = table, order
        self.repaired = 0

    def check_evidence(self, match: Mapping[str, int]) -> None:
        """All the evidence of a match."""
        why = self.query.why(self.table, dict(match), order=self.order)
        assert why.matched
        binding = {name: self.by_row[row] for name, row in match.items()}
        (shape, *others) = (shape for shape in shapes(self.plan.root) if set(shape.variables) == set(match))
        if others:  # branches with the same variables: any of them may be the one that matched
            return
        root = shape.part(binding).root
        limits = self.meaning.root_limits(root)
        told = list(why.evidence)
        expected = list(negations(self.meaning, root, limits))
        assert len([one for one in told if one.kind == "negation"]) == len(expected)
        for (body, interval), evidence in zip(expected, told, strict=False):
            assert same_interval(evidence.interval, interval)
            assert evidence.found is None
            self._check_absence(body, evidence, binding)
        groups = list(groups_of(self.meaning, root, limits))
        for (group, interval), evidence in zip(groups, told[len(expected) :], strict=True):
            self._check_group(group, interval, evidence, binding)

    # -- groups --------------------------------------------------------------------------------------------

    def _check_group(
        self, group: Group, interval: Interval, evidence: Evidence, binding: Mapping[str, Event]
    ) -> None:
        members = self.meaning.members(group, interval, self.events, dict(binding))
        assert [_rows(member) for member in evidence.members] == [_rows(member) for member in members]
        assert evidence.text.startswith(f"{len(members) or 'no'} ")
        assert len(evidence.events) + evidence.more == len(
            {event.pos for member in members for event in member.values()}
        )

    # -- negations -----------------------------------------------------------------------------------------

    def _check_absence(self, body: Any, evidence: Evidence, binding: Mapping[str, Event]) -> None:
        types = {name for leaf in leaves(body) for name in leaf.types}
        shown = {event.row for event in evidence.events}
        for event in evidence.events:
            assert self.meaning.contains(evidence.interval, self.by_row[event.row])
            assert fits(event.type, types)
            assert event.row not in {own.row for own in binding.values()}
        named = {int(number) for number in re.findall(r"\(#(\d+)\)", evidence.text)}
        assert named <= shown, "a sentence that names an event that is not shown"
        for shape, way in zip(shapes(body), evidence.ways, strict=False):
            self._check_way(shape, way, evidence, binding)

    def _check_way(self, shape: Shape, way: Way, evidence: Evidence, binding: Mapping[str, Event]) -> None:
        known = {**binding, **way.binding}
        assert _consistent(shape, way.binding, known, self)
        if way.stopped is not None:
            assert set(way.binding) == set(shape.variables)
            part = shape.part(way.binding)
            inside = self._inside(evidence.interval)
            groups = self.meaning.groups(part, evidence.interval, inside, known)
            assert (
                self.meaning.violated(part, evidence.interval, inside, known)
                or groups is None
                or not self.meaning.judged(part, known, groups)
            )
            return
        own = set(shape.variables)
        if not way.lacks:
            assert any(not variables(test) & own and not holds(test, binding) for test in shape.tests)
            return
        assert {lack.variable for lack in way.lacks} == own - way.binding.keys()
        for lack in way.lacks:
            self._check_lack(shape, lack, way, evidence, binding)
        assert not any(
            len(longer) > len(way.binding) for longer in self._parts_of(shape, evidence.interval, binding)
        ), "not the longest part"
        self._check_repair(shape, way, evidence, binding)

    def _check_lack(
        self, shape: Shape, lack: Lack, way: Way, evidence: Evidence, binding: Mapping[str, Event]
    ) -> None:
        (leaf,) = (leaf for leaf in shape.leaves if leaf.variable == lack.variable)
        candidates = [
            event
            for event in self._inside(evidence.interval)
            if fits(event.type, leaf.types) and event not in binding.values()
        ]
        if lack.event is None:
            assert len(candidates) == lack.candidates != 1
            assert lack.kind == ("key" if candidates else "absent")
            alone = ({lack.variable: event} for event in candidates)
            assert not any(_consistent(shape, part, {**binding, **part}, self) for part in alone)
            return
        assert lack.event in candidates
        assert lack.kind in {"key", "predicate", "order", "taken"}
        together = {**way.binding, lack.variable: lack.event}
        if lack.kind == "taken":
            assert way.binding[lack.by] == lack.event
        else:
            assert not _consistent(shape, together, {**binding, **together}, self)
        if lack.kind == "order":
            pair = (lack.variable, lack.by)
            first, second = pair if pair in shape.precedes else pair[::-1]
            assert (first, second) in shape.precedes
            assert not self.meaning.before(together[first], together[second])

    def _parts_of(
        self, shape: Shape, interval: Interval, binding: Mapping[str, Event]
    ) -> Iterator[dict[str, Event]]:
        """Every partial match, by enumeration, where that is not too much."""
        inside = [event for event in self._inside(interval) if event not in binding.values()]
        if len(shape.leaves) > 3 or len(inside) > 7:
            return
        choices = [[None, *(e for e in inside if fits(e.type, leaf.types))] for leaf in shape.leaves]
        for chosen in product(*choices):
            part = {leaf.variable: e for leaf, e in zip(shape.leaves, chosen, strict=True) if e is not None}
            distinct = len({event.pos for event in part.values()}) == len(part)
            if distinct and _consistent(shape, part, {**binding, **part}, self):
                yield part

    # -- the missing event ---------------------------------------------------------------------------------

    def _check_repair(self, shape: Shape, way: Way, evidence: Evidence, binding: Mapping[str, Event]) -> None:
        """With the missing event the match is gone."""
        bare = all(
            not isinstance(component, Negation | Group)
            for inner in shape.walk()
            for component in getattr(inner.node, "components", ())
            if not isinstance(inner.node, WinOr)
        )
        if len(way.lacks) != 1 or not bare or self.plan.window.kind is WindowKind.EVENTS:
            return
        (lack,) = way.lacks
        added = self._missing_event(shape, lack, way, binding)
        if added is None:
            return
        rows = [*({**event.attributes} for event in sorted(self.events, key=lambda e: e["n"])), added]
        events = history([row["ts"] for row in rows], [row["type"] for row in rows], rows)
        left = evaluate(complete(self.plan), events, Order(self.order))
        match = {name: event["n"] for name, event in binding.items()}
        assert match not in [{n: e["n"] for n, e in found.events.items()} for found in left], (
            f"with {added} there is still a match, against: {evidence.text}"
        )
        self.repaired += 1

    def _missing_event(
        self, shape: Shape, lack: Lack, way: Way, binding: Mapping[str, Event]
    ) -> dict[str, Any] | None:
        """An event for the variable, in the gap, that satisfies its predicates; None if none is found."""
        (leaf,) = (leaf for leaf in shape.leaves if leaf.variable == lack.variable)
        kind = "Z" if ANY_TYPE in leaf.types else leaf.types[0]
        tests = [test for test in shape.tests if leaf.variable in variables(test)]
        read = {a.name for test in tests for a in attributes(test) if a.variable == leaf.variable}
        if not read <= {*VALUES, "ts", "type"}:
            return None
        names = sorted(read - {"ts", "type"})
        start = min((event.ts for event in self.events), default=0)
        for ts in range(start - 3, start + 40):
            for values in product(*(VALUES[name] for name in names)):
                row = {**dict.fromkeys(self.table.column_names), **dict(zip(names, values, strict=True))}
                row |= {"ts": ts, "type": kind, "n": -1}
                event = Event(10**6 + ts, ts, kind, row)
                together = {**binding, **way.binding, leaf.variable: event}
                strictly = all(ts != other.ts for other in self.events)
                if strictly and self._in_gap(lack.gap, event) and all(holds(t, together) for t in tests):
                    return row
        return None

    def _in_gap(self, gap: Interval, event: Event) -> bool:
        """Whether an event lies in a gap, by its time, which no other event has."""
        ends = ((gap.left, 1), (gap.right, -1))
        return all(
            limit.at is None
            or side * (event.ts - (limit.at.ts if isinstance(limit.at, Event) else limit.at))
            >= (1 if isinstance(limit.at, Event) or not limit.inclusive else 0)
            for limit, side in ends
        )


def _consistent(shape: Shape, part: Mapping[str, Event], known: Mapping[str, Event], truth: Truth) -> bool:
    """Whether the events of a part are in order and fail no predicate that they decide."""
    own = set(shape.variables)
    return all(
        truth.meaning.before(part[early], part[late])
        for early, late in shape.precedes
        if early in part and late in part
    ) and all(holds(test, dict(known)) for test in shape.implied if variables(test) & own <= part.keys())


def same_interval(one: Interval, other: Interval) -> bool:
    """Whether two intervals have the same ends."""
    return (one.left, one.right) == (other.left, other.right)


def _rows(member: Mapping[str, Event]) -> list[tuple[str, int]]:
    return sorted((name, event.pos) for name, event in member.items())
