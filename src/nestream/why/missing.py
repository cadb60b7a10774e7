"""Explains what is missing: the variables without a picked event, and why no event can be them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nestream.logical.nodes import Leaf
from nestream.model.event_types import fits, said_types
from nestream.model.text import print_name
from nestream.reference import Binding, Event
from nestream.why.obstacle import Obstacle
from nestream.why.obstacles import Judge
from nestream.why.output import Output
from nestream.why.reach import Reach, Timeline
from nestream.why.shapes import Shape

MOST_COMPARED = 20
"""How many completed bindings are compared to find the one with the fewest obstacles."""


@dataclass(frozen=True)
class Completed:
    """Whether the picked events are part of a match, and if not, what stops them.

    `completion` are the events found for the missing variables, in the match or in the binding closest to
    one.
    """

    match: dict[str, Event] | None
    completion: dict[str, Event]
    obstacles: list[Obstacle]


class Completing:
    """Searches the rest of a match whose first events are picked."""

    def __init__(self, judge: Judge, reach: Reach, timeline: Timeline, output: Output) -> None:
        self.judge = judge
        self.reach = reach
        self.timeline = timeline
        self.output = output

    def complete(self, shape: Shape, binding: dict[str, Event]) -> Completed:
        """A match with the bound events, or what stops them."""
        missing = [leaf for leaf in shape.leaves if leaf.variable not in binding]
        stopped = self.judge.among(shape, binding)
        if not missing:
            return self._whole(shape, binding, stopped)
        if stopped:
            alone = [told for leaf in missing for told in self._alone(shape, binding, leaf)]
            return Completed(None, {}, [*stopped, *alone])
        nearest: Completed | None = None
        ways = 0
        hidden: dict[str, Event] | None = None
        for found in self.judge.search.bindings(shape, self.reach, binding, {}, windowed=True):
            ways += 1
            if ways > MOST_COMPARED and nearest is not None:
                if self._is_match(shape, found):
                    if self.output.shows(found):
                        return self._found(shape, found, binding)
                    hidden = hidden or found
                continue
            against = list(self.judge.constraints(shape, found, self.reach))
            if not against:
                if self.output.shows(found):
                    return self._found(shape, found, binding)
                hidden = hidden or found
            elif nearest is None or len(against) < len(nearest.obstacles):
                nearest = Completed(None, _rest(found, binding), against)
        if hidden is not None:
            return Completed(None, _rest(hidden, binding), [self.output.obstacle(hidden)])
        if nearest is not None:
            return nearest
        alone = [told for leaf in missing for told in self._alone(shape, binding, leaf)]
        return Completed(None, {}, alone or [self._together(shape, binding, missing)])

    def _whole(self, shape: Shape, binding: dict[str, Event], stopped: list[Obstacle]) -> Completed:
        against = stopped
        if not any(
            told.kind == "order" for told in stopped
        ):  # out of order, there are no intervals to examine
            against = [*stopped, *self.judge.constraints(shape, binding, self.reach)]
        if against:
            return Completed(None, {}, against)
        if not self.output.shows(binding):
            return Completed(None, {}, [self.output.obstacle(binding)])
        return Completed(binding, {}, [])

    def _found(self, shape: Shape, found: Binding, binding: Binding) -> Completed:
        ordered = {name: found[name] for name in shape.variables}
        return Completed(ordered, _rest(found, binding), [])

    def _is_match(self, shape: Shape, binding: Binding) -> bool:
        return next(self.judge.constraints(shape, binding, self.reach), None) is None

    # -- nothing to complete with --------------------------------------------------------------------------

    def _candidates(self, binding: Binding, leaf: Leaf) -> list[Event]:
        taken = set(binding.values())
        return [event for event in self.reach.of_types(leaf.types) if event not in taken]

    def _stopping(self, shape: Shape, binding: Binding, leaf: Leaf, event: Event) -> list[Obstacle]:
        """What stops an event from being the variable, given the bound ones; not what stops those."""
        together = {**binding, leaf.variable: event}
        return [told for told in self.judge.among(shape, together) if leaf.variable in told.variables]

    def _alone(self, shape: Shape, binding: Binding, leaf: Leaf) -> Iterator[Obstacle]:
        """The obstacle of a missing variable that no event can be, given the bound ones."""
        kinds = said_types(leaf.types)
        name = print_name(leaf.variable)
        span = self.judge.places.variable(leaf.variable)
        candidates = self._candidates(binding, leaf)
        if not candidates:
            other = "other " if self._taken(binding, leaf) else ""
            told = f"no event can be {name}: there is no {other}{kinds} event in reach"
            nearest = self._beyond(binding, leaf)
            yield Obstacle(
                "missing", told + nearest, (leaf.variable,), (), span, {"candidates": 0, "stopped": []}
            )
            return
        best: tuple[tuple[int, int], Event, list[Obstacle]] | None = None
        for event in candidates:
            stopping = self._stopping(shape, binding, leaf, event)
            if not stopping:
                return
            rank = (len(stopping), self._distance(binding, event))
            if best is None or rank < best[0]:
                best = (rank, event, stopping)
        assert best is not None
        _, event, stopping = best
        reasons = "; ".join(told.text for told in stopping)
        shown = self.judge.words.event(event)
        if len(candidates) == 1:
            told = f"no event can be {name}: the only {kinds} event in reach is {shown}, and {reasons}"
        else:
            many = f"none of the {len(candidates)} {kinds} events in reach"
            told = f"no event can be {name}, {many}; of the nearest, {shown}, {reasons}"
        more = {"candidates": len(candidates), "stopped": [told.json() for told in stopping]}
        yield Obstacle(
            "missing",
            told,
            (leaf.variable,),
            (event.row,),
            span,
            more,
        )

    def _together(self, shape: Shape, binding: Binding, missing: list[Leaf]) -> Obstacle:
        """The obstacle if each missing variable has events, but no combination of them works."""
        chosen = dict(binding)
        told = ""
        for leaf in missing:
            ranked = [
                ((len(stopping), self._distance(binding, event)), event.pos, event, stopping)
                for event in self._candidates(chosen, leaf)
                for stopping in [self._stopping(shape, chosen, leaf, event)]
            ]
            if not ranked:
                told = f"no {said_types(leaf.types)} event is left for {print_name(leaf.variable)}"
                break
            _, _, event, stopping = min(ranked, key=lambda item: item[:2])
            chosen[leaf.variable] = event
            if stopping:
                with_others = ", ".join(
                    self.judge.words.bound(name, chosen[name]) for name in chosen if name not in binding
                )
                told = f"with {with_others}: " + "; ".join(reason.text for reason in stopping)
                break
        names = tuple(leaf.variable for leaf in missing)
        listed = " and ".join(print_name(name) for name in names)
        rows = tuple(event.row for name, event in chosen.items() if name not in binding)
        return Obstacle(
            "missing",
            f"no events can be {listed}: there are some for each, but none that go together; {told}",
            names,
            rows,
            self.judge.places.variables(names),
        )

    def _taken(self, binding: Binding, leaf: Leaf) -> bool:
        return any(fits(event.type, leaf.types) for event in binding.values())

    def _distance(self, binding: Binding, event: Event) -> int:
        return min((abs(other.ts - event.ts) for other in binding.values()), default=0)

    def _beyond(self, binding: Binding, leaf: Leaf) -> str:
        """Where the nearest event of the type is, out of reach."""
        if not binding:
            return ""
        at = max(event.ts for event in binding.values())
        found = self.timeline.nearest(leaf.types, at)
        if found is None or self._taken(binding, leaf):
            return "" if found is not None else ", and none in all the events"
        row, time = found
        return f"; the nearest is {self.judge.words.number(row)} at {self.judge.words.time_text(time)}"


def _rest(found: Binding, binding: Binding) -> dict[str, Event]:
    return {name: event for name, event in found.items() if name not in binding}
