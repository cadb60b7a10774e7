"""Checks an answer to "why?" against the reference evaluator: its verdict, and every obstacle it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from nestream.logical.nodes import Component, Negation, Node, Plan, WinOr, leaves, target_variables, walk
from nestream.model.diagnostics import Span
from nestream.model.expression import variables
from nestream.query import Query
from nestream.reference import Event, Interval, Meaning, Order, Part, evaluate, holds, value
from nestream.why import Alternative, Obstacle, Why
from nestream.why.shapes import pieces
from tests.property.meaning import complete, events_of

Binding = dict[str, int]


class _Recording(Meaning):
    """The reference's definitions, which note each negation of a match that they come to, and go on."""

    def __init__(self, plan: Plan, order: Order, per_microsecond: int) -> None:
        super().__init__(plan, order, per_microsecond)
        self.seen: list[tuple[Node, Interval]] = []

    def allows(
        self,
        constraint: Component,
        interval: Interval,
        history: Sequence[Event],
        binding: Mapping[str, Event],
    ) -> bool:
        """Note it."""
        assert isinstance(constraint, Negation)
        self.seen.append((constraint.body, interval))
        return True


class Truth:
    """All the matches of a query over a history, found by enumeration, and its definitions."""

    def __init__(self, query: Query, table: pa.Table, order: str) -> None:
        self.query = query
        self.plan: Plan = query.plan
        self.events = events_of(table)
        self.by_row: Mapping[int, Event] = {event["n"]: event for event in self.events}
        self.meaning = Meaning(self.plan, Order(order), 1)
        shown = evaluate(self.plan, self.events, Order(order))[: self.plan.limit]
        self.shown = {self._key({n: e["n"] for n, e in match.events.items()}) for match in shown}
        whole = evaluate(complete(self.plan), self.events, Order(order))
        self.matches: list[Binding] = [{n: e["n"] for n, e in match.events.items()} for match in whole]

    def _key(self, binding: Mapping[str, int]) -> frozenset[tuple[str, int]]:
        return frozenset((n, row) for n, row in binding.items() if n in self.plan.output.kept)

    def shows(self, binding: Mapping[str, int]) -> bool:
        """Whether a complete binding is a match that the output has."""
        return dict(binding) in self.matches and self._key(binding) in self.shown

    def contains(self, picked: set[int]) -> bool:
        """Whether some shown match has all the picked events."""
        return any(picked <= set(match.values()) and self.shows(match) for match in self.matches)

    def parts(self) -> list[Part]:
        """Every way to bind the positive part in order, whatever its window and predicates."""
        return list(self.meaning.bindings(self.plan.root, self.events, frozenset()))

    # -- answers -------------------------------------------------------------------------------------------

    def check(self, why: Why, picked: set[int]) -> None:
        """Everything that the answer says is so."""
        assert why.matched == self.contains(picked)
        for alternative in why.alternatives:
            if alternative.match is not None:
                assert self.shows({n: e.row for n, e in alternative.match.items()})
                assert picked <= {event.row for event in alternative.match.values()}
                assert not alternative.obstacles
                continue
            assert alternative.obstacles, "neither a match nor an obstacle"
            for obstacle in alternative.obstacles:
                self.check_obstacle(alternative, obstacle)

    def check_obstacle(self, alternative: Alternative, obstacle: Obstacle) -> None:
        """One obstacle is a true one."""
        rows = {**alternative.assignment, **alternative.completion}
        binding = {name: self.by_row[event.row] for name, event in rows.items()}
        self._check_span(obstacle.span)
        assert set(obstacle.events) <= self.by_row.keys()
        match obstacle.kind:
            case "type":
                (row,) = obstacle.events
                assert row not in {event.row for event in alternative.assignment.values()}
            case "predicate":
                assert self._false(binding, set(obstacle.variables))
            case "order":
                first, second = (binding[name] for name in obstacle.variables)
                assert [first["n"], second["n"]] == list(obstacle.events)
                assert not self.meaning.before(first, second)
            case "window":
                assert not self.meaning.in_window({n: binding[n] for n in obstacle.variables})
            case "negation":
                self._check_negation(binding, obstacle)
            case "missing":
                self._check_missing(alternative, obstacle)
            case "limit" | "output" | "keep":
                found = {n: e["n"] for n, e in binding.items()}
                assert found in self.matches
                assert not self.shows(found)
                if "kept" in obstacle.more:
                    self._check_kept(found, obstacle.more["kept"])
            case other:
                raise AssertionError(f"unknown kind {other}")

    def _check_kept(self, dropped: Binding, kept: Binding) -> None:
        """What is kept instead is kept, and agrees; without it the other would be kept, or yet another."""
        keep = self.plan.keep
        assert keep is not None
        unlimited = evaluate(self.plan, self.events, self.meaning.order)
        assert kept in [{n: e["n"] for n, e in match.events.items()} for match in unlimited]
        for name in keep.variables:
            assert kept.get(name) == dropped.get(name)
        one, other = ({n: self.by_row[row] for n, row in match.items()} for match in (kept, dropped))
        shown = {name: event for name, event in other.items() if name in self.plan.output.kept}
        for item in keep.expressions:
            assert value(item, one) == value(item, shown)

    def _check_span(self, span: Span | None) -> None:
        if span is not None:
            assert 0 <= span.start < span.end <= len(self.query.text)

    def _false(self, binding: Mapping[str, Event], names: set[str]) -> bool:
        """Whether some predicate about these variables is false, so far as they decide it."""
        own = target_variables(self.plan.root)
        return any(
            variables(piece) & own & binding.keys() == names and not holds(piece, binding)
            for node in walk(self.plan.root)
            if not isinstance(node, Negation) and hasattr(node, "predicates")
            for predicate in node.predicates
            for piece in (predicate, *pieces(predicate))
        )

    def _check_negation(self, binding: Mapping[str, Event], obstacle: Obstacle) -> None:
        """The witness is a match of the negated part in its interval, by the reference's own `occurs`."""
        witness = {name: self.by_row[row] for name, row in obstacle.more["witness"].items()}
        found = [
            (body, interval)
            for part in self.parts()
            if part.binding == binding
            for body, interval in self._negations(part)
            if set(witness) <= {leaf.variable for leaf in leaves(body)}
        ]
        assert found, "a negation that the match does not have"
        assert any(
            self.meaning.occurs(body, interval, self.events, dict(binding))
            and any(
                part.binding == witness
                and self.meaning.satisfied(part, {**binding, **witness})
                and not self.meaning.violated(part, interval, self._inside(interval), {**binding, **witness})
                for part in self.meaning.bindings(body, self._inside(interval), frozenset(binding.values()))
            )
            for body, interval in found
        )

    def _negations(self, part: Part) -> list[tuple[Node, Interval]]:
        """The negations of a match and their intervals, as the reference comes to them."""
        recording = _Recording(self.plan, self.meaning.order, 1)
        root = part
        while isinstance(root.node, WinOr):
            (root,) = root.parts
        recording.violated(root, recording.root_limits(root), self.events, part.binding)
        return recording.seen

    def _inside(self, interval: Interval) -> list[Event]:
        return [event for event in self.events if self.meaning.contains(interval, event)]

    def _check_missing(self, alternative: Alternative, obstacle: Obstacle) -> None:
        """No binding of the positive part has the assigned events: that is what missing means.

        A SASE disjunction gives several alternatives with the same variables; it is so for one of them.
        """
        assigned = {(name, event.row) for name, event in alternative.assignment.items()}
        names = set(alternative.assignment) | set(alternative.missing)
        fitting: dict[int, bool] = {}
        for part in self.parts():
            rows = {(name, event["n"]) for name, event in part.binding.items()}
            if set(part.binding) == names and assigned <= rows:
                fits = self.meaning.in_window(part.binding) and self._satisfied(part)
                branch = id(part.parts[0].node) if isinstance(part.node, WinOr) else 0
                fitting[branch] = fitting.get(branch, False) or fits
        assert not fitting or not all(fitting.values()), "events for what is said to be missing"

    def _satisfied(self, part: Part) -> bool:
        return self.meaning.satisfied(part, part.binding)
