"""The shared operators: those that can run a group of expressions, and the cheapest of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nestream_papers.optimize.cost import Cost, Model
from nestream_papers.optimize.shape import Shape


class Operator(StrEnum):
    """How the expressions of a group run."""

    ALONE = "alone"
    MARKING = "bit-marking"
    PREFIX = "prefix caching"
    SUFFIX = "suffix clustering"
    MIDDLE = "shared middle"


@dataclass(frozen=True)
class Group:
    """Expressions that one operator runs.

    `length` is the number of steps they share; `starts` is where these begin in each expression.
    """

    members: tuple[int, ...]
    operator: Operator
    length: int
    starts: tuple[int, ...]
    cost: Cost
    own: tuple[Cost, ...] = ()
    """What each expression adds to the shared cost."""


@dataclass(frozen=True)
class Parts:
    """The parts of an expression that others may have too, each numbered by its content."""

    prefixes: Mapping[int, int]
    suffixes: Mapping[int, int]
    middles: Mapping[int, tuple[int, int]]
    marked: int | None


class Costing:
    """The costs of groups of some expressions, each computed once."""

    def __init__(self, shapes: Iterable[Shape], model: Model) -> None:
        self.model = model
        self.shapes: list[Shape] = []
        self.parts: list[Parts] = []
        self._numbers: dict[Hashable, int] = {}
        self._groups: dict[frozenset[int], Group | None] = {}
        self._own: dict[Hashable, Cost] = {}
        self._alike: Counter[Hashable] = Counter()
        for shape in shapes:
            self.append(shape)

    @staticmethod
    def _bound(shape: Shape) -> Hashable:
        return shape.owner, frozenset(shape.names)

    def append(self, shape: Shape) -> int:
        """Add an expression; return its number."""
        self.shapes.append(shape)
        self._alike[self._bound(shape)] += 1
        marked = shape.marked
        self.parts.append(
            Parts(
                {self._number(part): length for part, length in shape.prefixes.items()},
                {self._number(part): length for part, length in shape.suffixes.items()},
                {self._number(part): where for part, where in shape.middles.items()},
                None if marked is None else self._number(("marked", marked)),
            )
        )
        return len(self.shapes) - 1

    def _number(self, part: Hashable) -> int:
        return self._numbers.setdefault(part, len(self._numbers))

    def group(self, members: frozenset[int]) -> Group | None:
        """The cheapest operator for a group; None if no operator can run all of it."""
        if members not in self._groups:
            if len(self._groups) > 200_000:
                self._groups.clear()
            found = [group for make in MAKERS if (group := make(self, tuple(sorted(members)))) is not None]
            self._groups[members] = min(found, key=lambda g: self.model.weight(g.cost), default=None)
        return self._groups[members]

    def cost(self, members: frozenset[int]) -> float:
        """The weight of a group's cost; infinite if no operator can run it."""
        group = self.group(members)
        return float("inf") if group is None else self.model.weight(group.cost)

    def own(self, member: int, kind: str, part: tuple[int, ...], compute: Callable[[], Cost]) -> Cost:
        """What an expression adds to a group; cached."""
        place = (member, kind, part)
        if place not in self._own:
            self._own[place] = compute()
        return self._own[place]

    def compared(self, member: int, together: int = 1) -> Cost:
        """The cost of comparing its matches with those of expressions of its kind outside `together`."""
        shape = self.shapes[member]
        others = self._alike[self._bound(shape)] > together
        if not others:
            return Cost()
        return self.own(
            member, "compared", (), lambda: self.model.compared(self.model.matches(shape), others)
        )


def _alone(costing: Costing, members: tuple[int, ...]) -> Group | None:
    if len(members) != 1:
        return None
    member = members[0]
    shape = costing.shapes[member]
    cost = costing.own(member, "alone", (), lambda: costing.model.alone(shape)) + costing.compared(member)
    return Group(members, Operator.ALONE, len(shape), (0,), cost, (cost,))


def _marking(costing: Costing, members: tuple[int, ...]) -> Group | None:
    marked = {costing.parts[member].marked for member in members}
    if len(members) < 2 or len(marked) > 1 or None in marked:
        return None
    shapes = [costing.shapes[member] for member in members]
    cost = costing.model.marking(shapes)
    together = Counter(frozenset(shape.names) for shape in shapes)
    for member, shape in zip(members, shapes, strict=True):
        cost += costing.compared(member, together=together[frozenset(shape.names)])
    return Group(members, Operator.MARKING, len(shapes[0]), (0,) * len(members), cost)


def _prefix(costing: Costing, members: tuple[int, ...]) -> Group | None:
    shapes = [costing.shapes[member] for member in members]
    length = _longest([costing.parts[member].prefixes for member in members])
    if len(members) < 2 or not length:
        return None
    model = costing.model
    own = [
        costing.own(m, "prefix", (length,), lambda shape=shape: model.around(shape, 0, length))  # type: ignore[misc]
        + costing.compared(m)
        for m, shape in zip(members, shapes, strict=True)
    ]
    shared = costing.own(members[0], "of prefix", (length,), lambda: model.kept(shapes[0], 0, length))
    return _group(members, Operator.PREFIX, length, [0] * len(members), shared, own)


def _suffix(costing: Costing, members: tuple[int, ...]) -> Group | None:
    shapes = [costing.shapes[member] for member in members]
    length = _longest([costing.parts[member].suffixes for member in members])
    if len(members) < 2 or not length:
        return None
    model = costing.model
    own = [
        costing.own(m, "suffix", (length,), lambda shape=shape: model.before(shape, length))  # type: ignore[misc]
        + costing.compared(m)
        for m, shape in zip(members, shapes, strict=True)
    ]
    starts = [len(shape) - length for shape in shapes]
    shared = costing.own(
        members[0], "of suffix", (length,), lambda: model.core(shapes[0], starts[0], len(shapes[0]))
    )
    return _group(members, Operator.SUFFIX, length, starts, shared, own)


def _middle(costing: Costing, members: tuple[int, ...]) -> Group | None:
    shapes = [costing.shapes[member] for member in members]
    if len(members) < 2:
        return None
    known = [costing.parts[member] for member in members]
    parts = [part.middles for part in known]
    common = set(parts[0]).intersection(*parts[1:])
    longer = max(_longest([p.prefixes for p in known]), _longest([p.suffixes for p in known]))
    common = {part for part in common if parts[0][part][1] - parts[0][part][0] > longer}
    if not common:  # longer ones are for the other operators
        return None
    part = max(common, key=lambda part: (parts[0][part][1] - parts[0][part][0], -parts[0][part][0]))
    where = [places[part] for places in parts]
    model = costing.model
    own = [
        costing.own(m, "middle", at, lambda shape=shape, at=at: model.around(shape, *at))  # type: ignore[misc]
        + costing.compared(m)
        for m, shape, at in zip(members, shapes, where, strict=True)
    ]
    shared = costing.own(members[0], "of middle", where[0], lambda: model.kept(shapes[0], *where[0]))
    length = where[0][1] - where[0][0]
    return _group(members, Operator.MIDDLE, length, [at[0] for at in where], shared, own)


def _longest(parts: Sequence[Mapping[int, int]]) -> int:
    """The length of the longest part that all have."""
    common = set(parts[0]).intersection(*parts[1:])
    return max((parts[0][part] for part in common), default=0)


def _group(
    members: tuple[int, ...],
    operator: Operator,
    length: int,
    starts: Sequence[int],
    shared: Cost,
    own: Sequence[Cost],
) -> Group:
    total = shared
    for cost in own:
        total += cost
    return Group(members, operator, length, tuple(starts), total, tuple(own))


MAKERS = (_alone, _marking, _prefix, _suffix, _middle)
