"""The matches of a query over a history, section by section of docs/reference/semantics.md.

"Positive part": every way to bind the positive components, in order, in the window, with all predicates.
"Negative part": a complete positive match is dropped if some negation has a match in its interval. A
rewritten plan also has the witnesses of docs/papers/rewriting.md, which must be found in their intervals.
"Output": the distinct bindings of the variables that the output keeps.

There is no optimisation: everything is enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nestream.logical.nodes import (
    Component,
    Group,
    Leaf,
    Negation,
    Node,
    Operator,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    is_constraint,
    positive,
    targets_in_order,
)
from nestream.model.event_types import fits
from nestream.model.expression import aggregates
from nestream.model.memory import memory_left, too_many
from nestream.model.schema import Order
from nestream.model.time import WindowKind
from nestream.reference.events import Event
from nestream.reference.keeping import kept_of
from nestream.reference.values import holds

Binding = Mapping[str, Event]
Groups = Mapping[str, Sequence[Binding]]
"""The members of each group of a match, in order; a repeated event is a member with one variable."""
_LOOK = 1 << 16
"""How many matches are found between two checks of memory."""
_RESERVE = 256 * 1024 * 1024
"""The memory reserved for sorting the matches and making a table."""


@dataclass(frozen=True)
class Match:
    """The events that a match keeps, by variable. A variable of a branch that was not taken is missing."""

    events: Binding
    groups: Groups = field(default_factory=dict)

    @property
    def positions(self) -> tuple[tuple[str, int], ...]:
        """The identity of the match: the event of each variable."""
        return tuple(sorted((name, event.pos) for name, event in self.events.items()))


def evaluate(
    plan: Plan,
    history: Sequence[Event],
    order: Order = Order.TIME,
    per_microsecond: int = 1,
    as_of: int | None = None,
) -> list[Match]:
    """Every match of the plan over the history, each once, by `match_end` and the positions of its events.

    With `as_of`, the history is complete only up to that time.
    """
    meaning = Meaning(plan, order, per_microsecond, as_of)
    kept: dict[tuple[tuple[str, int], ...], Match] = {}
    for part, groups in meaning.complete_matches(history):
        kept_events = {name: event for name, event in part.binding.items() if name in plan.output.kept}
        match = Match(kept_events, groups)
        if match.events:
            kept.setdefault(match.positions, match)
            if len(kept) % _LOOK == 0 and (left := memory_left()) is not None and left < _RESERVE:
                raise too_many(len(kept))
    found = sorted(kept.values(), key=lambda match: _output_order(match, plan))
    return found if plan.keep is None else kept_of(found, plan.keep, order, per_microsecond)


def _output_order(match: Match, plan: Plan) -> tuple[int, list[int]]:
    positions = [match.events[name].pos if name in match.events else -1 for name in plan.output.kept]
    return max(event.ts for event in match.events.values()), positions


@dataclass(frozen=True)
class Part:
    """One way to bind a node's positive part: its events, and the same for its positive components.

    An OR has the taken branch as its only component, a Proj its body.
    """

    node: Node
    binding: Binding
    parts: tuple[Part, ...] = ()

    @property
    def root(self) -> Part:
        """The root of a whole match: of a root OR, whose branches are roots, the taken one."""
        return self.parts[0].root if isinstance(self.node, WinOr | Proj) else self

    def walk(self) -> Iterator[Part]:
        """This part and all parts in it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class Limit:
    """One end of an interval: events before or after it in order, or up to a time or a position."""

    measure: str
    at: int | Event | None
    inclusive: bool = False


@dataclass(frozen=True)
class Interval:
    """Where a negation must not match."""

    left: Limit
    right: Limit


class Meaning:
    """The definitions of docs/reference/semantics.md for one plan, one method each; `why` uses them too."""

    def __init__(self, plan: Plan, order: Order, per_microsecond: int, as_of: int | None = None) -> None:
        self.plan = plan
        self.as_of = as_of
        self.order = order
        self.per_microsecond = per_microsecond
        self.window = plan.window.size * (per_microsecond if plan.window.kind is WindowKind.TIME else 1)

    # -- events --------------------------------------------------------------------------------------------

    def before(self, first: Event, second: Event) -> bool:
        """Whether the first event comes before the second."""
        if self.order is Order.ARRIVAL:
            return first.pos < second.pos
        return first.ts < second.ts

    # -- positive part -------------------------------------------------------------------------------------

    def matches(self, history: Sequence[Event]) -> Iterator[Part]:
        """The complete matches of the root, before projection."""
        return (part for part, _ in self.complete_matches(history))

    def complete_matches(self, history: Sequence[Event]) -> Iterator[tuple[Part, Groups]]:
        """The same, with the groups of each match."""
        if self.as_of is not None:
            history = [event for event in history if event.ts <= self.as_of]
        for part in self.bindings(self.plan.root, history, frozenset()):
            if self.in_window(part.binding) and self.satisfied(part, part.binding):
                root = part.root
                limits = self.root_limits(root)
                if self.violated(root, limits, history, part.binding) or not self.decided(root, limits):
                    continue
                groups = self.groups(root, limits, history, part.binding)
                if groups is not None and self.judged(part, part.binding, groups):
                    yield part, groups

    def bindings(self, node: Node, history: Sequence[Event], taken: frozenset[Event]) -> Iterator[Part]:
        """Every way to bind the node's positive part to unused events, in order."""
        match node:
            case Leaf(variable=variable, types=types):
                for event in history:
                    if fits(event.type, types) and event not in taken:
                        yield Part(node, {variable: event})
            case WinOr():
                for branch in positive(node):
                    for part in self.bindings(branch, history, taken):
                        yield Part(node, part.binding, (part,))
            case Proj(body=body):
                for part in self.bindings(body, history, taken):
                    yield Part(node, part.binding, (part,))
            case WinSeq() | WinAnd():
                yield from self.combinations(node, positive(node), (), history, taken)

    def combinations(
        self,
        node: Operator,
        components: Sequence[Node],
        parts: tuple[Part, ...],
        history: Sequence[Event],
        taken: frozenset[Event],
    ) -> Iterator[Part]:
        """The combinations of the components' bindings: in strict order for a SEQ, any for an AND."""
        if len(parts) == len(components):
            yield Part(node, {name: event for part in parts for name, event in part.binding.items()}, parts)
            return
        for part in self.bindings(components[len(parts)], history, taken):
            if isinstance(node, WinSeq) and parts and not self.follows(parts[-1], part):
                continue
            now_taken = taken | frozenset(part.binding.values())
            yield from self.combinations(node, components, (*parts, part), history, now_taken)

    def follows(self, left: Part, right: Part) -> bool:
        """Whether the left component's match ends before the right one's starts."""
        return self.before(self.last(left.binding), self.first(right.binding))

    def first(self, binding: Binding) -> Event:
        return min(binding.values(), key=lambda event: event.pos)

    def last(self, binding: Binding) -> Event:
        return max(binding.values(), key=lambda event: event.pos)

    def in_window(self, binding: Binding) -> bool:
        first, last = self.first(binding), self.last(binding)
        match self.plan.window.kind:
            case WindowKind.UNBOUNDED:
                return True
            case WindowKind.EVENTS:
                return last.pos - first.pos < self.window
            case WindowKind.TIME | WindowKind.NUMBER:
                length = last.ts - first.ts
                return length < self.window if self.plan.exclusive else length <= self.window

    def satisfied(self, part: Part, binding: Binding) -> bool:
        """Whether the predicates of every node in the match hold under the complete binding.

        Predicates over aggregates of groups are checked once the groups are known.
        """
        return all(
            holds(predicate, binding, self.per_microsecond)
            for inner in part.walk()
            for predicate in inner.node.predicates
            if not any(aggregates(predicate))
        )

    # -- groups --------------------------------------------------------------------------------------------

    def groups(
        self, part: Part, limits: Interval, history: Sequence[Event], binding: Binding
    ) -> dict[str, Sequence[Binding]] | None:
        """The members of every group of the part; None if one has too few or too many."""
        found: dict[str, Sequence[Binding]] = {}
        for group, interval in self.constraints(part, limits):
            if isinstance(group, Group):
                members = self.members(group, interval, history, binding)
                few = len(members) < group.least
                if few or (group.most is not None and len(members) > group.most):
                    return None
                found[group.variable] = members
        return found

    def members(
        self, group: Group, interval: Interval, history: Sequence[Event], binding: Binding
    ) -> list[Binding]:
        """All matches of the group's body in the interval that are consistent with the binding, in order."""
        return self.in_order(group, list(self.extensions(group.body, interval, history, binding)))

    def in_order(self, group: Group, found: Sequence[Binding]) -> list[Binding]:
        """The members of a group by the time of their last event, then by the positions of all."""
        order = targets_in_order(group.body)
        return sorted(
            found,
            key=lambda member: (
                self.last(member).ts,
                [member[name].pos if name in member else -1 for name in order],
            ),
        )

    def judged(self, part: Part, binding: Binding, groups: Groups) -> bool:
        """Whether the predicates with aggregates hold for the match and its groups."""
        return all(
            holds(predicate, binding, self.per_microsecond, groups)
            for inner in part.walk()
            for predicate in inner.node.predicates
            if any(aggregates(predicate))
        )

    # -- negative part -------------------------------------------------------------------------------------

    def root_limits(self, root: Part) -> Interval:
        """The limits of the root, from the window around the complete match."""
        first, last = self.first(root.binding), self.last(root.binding)
        inclusive = not self.plan.exclusive
        match self.plan.window.kind:
            case WindowKind.UNBOUNDED:
                left, right = Limit("none", None), Limit("none", None)
            case WindowKind.EVENTS:
                left = Limit("position", last.pos - (self.window - 1), True)
                right = Limit("position", first.pos + (self.window - 1), True)
            case WindowKind.TIME | WindowKind.NUMBER:
                left = Limit("time", last.ts - self.window, inclusive)
                right = Limit("time", first.ts + self.window, inclusive)
        if isinstance(root.node, WinAnd):  # decided when its last event arrives
            right = Limit("order", last, True)
        return Interval(left, right)

    def violated(self, part: Part, limits: Interval, history: Sequence[Event], binding: Binding) -> bool:
        """Whether a constraint in the part does not hold in its interval, under the binding so far."""
        return any(
            not self.allows(constraint, interval, history, binding)
            for constraint, interval in self.constraints(part, limits)
        )

    def decided(self, part: Part, limits: Interval) -> bool:
        """Whether the history is complete in the interval of every constraint of the part."""
        return self.as_of is None or all(
            self.passed(interval.right) for _, interval in self.constraints(part, limits)
        )

    def constraints(self, part: Part, limits: Interval) -> Iterator[tuple[Component, Interval]]:
        """The negations and groups in the positive part, at any depth, each with its interval."""
        node = part.node
        if isinstance(node, Leaf):
            return
        if isinstance(node, WinOr | Proj):
            yield from self.constraints(part.parts[0], limits)
            return
        place = 0  # the number of positive components to the left
        for component in node.components:
            interval = self.place_limits(part, place, component, limits)
            if is_constraint(component):
                yield component, interval
            else:
                yield from self.constraints(part.parts[place], interval)
                place += 1

    def passed(self, limit: Limit) -> bool:
        """Whether a right limit lies in the complete part of the history."""
        if limit.measure == "order":  # an event of the match
            return True
        assert self.as_of is not None
        if limit.measure == "position":
            raise ValueError("a window of events has no time at which it ends")
        return limit.measure == "time" and isinstance(limit.at, int) and limit.at <= self.as_of

    def place_limits(self, part: Part, place: int, component: Component, limits: Interval) -> Interval:
        """The limits of a component: the gap around its place in a SEQ, its parent's in an AND."""
        if isinstance(part.node, WinAnd):
            return limits
        right_neighbour = place if is_constraint(component) else place + 1
        left, right = limits.left, limits.right
        if place > 0:
            left = Limit("order", self.last(part.parts[place - 1].binding))
        if right_neighbour < len(part.parts):
            right = Limit("order", self.first(part.parts[right_neighbour].binding))
        return Interval(left, right)

    def allows(
        self, constraint: Component, interval: Interval, history: Sequence[Event], binding: Binding
    ) -> bool:
        """Whether a constraint holds in the interval."""
        match constraint:
            case Negation(body=body):
                return not self.occurs(body, interval, history, binding)
            case Group():
                return True  # its members are counted once all constraints hold
            case Witness():
                return self.witnessed(constraint, interval, history, binding)
            case WinOr(components=branches):
                return any(self.allows(branch, interval, history, binding) for branch in branches)
            case WinAnd(components=parts):
                return all(self.allows(part, interval, history, binding) for part in parts)
        raise AssertionError(f"{constraint!r} is not a constraint")

    def witnessed(
        self, witness: Witness, interval: Interval, history: Sequence[Event], binding: Binding
    ) -> bool:
        """Whether the witness is found in the interval: from its last event back, the latest of each."""
        before = [event for event in history if self.contains(interval, event)]
        for leaf in reversed(witness.chain):
            found = self.serving(leaf, before, binding)
            if not found:
                return False
            latest = max(found, key=lambda event: event.pos)
            before = [event for event in before if self.before(event, latest)]
        return witness.absent is None or not self.serving(witness.absent, before, binding)

    def serving(self, leaf: Leaf, events: Sequence[Event], binding: Binding) -> list[Event]:
        """The events that can bind the leaf, given the binding: unused, with its predicates satisfied."""
        return [
            event
            for event in events
            if fits(event.type, leaf.types)
            and event not in binding.values()
            and all(
                holds(predicate, {**binding, leaf.variable: event}, self.per_microsecond)
                for predicate in leaf.predicates
            )
        ]

    def occurs(self, node: Node, interval: Interval, history: Sequence[Event], binding: Binding) -> bool:
        """Whether the negated node has a match in the interval that extends the binding."""
        return any(True for _ in self.extensions(node, interval, history, binding))

    def extensions(
        self, node: Node, interval: Interval, history: Sequence[Event], binding: Binding
    ) -> Iterator[Binding]:
        """The matches of a node in the interval that extend the binding."""
        inside = [event for event in history if self.contains(interval, event)]
        for part in self.bindings(node, inside, frozenset(binding.values())):
            extended = {**binding, **part.binding}
            if not self.satisfied(part, extended) or self.violated(part, interval, inside, extended):
                continue
            groups = self.groups(part, interval, inside, extended)
            if groups is not None and self.judged(part, extended, groups):
                yield part.binding

    def contains(self, interval: Interval, event: Event) -> bool:
        return self.within(event, interval.left, 1) and self.within(event, interval.right, -1)

    def within(self, event: Event, limit: Limit, side: int) -> bool:
        """Whether the event is inside a limit: side 1 is the left end, -1 the right."""
        at = limit.at
        if at is None:
            return True
        if isinstance(at, Event):
            outside = self.before(event, at) if side == 1 else self.before(at, event)
            if limit.inclusive:
                return not outside
            return self.before(at, event) if side == 1 else self.before(event, at)
        distance = side * ((event.pos if limit.measure == "position" else event.ts) - at)
        return distance >= 0 if limit.inclusive else distance > 0
