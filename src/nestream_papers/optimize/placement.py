"""Places expressions one after the other: each into the group where it adds least cost, or into its own.

A new query of a large set is planned this way. The time does not grow with the set but with the groups that
it could join: an index maps the parts of an expression to the groups that share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nestream_papers.optimize.operators import Costing, Group, Parts
from nestream_papers.optimize.partition import Members, Partition
from nestream_papers.optimize.shape import Shape

CANDIDATES = 12
"""How many groups are considered: those that share the longest parts come first."""


class Placement:
    """Groups into which expressions are placed, and from which they are removed."""

    def __init__(self, costing: Costing) -> None:
        self.costing = costing
        self.groups: dict[int, Members] = {}
        self.group_of: dict[int, int] = {}
        self._common: dict[int, Parts] = {}
        self._index: dict[tuple[str, int], dict[int, None]] = {}
        self._next = 0

    @classmethod
    def of(cls, costing: Costing, order: Iterable[int] | None = None) -> Placement:
        """All expressions of a costing, placed in their order or in the given one."""
        placement = cls(costing)
        for member in range(len(costing.shapes)) if order is None else order:
            placement.place(member)
        return placement

    @classmethod
    def from_groups(cls, costing: Costing, groups: Iterable[Iterable[int]]) -> Placement:
        """The groups of a plan, to continue from."""
        placement = cls(costing)
        for members in groups:
            placement._put(None, frozenset(members))
        return placement

    @property
    def partition(self) -> Partition:
        """The groups, if they contain every expression of the costing."""
        return Partition(frozenset(self.groups.values()), len(self.costing.shapes))

    def add(self, shape: Shape) -> Group:
        """Add a new expression; return its group."""
        return self.place(self.costing.append(shape))

    def place(self, member: int) -> Group:
        """Put an expression into the group where it adds least cost."""
        alone = frozenset((member,))
        best, gain = None, 0.0
        for number in self._candidates(self.costing.parts[member]):
            joined = self.groups[number] | alone
            less = (
                self.costing.cost(self.groups[number]) + self.costing.cost(alone) - self.costing.cost(joined)
            )
            if less > gain:
                best, gain = number, less
        self._put(best, alone)
        group = self.costing.group(self.groups[self.group_of[member]])
        assert group is not None
        return group

    def remove(self, member: int) -> None:
        """Remove an expression from its group; the others stay together if an operator can run them."""
        number = self.group_of.pop(member)
        rest = self.groups[number] - {member}
        self._drop(number)
        for part in [rest] if rest and self.costing.group(rest) else [frozenset((one,)) for one in rest]:
            self._put(None, part)

    def _candidates(self, parts: Parts) -> Iterator[int]:
        seen: dict[int, None] = {}
        for kind in _features(parts):
            for number in self._index.get(kind, ()):
                if number not in seen:
                    seen[number] = None
                    yield number
                if len(seen) >= CANDIDATES:
                    return

    def _put(self, number: int | None, members: Members) -> None:
        """Put members into a new group, or into an existing one."""
        if number is None:
            number, self._next = self._next, self._next + 1
            joined = members
            common = _in_common([self.costing.parts[member] for member in sorted(members)])
        else:
            joined = self.groups[number] | members
            common = _in_common(
                [self._common[number], *(self.costing.parts[member] for member in sorted(members))]
            )
            self._drop(number)
        self.groups[number], self._common[number] = joined, common
        for member in members if number in self.groups and joined == members else joined:
            self.group_of[member] = number
        for kind in _features(common):
            self._index.setdefault(kind, {})[number] = None

    def _drop(self, number: int) -> None:
        for kind in _features(self._common.pop(number)):
            self._index[kind].pop(number, None)
            if not self._index[kind]:
                del self._index[kind]
        del self.groups[number]


def _in_common(parts: list[Parts]) -> Parts:
    """The parts that all of them have, as in the first."""
    first, *rest = parts
    if not rest:
        return first
    return Parts(
        {p: n for p, n in first.prefixes.items() if all(p in other.prefixes for other in rest)},
        {p: n for p, n in first.suffixes.items() if all(p in other.suffixes for other in rest)},
        {p: n for p, n in first.middles.items() if all(p in other.middles for other in rest)},
        first.marked if all(first.marked == other.marked for other in rest) else None,
    )


def _features(parts: Parts) -> Iterator[tuple[str, int]]:
    """The index entries of a group: its marks, then its parts, longest first."""
    if parts.marked is not None:
        yield "marked", parts.marked
    sized = [(-length, "prefix", part) for part, length in parts.prefixes.items()]
    sized += [(-length, "suffix", part) for part, length in parts.suffixes.items()]
    sized += [(first - end, "middle", part) for part, (first, end) in parts.middles.items()]
    for _, kind, part in sorted(sized):
        yield kind, part
