"""Assigns picked events to variables: by type, in every possible way, as many events as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from nestream.logical.nodes import Leaf, Plan, leaves, target_variables
from nestream.model.event_types import fits, said_types
from nestream.model.text import print_name
from nestream.model.wording import listed
from nestream.reference import Event
from nestream.why.obstacle import Obstacle
from nestream.why.obstacles import Judge
from nestream.why.shapes import Shape

MOST_ASSIGNMENTS = 2_000
"""How many assignments that fail anyway are compared to choose the best."""


class Assigning:
    """Assigns the picked events to the variables of one shape; `wanted` fixes the variable of an event."""

    def __init__(
        self, shape: Shape, picked: Sequence[Event], wanted: Mapping[Event, str], judge: Judge
    ) -> None:
        self.shape = shape
        self.picked = sorted(picked, key=lambda event: event.pos)
        self.wanted = wanted
        self.judge = judge
        self.most = _largest([self._fitting(event) for event in self.picked])

    def _fitting(self, event: Event) -> list[str]:
        return [
            leaf.variable
            for leaf in self.shape.leaves
            if fits(event.type, leaf.types) and self.wanted.get(event, leaf.variable) == leaf.variable
        ]

    @property
    def is_whole(self) -> bool:
        """Whether every picked event can be assigned to a variable."""
        return self.most == len(self.picked)

    def sound(self) -> Iterator[dict[str, Event]]:
        """The assignments of all picked events that are consistent among themselves."""
        if self.is_whole:
            yield from self._assign(0, {}, 0, sound=True)

    def some(self) -> list[dict[str, Event]]:
        """The first assignments of as many picked events as possible, consistent or not."""
        return list(islice(self._assign(0, {}, len(self.picked) - self.most, sound=False), MOST_ASSIGNMENTS))

    def _assign(
        self, at: int, binding: dict[str, Event], spare: int, sound: bool
    ) -> Iterator[dict[str, Event]]:
        if at == len(self.picked):
            yield {name: binding[name] for name in self.shape.variables if name in binding}
            return
        event = self.picked[at]
        for name in self._fitting(event):
            if name in binding:
                continue
            bound = {**binding, name: event}
            self.judge.search.count(1)
            if not sound or not self.judge.among(self.shape, bound):
                yield from self._assign(at + 1, bound, spare, sound)
        if spare:
            yield from self._assign(at + 1, binding, spare - 1, sound)


def _largest(fitting: Sequence[Sequence[str]]) -> int:
    """How many events can have a variable each: the largest matching, path by path."""
    owner: dict[str, int] = {}

    def place(event: int, tried: set[str]) -> bool:
        for name in fitting[event]:
            if name not in tried:
                tried.add(name)
                if name not in owner or place(owner[name], tried):
                    owner[name] = event
                    return True
        return False

    return sum(place(event, set()) for event in range(len(fitting)))


def without_place(plan: Plan, shape: Shape, event: Event, wanted: str | None, judge: Judge) -> Obstacle:
    """Why a picked event cannot be a variable of the shape."""
    shown = judge.words.event(event)
    if wanted is not None:
        return _not_wanted(plan, event, wanted, judge)
    own = [leaf for leaf in shape.leaves if fits(event.type, leaf.types)]
    if own:
        names = tuple(leaf.variable for leaf in own)
        told = f"{shown} has no variable left: only {_listed(names)} can be {event.type}"
        return Obstacle("type", told, names, (event.row,), judge.places.variables(names))
    named = [leaf for leaf in leaves(plan.root) if fits(event.type, leaf.types)]
    if not named:
        types = list(dict.fromkeys(name for leaf in shape.leaves for name in leaf.types))
        told = f"{shown} has a type that the query does not name; a match has {_listed(types)}"
        return Obstacle("type", told, (), (event.row,))
    names = tuple(leaf.variable for leaf in named)
    span = judge.places.variables(names[:1])
    if any(leaf.variable in target_variables(plan.root) for leaf in named):
        told = f"{shown} is part of another alternative only, as {_listed(names)}"
    else:
        told = f"{shown} has a type that the query only negates ({_listed(names)}): a match never holds it"
    return Obstacle("type", told, names, (event.row,), span)


def _not_wanted(plan: Plan, event: Event, wanted: str, judge: Judge) -> Obstacle:
    shown = judge.words.event(event)
    leaf: Leaf | None = next((leaf for leaf in leaves(plan.root) if leaf.variable == wanted), None)
    name = print_name(wanted)
    assert leaf is not None, "variables that no match binds are refused before"
    if not fits(event.type, leaf.types):
        told = f"{shown} cannot be {name}, which is {said_types(leaf.types)}"
    else:
        told = f"{name} is part of another alternative, so {shown} cannot be it here"
    return Obstacle("type", told, (wanted,), (event.row,), judge.places.variable(wanted))


def _listed(names: Sequence[str]) -> str:
    return listed([print_name(name) for name in names])
