"""Finds the events of each leaf in a run of events: by type, then by the leaf's tests.

Leaves share what they have in common: the rows of a type are found once, an attribute is read for them once,
and leaves that begin with the same tests share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from nestream.engine.kernels import Rows
from nestream.engine.kernels.stack import sorted_by_key
from nestream.engine.program import LeafSpec
from nestream.engine.values import Evaluator
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Expression, attributes
from nestream.model.vector import Vector

_Tests = tuple[int, ...]


class Selection:
    """The leaves of one or many queries, ordered by what they share."""

    def __init__(self, leaves: Sequence[LeafSpec], types: Sequence[str], evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        number = {name: place for place, name in enumerate(types)}
        tests: dict[Expression, int] = {}
        self._by_types: dict[tuple[int, ...], list[tuple[int, _Tests]]] = {}
        for place, leaf in enumerate(leaves):
            if not leaf.types:
                continue
            kinds = () if ANY_TYPE in leaf.types else tuple(sorted({number[name] for name in leaf.types}))
            wanted = tuple(tests.setdefault(test, len(tests)) for test in leaf.filters)
            self._by_types.setdefault(kinds, []).append((place, wanted))
        self._tests = list(tests)
        self._count = len(types)

    def members(self, types: npt.NDArray[np.int16], column: Callable[[str], Vector]) -> dict[int, Rows]:
        """For each leaf with events, their rows, given the types and attributes."""
        found: dict[int, Rows] = {}
        everything = np.arange(len(types), dtype=np.int32)
        # types that came only with ANY have greater numbers
        known = np.where(types < self._count, types, np.int16(-1)) if () in self._by_types else types
        by_type, begin = sorted_by_key(everything, known, self._count)
        for kinds, leaves in self._by_types.items():
            parts = [by_type[begin[kind] : begin[kind + 1]] for kind in kinds]
            rows: Rows = everything if not kinds else parts[0] if len(parts) == 1 else _merged(parts)
            if len(rows):
                found.update(_Tested(self.evaluator, self._tests, rows, column).members(leaves))
        return found


def _merged(parts: list[Rows]) -> Rows:
    """The rows of several types in order."""
    return np.sort(np.concatenate([np.empty(0, np.int32), *parts]))


class _Tested:
    """The events of some types, with the tests done on them so far."""

    def __init__(
        self, evaluator: Evaluator, tests: list[Expression], rows: Rows, column: Callable[[str], Vector]
    ) -> None:
        self.evaluator = evaluator
        self.tests = tests
        self.column = column
        self.passed: dict[_Tests, Rows] = {(): rows}
        self.taken: dict[str, Vector] = {}

    def members(self, leaves: list[tuple[int, _Tests]]) -> dict[int, Rows]:
        """The rows of each leaf with events."""
        found = {leaf: self.rows(tests) for leaf, tests in leaves}
        return {leaf: rows for leaf, rows in found.items() if len(rows)}

    def rows(self, tests: _Tests) -> Rows:
        """The rows that pass all the tests."""
        if tests not in self.passed:
            rows = self.rows(tests[:-1])
            if len(rows):
                rows = rows[self._held(self.tests[tests[-1]], rows, first=len(tests) == 1)]
            self.passed[tests] = rows
        return self.passed[tests]

    def _held(self, test: Expression, rows: Rows, *, first: bool) -> npt.NDArray[np.bool_]:
        values: dict[str, Vector] = {}
        for part in attributes(test):
            if first:  # all the leaves of these types test these rows
                if part.name not in self.taken:
                    self.taken[part.name] = self.column(part.name).take(rows)
                values[part.name] = self.taken[part.name]
            else:
                values[part.name] = self.column(part.name).take(rows)
        return self.evaluator.satisfied(test, lambda _, name: values[name], len(rows))
