"""Adds what the output shows of groups: the members of matches, and the aggregates that RETURN computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestream.engine.aggregates import Expanded
from nestream.engine.block import Block, why_no_range
from nestream.engine.evaluation import Bindings, Evaluation
from nestream.engine.operator import Matches
from nestream.engine.operators.group_filter import GroupFilter
from nestream.engine.operators.lateral_join import LateralJoin
from nestream.model.expression import Aggregate
from nestream.model.output import Members
from nestream.model.vector import Vector


@dataclass(frozen=True)
class ShownGroups:
    """The groups whose members are listed, those that may widen the span of a match, and the aggregates."""

    listed: frozenset[str]
    spanned: frozenset[str]
    aggregates: tuple[Aggregate, ...]

    def completed(
        self, evaluation: Evaluation, blocks: Sequence[Block], matches: Matches
    ) -> Iterator[Matches]:
        """Complete matches with their groups, in pieces whose members can be held."""
        branches = list(_by_branch(blocks, matches))
        if len(branches) == 1:
            ((block, rows),) = branches
            finder = GroupFilter(block, block, LateralJoin)
            bindings = Bindings({name: matches.rows[name] for name in block.leaves}, matches.count)
            visited = self.listed | {
                group.variable
                for group in block.groups
                if group.variable in self.spanned and why_no_range(group) is not None
            }
            needed = finder.expanding(evaluation, bindings, self.aggregates, visited)
            for piece in finder.pieces(evaluation, bindings, needed):
                some = {name: column[piece] for name, column in matches.rows.items()}
                yield self._of_branch(evaluation, finder, Matches(some, piece.stop - piece.start))
            return
        parts = []
        for block, rows in branches:
            finder = GroupFilter(block, block, LateralJoin)
            own = Matches({name: column[rows] for name, column in matches.rows.items()}, len(rows))
            parts.append((rows, self._of_branch(evaluation, finder, own)))
        yield self._joined(matches, parts)

    def _of_branch(self, evaluation: Evaluation, finder: GroupFilter, matches: Matches) -> Matches:
        """Complete the matches of one block with its groups; the groups of other blocks are unbound."""
        own = {group.variable for group in finder.block.groups}
        rows = {name: matches.rows[name].astype(np.int32, copy=False) for name in finder.block.leaves}
        bindings = Bindings(rows, matches.count)
        wanted = [one for one in self.aggregates if one.group in own]
        shown = self.listed | self.spanned
        found, expanded = finder.computed(evaluation, bindings, wanted, self.listed & own, self.spanned & own)
        for one in self.aggregates:
            if one not in found:
                found[one] = Vector.nothing(matches.count)
        members = {name: _members(expanded.get(name), matches.count) for name in shown}
        return Matches(matches.rows, matches.count, members=members, aggregates=found)

    def _joined(self, matches: Matches, parts: Sequence[tuple[npt.NDArray[np.int64], Matches]]) -> Matches:
        """The matches of several blocks in their order."""
        members = {
            name: _in_order(matches.count, [(rows, part.members[name]) for rows, part in parts])
            for name in self.listed | self.spanned
        }
        found: dict[Aggregate, Vector] = {}
        for one in self.aggregates:
            items: list[object] = [None] * matches.count
            for rows, part in parts:
                for row, item in zip(rows.tolist(), part.aggregates[one].items(len(rows)), strict=True):
                    items[row] = item
            found[one] = Vector.from_items(items)
        return Matches(matches.rows, matches.count, members=members, aggregates=found)


def _by_branch(blocks: Sequence[Block], matches: Matches) -> Iterator[tuple[Block, npt.NDArray[np.int64]]]:
    """The matches of each block: those that bind its variables and no others."""
    if len(blocks) == 1:
        yield blocks[0], np.arange(matches.count)
        return
    seen: set[frozenset[str]] = set()
    for block in blocks:
        own = frozenset(block.leaves)
        if own in seen:  # alternatives of WHERE, which have the same groups
            continue
        seen.add(own)
        bound = [(column >= 0) == (name in own) for name, column in matches.rows.items()]
        rows = np.flatnonzero(np.logical_and.reduce(bound))
        if len(rows):
            yield block, rows


def _members(expanded: Expanded | None, count: int) -> Members:
    if expanded is None:
        return Members(np.full(count, -1, np.int64), {})
    return Members(
        np.diff(expanded.begin), {name: rows.astype(np.int64) for name, rows in expanded.rows.items()}
    )


def _in_order(count: int, parts: Sequence[tuple[npt.NDArray[np.int64], Members]]) -> Members:
    """Sort the members of matches that were found separately into the order of the matches."""
    counts = np.full(count, -1, np.int64)
    whose: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    columns: dict[str, list[npt.NDArray[np.int64]]] = {}
    for rows, part in parts:
        counts[rows] = part.counts
        if part.rows:
            whose.append(np.repeat(rows, np.maximum(part.counts, 0)))
            for name, column in part.rows.items():
                columns.setdefault(name, []).append(column)
    order = np.argsort(np.concatenate(whose), kind="stable")
    joined: Mapping[str, npt.NDArray[np.int64]] = {
        name: np.concatenate(found)[order] for name, found in columns.items()
    }
    return Members(counts, joined)
