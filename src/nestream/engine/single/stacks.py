"""The events that can still be part of a match, one at a time: per leaf, lists by key in time order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from nestream.engine.program import EVENT, LeafSpec
from nestream.engine.single.formulas import Formulas, Row
from nestream.model.event_types import ANY_TYPE

Stack: TypeAlias = dict[Any, list[Row]]
"""The events of a leaf by the values of some attributes."""
Asked: TypeAlias = tuple[int, tuple[str, ...]]
"""A leaf and the attributes by which its events are looked up."""

position = itemgetter(1)
_MANY = 1024
"""Expired events are removed when at least this many more have arrived."""


class Stacks:
    """The events of every leaf, by every key that a search uses."""

    def __init__(self, leaves: Sequence[LeafSpec], asked: Sequence[Asked], formulas: Formulas) -> None:
        self.found: dict[Asked, Stack] = {one: {} for one in asked}
        self._by_type: dict[str, list[tuple[int, Any]]] = {}
        for number, leaf in enumerate(leaves):
            tests = [formulas.test(test) for test in leaf.filters]
            for name in dict.fromkeys(leaf.types):
                self._by_type.setdefault(name, []).append((number, tests))
        self._of_any = self._by_type.pop(ANY_TYPE, [])
        for tested in self._by_type.values():
            tested += [leaf for leaf in self._of_any if leaf not in tested]
        self._kept: dict[int, list[tuple[Stack, Any]]] = {}
        for (leaf_number, attributes), stack in self.found.items():
            reads = [formulas.read(name) for name in attributes]
            self._kept.setdefault(leaf_number, []).append((stack, reads))
        self.held = 0
        self._added = 0

    def knows(self, type: str) -> bool:
        """Whether some leaf takes events of a type."""
        return type in self._by_type or bool(self._of_any)

    def add(self, type: str, row: Row) -> list[int]:
        """Take the next event; return the leaves that it belongs to."""
        binding, tested = {EVENT: row}, self._by_type.get(type, self._of_any)
        leaves = [leaf for leaf, tests in tested if all(test(binding) for test in tests)]
        for leaf in leaves:
            for stack, reads in self._kept.get(leaf, ()):
                key: Any = None
                if len(reads) == 1:
                    key = reads[0](row)
                    if key is None:  # NULL equals nothing
                        continue
                elif reads:
                    key = tuple(read(row) for read in reads)
                    if None in key:
                        continue
                if key in stack:
                    stack[key].append(row)
                else:
                    stack[key] = [row]
        if leaves:
            self._added += 1
        return leaves

    def expire(self, time: int | None, first: int | None) -> None:
        """Forget the events before a time and before a position, once there may be many."""
        if self._added < max(_MANY, self.held):
            return
        held = 0
        for stack in self.found.values():
            for key, rows in list(stack.items()):
                cut = len(rows) if time is None else bisect_left(rows, (time,))
                if first is not None:
                    cut = min(cut, bisect_left(rows, first, key=position))
                if cut == len(rows):
                    del stack[key]
                else:
                    del rows[:cut]
                    held += len(rows)
        self.held, self._added = held, 0
