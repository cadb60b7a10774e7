"""Checks the groups of candidates: how many members each has, which they are, and whether aggregates pass.

If a group depends on the candidate only through an interval and a key, its members are a range of a stack,
and counting them is a subtraction. The members of any other group are found by a lateral join, like the
matches of a negation, and then reduced candidate by candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nestream.engine.aggregates import AGGREGATE, Expanded, aggregate_values, without_aggregates
from nestream.engine.block import Block, Group, why_no_range
from nestream.engine.evaluation import Bindings, Evaluation, Mask
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import extend
from nestream.engine.pieces import Counts, pieces
from nestream.engine.range_aggregates import Range, from_table
from nestream.model.expression import Aggregate, aggregates
from nestream.model.vector import Vector

if TYPE_CHECKING:
    from nestream.engine.operators.lateral_join import LateralJoin

UNBOUND = -1
_FEW = 4096
"""How many candidates are joined at a time if the number of members is unknown."""


def filters(block: Block, counted: frozenset[str] = frozenset()) -> bool:
    """Whether the groups of a block can reject a candidate, apart from those already counted."""
    return bool(block.judged) or any(
        group.least > 0 or group.most is not None for group in block.groups if group.variable not in counted
    )


class GroupFilter:
    """The groups of a block's matches; `join` makes the lateral joins that find members.

    For the groups in `counted`, the candidates already have a valid number of members.
    """

    def __init__(
        self,
        block: Block,
        root: Block,
        join: type[LateralJoin],
        counted: frozenset[str] = frozenset(),
    ) -> None:
        self.block = block
        self.counted = counted
        self.root = root
        self._make = join
        self._joins: dict[int, LateralJoin] = {}
        self.judged = [without_aggregates(predicate) for predicate in block.judged]

    def passed(self, evaluation: Evaluation, bindings: Bindings) -> Bindings:
        """The candidates with a valid number of members whose aggregates pass."""
        for group in self.block.groups:
            if group.variable in self.counted:
                continue
            if bindings.count and (group.least > 0 or group.most is not None):
                counts = self.counts(evaluation, group, bindings)
                kept = counts >= group.least
                if group.most is not None:
                    kept &= counts <= group.most
                bindings = bindings.only(kept)
        if not self.judged or not bindings.count:
            return bindings
        wanted = list(dict.fromkeys(one for f in self.block.judged for one in aggregates(f)))
        kept = np.zeros(bindings.count, bool)
        needed = self.expanding(evaluation, bindings, wanted, frozenset())
        for piece in self.pieces(evaluation, bindings, needed):
            some = bindings.only(np.arange(piece.start, piece.stop))
            found, _ = self.computed(evaluation, some, wanted, frozenset())
            kept[piece] = self._satisfied(evaluation, some, found)
        return bindings.only(kept)

    def _satisfied(
        self, evaluation: Evaluation, bindings: Bindings, found: Mapping[Aggregate, Vector]
    ) -> Mask:
        passed = np.ones(bindings.count, bool)
        for formula, over in self.judged:

            def fetch(variable: str, attribute: str, over: list[Aggregate] = over) -> Vector:
                if variable == AGGREGATE:
                    return found[over[int(attribute)]]
                return evaluation.events.attribute(attribute).take(bindings.rows[variable])

            passed &= evaluation.events.evaluator.satisfied(formula, fetch, bindings.count)
        return passed

    # -- members -------------------------------------------------------------------------------------------

    def _join(self, group: Group, number: int) -> LateralJoin:
        one = group.alternatives[number]
        if id(one) not in self._joins:
            self._joins[id(one)] = self._make(one.block, self.root, one)
        return self._joins[id(one)]

    def counts(self, evaluation: Evaluation, group: Group, bindings: Bindings) -> Counts:
        """How many members each candidate has."""
        total = np.zeros(bindings.count, np.int64)
        for number in range(len(group.alternatives)):
            join = self._join(group, number)
            places = join.members(evaluation, bindings)
            if places is not None:
                total += np.maximum(places[2] - places[1], 0)
                continue
            for match in join.inside(evaluation, bindings, None):
                assert match.outer is not None
                total += np.bincount(match.outer, minlength=bindings.count)
        return total

    def expanded(
        self, evaluation: Evaluation, group: Group, bindings: Bindings, *, ends: bool = False
    ) -> Expanded:
        """The members of each candidate in time order, one candidate after the other.

        With `ends`, those of a range may be only its first and its last.
        """
        outer: list[npt.NDArray[np.int64]] = []
        rows: dict[str, list[Rows]] = {name: [] for name in group.variables}
        for number in range(len(group.alternatives)):
            for match in self._found(evaluation, self._join(group, number), bindings, ends=ends):
                assert match.outer is not None
                outer.append(match.outer.astype(np.int64))
                for name, parts in rows.items():
                    bound = name in self._join(group, number).block.leaves
                    parts.append(match.rows[name] if bound else np.full(match.count, UNBOUND, np.int32))
        empty = np.empty(0, np.int32)
        columns = {name: np.concatenate([empty, *parts]) for name, parts in rows.items()}
        whose = np.concatenate([np.empty(0, np.int64), *outer])
        order = self._order(evaluation, whose, columns)
        if order is not None:
            whose = whose[order]
            columns = {name: column[order] for name, column in columns.items()}
        return Expanded(whose, columns, bindings)

    def _found(
        self, evaluation: Evaluation, join: LateralJoin, bindings: Bindings, *, ends: bool
    ) -> Iterator[Bindings]:
        places = join.members(evaluation, bindings)
        if places is None:
            yield from join.inside(evaluation, bindings, None)
            return
        (name,) = join.block.leaves
        stack, first, end = places
        number = np.arange(bindings.count, dtype=np.int32)
        if ends:
            outer = np.repeat(number, np.clip(end - first, 0, 2))
            is_last = np.append(False, outer[1:] == outer[:-1])[: len(outer)]
            rows = stack.rows[np.where(is_last, end[outer] - 1, first[outer])]
            yield Bindings({name: rows}, len(outer), outer)
            return
        total = int(np.maximum(end - first, 0).sum())
        if total:
            longer, _ = extend(number.reshape(1, -1), first, first, end, total)
            yield Bindings({name: stack.rows[longer[0]]}, total, longer[1])

    def _order(
        self, evaluation: Evaluation, whose: npt.NDArray[np.int64], columns: Mapping[str, Rows]
    ) -> npt.NDArray[np.int64] | None:
        """The order of members: by candidate, by the time of the last event, then by positions."""
        if len(columns) == 1:
            (only,) = columns.values()
            steps = (whose[1:] > whose[:-1]) | ((whose[1:] == whose[:-1]) & (only[1:] > only[:-1]))
            return None if steps.all() else np.lexsort((only, whose))
        last = np.maximum.reduce(list(columns.values()))
        by: list[npt.NDArray[Any]] = [
            *reversed(list(columns.values())),
            evaluation.events.moments[last],
            whose,
        ]
        return np.lexsort(by)

    def _from_tables(
        self, evaluation: Evaluation, group: Group, bindings: Bindings, wanted: list[Aggregate]
    ) -> dict[Aggregate, Vector]:
        """The aggregates that are answered without visiting members one by one."""
        if not wanted or why_no_range(group) is not None:
            return {}
        join = self._join(group, 0)
        places = join.members(evaluation, bindings)
        if places is None:
            return {}
        ((variable, leaf),) = join.block.leaves.items()
        stack, first, end = places
        members = Range(variable, stack, (leaf, join.looked_up(bindings)), first, end)
        answers = ((one, from_table(evaluation, one, members)) for one in wanted)
        return {one: vector for one, vector in answers if vector is not None}

    # -- aggregates ----------------------------------------------------------------------------------------

    def pieces(self, evaluation: Evaluation, bindings: Bindings, groups: set[str]) -> Iterator[slice]:
        """Cut candidates into pieces so small that the members of some groups can be held."""
        total = np.zeros(bindings.count, np.int64)
        for group in self.block.groups:
            if group.variable not in groups:
                continue
            for number in range(len(group.alternatives)):
                places = self._join(group, number).members(evaluation, bindings)
                if places is None:
                    starts = range(0, bindings.count, _FEW)
                    yield from (slice(at, min(at + _FEW, bindings.count)) for at in starts)
                    return
                total += np.maximum(places[2] - places[1], 0)
        yield from pieces(total, evaluation.limit)

    def expanding(
        self,
        evaluation: Evaluation,
        bindings: Bindings,
        wanted: Iterable[Aggregate],
        listed: frozenset[str],
    ) -> set[str]:
        """The groups whose members are visited one by one, because no table answers all that is needed."""
        found: set[str] = set()
        none = bindings.only(np.empty(0, np.int64))
        for group in self.block.groups:
            own = [one for one in wanted if one.group == group.variable]
            if group.variable in listed or len(self._from_tables(evaluation, group, none, own)) < len(own):
                found.add(group.variable)
        return found

    def computed(
        self,
        evaluation: Evaluation,
        bindings: Bindings,
        wanted: list[Aggregate],
        listed: frozenset[str],
        spanned: frozenset[str] = frozenset(),
    ) -> tuple[dict[Aggregate, Vector], dict[str, Expanded]]:
        """The aggregates of candidates, and the members of the groups that are listed.

        Of the groups that are only spanned, the members include the first and the last.
        """
        found: dict[Aggregate, Vector] = {}
        members: dict[str, Expanded] = {}
        for group in self.block.groups:
            own = [one for one in wanted if one.group == group.variable]
            found |= self._from_tables(evaluation, group, bindings, own)
            own = [one for one in own if one not in found]
            if not own and group.variable not in listed | spanned:
                continue
            ends = not own and group.variable not in listed
            expanded = self.expanded(evaluation, group, bindings, ends=ends)
            for one in own:
                found[one] = aggregate_values(evaluation.events, one, expanded)
            if group.variable in listed | spanned:
                members[group.variable] = expanded
        return found, members
