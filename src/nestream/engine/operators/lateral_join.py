"""LateralJoin: binds leaf by leaf in any order, and checks negations match by match. Always applicable.

For every partial match, the candidates of the next leaf are a range of its stack: between the events already
bound, within the window, and within the key that equalities determine. A negation that is not derived is
searched in the same way, inside its interval, until one match is found. Partial matches are processed in
pieces, so that what is built stays within the budget, whatever the fan-out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from nestream.engine.block import Block, Negation, closure
from nestream.engine.evaluation import Bindings, Evaluation, Mask, Stack, places_in
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import extend
from nestream.engine.kernels.stack import taken
from nestream.engine.operators.alike import alike
from nestream.engine.operators.derived import occurs
from nestream.engine.operators.group_filter import GroupFilter, filters
from nestream.engine.operators.operator import Asked
from nestream.engine.pieces import pieces, sample
from nestream.engine.program import Edge, Equality
from nestream.model.expression import Expression, variables

Ranges = Mapping[str, tuple[int, int]]
"""For some variables, the rows `[first, end)` that their events must have."""

_NEARLY = 4
"""A join starts at a leaf that an equality relates to another, unless some leaf is this many times rarer."""
_FEW = 4
"""How many events a lateral join first tries for each outer match, and the factor by which it then grows."""
_SAMPLE = 256
"""How many partial matches are sampled to choose the next leaf, and events to estimate the matches."""
_AT_FIRST = 32
"""How many of these events are looked at first; half as many matches are enough for an estimate."""


class LateralJoin:
    """The matches of any block."""

    name = "LateralJoin"

    def __init__(self, block: Block, root: Block | None = None, negation: Negation | None = None) -> None:
        """`root` is the block of the whole query: edges of intervals refer to its first and last events."""
        self.block = block
        self.root = root or block
        self.negation = negation
        self._inner: dict[int, LateralJoin] = {}
        self.groups = GroupFilter(block, self.root, LateralJoin) if filters(block) else None

    def run(self, evaluation: Evaluation, asked: Asked) -> Iterator[Bindings]:
        """The matches, in no particular order."""
        return self.within(evaluation, asked, {})

    def within(self, evaluation: Evaluation, asked: Asked, spans: Ranges) -> Iterator[Bindings]:
        """The matches whose variables have rows in some spans."""
        for ranges in ranges_of(self.block, asked, len(evaluation)):
            narrowed = dict(ranges)
            for name, (first, end) in spans.items():
                since, until = ranges.get(name, (first, end))
                narrowed[name] = max(since, first), min(until, end)
            if all(first < end for first, end in narrowed.values()):
                yield from self._started(evaluation, narrowed)

    def expected(self, evaluation: Evaluation, asked: Asked) -> float | None:
        """Unknown before the matches are built."""
        return None

    def counts(self, evaluation: Evaluation, asked: Asked) -> Iterator[int]:
        """Count the matches, piece by piece."""
        return (found.count for found in self.run(evaluation, asked))

    # -- leaf by leaf --------------------------------------------------------------------------------------

    def _started(self, evaluation: Evaluation, ranges: Ranges) -> Iterator[Bindings]:
        """The matches whose variables lie in the ranges, starting with the rarest leaf."""
        name, rows = self._first_leaf(evaluation, ranges)
        for start in range(0, len(rows), evaluation.limit):
            piece = rows[start : start + evaluation.limit]
            bindings = self._filtered(evaluation, Bindings({name: piece}, len(piece)), name)
            yield from self._extended(evaluation, bindings, ranges, None)

    def _first_leaf(self, evaluation: Evaluation, ranges: Ranges) -> tuple[str, Rows]:
        """The leaf to start at, and its rows; no rows if some leaf has none."""
        rows = {name: self._rows(evaluation, name, ranges) for name in self.block.leaves}
        least = min(map(len, rows.values()))
        linked = {name for e in self.block.equalities for name in (e.left[0], e.right[0]) if name in rows}
        looked_up = [name for name in rows if name in linked and len(rows[name]) <= _NEARLY * least]
        name = min(looked_up or rows, key=lambda name: (len(rows[name]), name not in ranges))
        return name, rows[name] if least else rows[name][:0]

    def sampled(self, evaluation: Evaluation) -> float:
        """Estimate the number of matches from those of a few events of the leaf that the join starts at."""
        name, rows = self._first_leaf(evaluation, {})
        some = sample(rows, _SAMPLE)
        found = looked_at = 0
        for piece in (some[:_AT_FIRST], some[_AT_FIRST:]):
            bindings = Bindings({name: piece}, len(piece), np.arange(len(piece), dtype=np.int32))
            counted, own = len(piece), 0
            for part in self._extended(evaluation, self._filtered(evaluation, bindings, name), {}, None):
                own += part.count
                if own > evaluation.limit:  # the matches of the first events come first
                    assert part.outer is not None
                    counted = int(part.outer.max()) + 1
                    break
            found, looked_at = found + own, looked_at + counted
            if found >= _AT_FIRST // 2:  # enough to know about how many there are
                break
        return found / max(looked_at, 1) * len(rows)

    def _rows(self, evaluation: Evaluation, name: str, ranges: Ranges) -> Rows:
        rows = evaluation.leaf_rows(self.block.leaves[name])
        if name not in ranges:
            return rows
        first, end = np.searchsorted(rows, ranges[name])
        return rows[first:end]

    def _extended(
        self, evaluation: Evaluation, bindings: Bindings, ranges: Ranges, found: Mask | None
    ) -> Iterator[Bindings]:
        """The matches that partial matches extend to, piece by piece.

        With `found`, outer matches for which a match was already found are skipped.
        """
        if found is not None and bindings.outer is not None:
            bindings = bindings.only(~found[bindings.outer])
        if not bindings.count:
            return
        remaining = [name for name in self.block.leaves if name not in bindings.rows]
        if not remaining:
            passed = bindings if self.groups is None else self.groups.passed(evaluation, bindings)
            if passed.count:
                yield passed
            return
        name, (stack, first, end) = self._next_leaf(evaluation, remaining, bindings, ranges)
        if found is not None and len(remaining) == len(self.block.leaves):
            assert bindings.outer is not None
            few = _FEW  # for an outer match, a few at a time: mostly these are enough
            while few < (end - first).max(initial=0):
                some = np.maximum(end - few, first)
                yield from self._taken(evaluation, name, bindings, stack, some, end, ranges, found)
                rest = ~found[bindings.outer] & (some > first)
                bindings, first, end = bindings.only(rest), first[rest], some[rest]
                few *= _FEW
        yield from self._taken(evaluation, name, bindings, stack, first, end, ranges, found)

    def _taken(
        self,
        evaluation: Evaluation,
        name: str,
        bindings: Bindings,
        stack: Stack,
        first: Rows,
        end: Rows,
        ranges: Ranges,
        found: Mask | None,
    ) -> Iterator[Bindings]:
        """Extend partial matches by ranges of a leaf's stack."""
        counts = np.maximum(end - first, 0).astype(np.int64)
        limit = evaluation.limit
        for piece in pieces(counts, limit):
            total = int(counts[piece].sum())
            if not total:
                continue
            if total <= limit:
                number = np.arange(piece.start, piece.stop, dtype=np.int32).reshape(1, -1)
                longer, _ = extend(number, first[piece], first, end, total)
                parts = [(longer[1], longer[0])]
            else:  # a single partial match has too many
                cuts = range(int(first[piece.start]), int(end[piece.start]), limit)
                own = [np.arange(s, min(s + limit, int(end[piece.start])), dtype=np.int32) for s in cuts]
                parts = [(np.full(len(places), piece.start, np.int32), places) for places in own]
            for origin, places in parts:
                more = bindings.repeated(origin)
                more.rows[name] = taken(stack.rows, places)
                yield from self._extended(evaluation, self._filtered(evaluation, more, name), ranges, found)

    def _next_leaf(
        self, evaluation: Evaluation, remaining: list[str], bindings: Bindings, ranges: Ranges
    ) -> tuple[str, tuple[Stack, Rows, Rows]]:
        """The leaf with the fewest expected partial matches, measured on a sample, and its range."""
        step = max(1, bindings.count // _SAMPLE) if len(remaining) > 1 else 1
        some = bindings if step == 1 else bindings.only(np.arange(0, bindings.count, step))
        found = {name: self._range(evaluation, name, some, ranges) for name in remaining}

        def promised(name: str) -> int:
            _, first, end = found[name]
            return int(np.maximum(end - first, 0).sum())

        name = min(remaining, key=promised)
        return name, found[name] if step == 1 else self._range(evaluation, name, bindings, ranges)

    # -- the range of a leaf -------------------------------------------------------------------------------

    def _range(
        self, evaluation: Evaluation, name: str, bindings: Bindings, ranges: Ranges
    ) -> tuple[Stack, Rows, Rows]:
        """For each partial match, the places of the leaf's stack whose events may extend it."""
        stack, number = self._lookup(evaluation, name, bindings)
        first = self._lower(evaluation, name, bindings, stack, number)
        end = self._upper(evaluation, name, bindings, stack, number)
        if name in ranges:
            since, until = (np.full(bindings.count, row, np.int32) for row in ranges[name])
            first = np.maximum(first, places_in(stack, stack.rows, number, since))
            end = np.minimum(end, places_in(stack, stack.rows, number, until))
        end = np.where(number < 0, first, np.maximum(first, end))  # a NULL key equals nothing
        return stack, first, end

    def _lookup(self, evaluation: Evaluation, name: str, bindings: Bindings) -> tuple[Stack, Rows]:
        """The leaf's stack by the attributes that equal bound ones, and each match's number in it."""
        own: list[str] = []
        columns: list[Rows] = []
        numbering = evaluation.numbering
        for equality in self._equalities:
            for mine, theirs in ((equality.left, equality.right), (equality.right, equality.left)):
                if mine[0] == name and theirs[0] in bindings.rows and mine[1] not in own:
                    own.append(mine[1])
                    columns.append(numbering.of((theirs[1],))[bindings.rows[theirs[0]]])
        leaf = self.block.leaves[name]
        if not own:
            return evaluation.stack(leaf, None), np.zeros(bindings.count, np.int32)
        number = columns[0] if len(own) == 1 else numbering.combine(tuple(own), columns)
        return evaluation.stack(leaf, tuple(own)), number

    def looked_up(self, bindings: Bindings) -> tuple[str, ...] | None:
        """The attributes of a single-event inner block by which `members` looks it up."""
        (name,) = self.block.leaves
        own: list[str] = []
        for equality in self._equalities:
            for mine, theirs in ((equality.left, equality.right), (equality.right, equality.left)):
                if mine[0] == name and theirs[0] in bindings.rows and mine[1] not in own:
                    own.append(mine[1])
        return tuple(own) or None

    @cached_property
    def _order(self) -> frozenset[tuple[str, str]]:
        """The transitive order of the variables, because neighbours may be bound last."""
        return closure(self.block.order)

    @cached_property
    def _equalities(self) -> list[Equality]:
        """The equalities of the block, including those of its key."""
        found = list(self.block.equalities)
        for left, own in (self.block.key or {}).items():
            for right, other in (self.block.key or {}).items():
                if left < right:
                    found += [Equality((left, a), (right, b)) for a, b in zip(own, other, strict=True)]
        return found

    def _lower(
        self, evaluation: Evaluation, name: str, bindings: Bindings, stack: Stack, number: Rows
    ) -> Rows:
        earlier = [bindings.rows[x] for x, y in self._order if y == name and x in bindings.rows]
        if earlier:
            return places_in(stack, evaluation.low, number, np.maximum.reduce(earlier) + 1)
        since = np.zeros(bindings.count, np.int32)
        if self.negation is None:
            since = evaluation.reach[np.maximum.reduce(list(bindings.rows.values()))]
        elif self.negation.interval.after is Edge.WINDOW_START:
            since = evaluation.reach[last_of(bindings, self.root)]
        return places_in(stack, stack.rows, number, since)

    def _upper(
        self, evaluation: Evaluation, name: str, bindings: Bindings, stack: Stack, number: Rows
    ) -> Rows:
        later = [evaluation.low[bindings.rows[y]] for x, y in self._order if x == name and y in bindings.rows]
        ends: list[Rows] = []
        if later:
            ends.append(places_in(stack, stack.rows, number, np.minimum.reduce(later)))
        if self.negation is None:
            if not later:
                first = np.minimum.reduce(list(bindings.rows.values()))
                ends.append(places_in(stack, evaluation.reach, number, first + 1))
        elif self.negation.interval.before is Edge.WINDOW_END:
            ends.append(places_in(stack, evaluation.reach, number, first_of(bindings, self.root) + 1))
        elif self.negation.interval.before is Edge.MATCH_END:
            ends.append(places_in(stack, evaluation.low, number, last_of(bindings, self.root) + 1))
        return np.minimum.reduce(ends) if ends else stack.begin[1:][number]

    # -- filters -------------------------------------------------------------------------------------------

    def _filtered(self, evaluation: Evaluation, bindings: Bindings, name: str) -> Bindings:
        """The partial matches that pass every test that is possible once `name` is bound."""
        bound = set(bindings.rows)
        for x, y in self.block.apart:
            if name in (x, y) and {x, y} <= bound and bindings.count:
                bindings = bindings.only(bindings.rows[x] != bindings.rows[y])
        for predicate in self._due(name, bound):
            if bindings.count:
                bindings = bindings.only(evaluation.satisfied(predicate, bindings))
        for equality in self._not_looked_up(name, bound):
            left, right = (
                evaluation.numbering.of((attribute,))[bindings.rows[variable]]
                for variable, attribute in (equality.left, equality.right)
            )
            bindings = bindings.only((left == right) & (left >= 0))
        return self._without_negated(evaluation, bindings, name)

    def _due(self, name: str, bound: set[str]) -> list[Expression]:
        """The predicates that can be tested once `name` is bound."""
        own = set(self.block.leaves)
        return [p for p, names in self._read if names <= bound and (name in names or not names & own)]

    @cached_property
    def _read(self) -> list[tuple[Expression, frozenset[str]]]:
        """The predicates, with the variables that each reads."""
        return [(predicate, variables(predicate)) for predicate in self.block.predicates]

    def _not_looked_up(self, name: str, bound: set[str]) -> list[Equality]:
        """The equalities that the lookup of `name` could not use: a second one on the same attribute."""
        used: set[str] = set()
        rest = []
        for equality in self._equalities:
            for mine, theirs in ((equality.left, equality.right), (equality.right, equality.left)):
                if mine[0] == name and theirs[0] in bound:
                    if mine[1] in used:
                        rest.append(equality)
                    used.add(mine[1])
        return rest

    def _without_negated(self, evaluation: Evaluation, bindings: Bindings, name: str) -> Bindings:
        """The partial matches without those that a negation rejects, for the negations now decidable."""
        bound = set(bindings.rows)
        for negation in self.block.negations:
            wanted = negation.needs(self.root)
            own = wanted & set(self.block.leaves)
            if bindings.count and wanted <= bound and (not own or name in own):
                bindings = bindings.only(~self.drops(evaluation, negation, bindings))
        return bindings

    # -- negations -----------------------------------------------------------------------------------------

    def drops(self, evaluation: Evaluation, negation: Negation, bindings: Bindings) -> Mask:
        """Which partial matches have a match of the negation in its interval."""
        derived = negation.derived
        staircase = derived.staircase(evaluation) if derived is not None else None
        if derived is not None and staircase is not None:
            terms = [(attribute, bindings.rows[name]) for name, attribute in negation.link]
            number = derived.numbers(evaluation, terms, bindings.count)
            return occurs(staircase, evaluation, number, *self._limits(evaluation, negation, bindings))
        some = alike(bindings.rows, bindings.count, negation.needs(self.root), len(evaluation))
        if some is None:
            return self._joined(evaluation, negation, bindings)
        return self._joined(evaluation, negation, bindings.only(some.first))[some.number]

    def _limits(
        self, evaluation: Evaluation, negation: Negation, bindings: Bindings
    ) -> tuple[tuple[str, Rows], Rows | None, Rows | None]:
        """The interval of a negation, as `occurs` takes it."""
        interval = negation.interval
        after = since = None
        if isinstance(interval.after, Edge):
            since = evaluation.reach[last_of(bindings, self.root)]
        else:
            after = np.maximum.reduce([bindings.rows[name] for name in interval.after])
        if interval.before is Edge.WINDOW_END:
            return ("reach", first_of(bindings, self.root)), after, since
        if interval.before is Edge.MATCH_END:
            return ("low", last_of(bindings, self.root)), after, since
        before = np.minimum.reduce([evaluation.low[bindings.rows[name]] for name in interval.before])
        return ("before", before), after, since

    def _joined(self, evaluation: Evaluation, negation: Negation, bindings: Bindings) -> Mask:
        """Which partial matches have a match of the negation, found by joining."""
        if id(negation) not in self._inner:
            self._inner[id(negation)] = LateralJoin(negation.block, self.root, negation)
        found = np.zeros(bindings.count, bool)
        for match in self._inner[id(negation)].inside(evaluation, bindings, found):
            assert match.outer is not None
            found[match.outer] = True
        return found

    def inside(self, evaluation: Evaluation, bindings: Bindings, found: Mask | None) -> Iterator[Bindings]:
        """The matches of an inner block for each outer match, whose number is their `outer`.

        With `found`, outer matches for which one was already found are skipped.
        """
        around = Bindings(dict(bindings.rows), bindings.count, np.arange(bindings.count, dtype=np.int32))
        for predicate in self.block.predicates:
            if not variables(predicate) & set(self.block.leaves):
                around = around.only(evaluation.satisfied(predicate, around))
        return self._extended(evaluation, around, {}, found)

    def members(self, evaluation: Evaluation, bindings: Bindings) -> tuple[Stack, Rows, Rows] | None:
        """For each outer match, the places of a stack that hold all matches of a single-event inner block.

        None where anything besides an interval and a key decides which they are.
        """
        (name, *others) = self.block.leaves
        block = self.block
        if others or block.predicates or block.apart or block.negations or block.groups:
            return None
        if self._not_looked_up(name, set(bindings.rows) | {name}):
            return None
        return self._range(evaluation, name, bindings, {})


def first_of(bindings: Bindings, root: Block) -> Rows:
    """The rows of the first events of the outer matches."""
    found: Rows = np.minimum.reduce([bindings.rows[name] for name in root.leaves])
    return found


def last_of(bindings: Bindings, root: Block) -> Rows:
    """The rows of the last events of the outer matches."""
    found: Rows = np.maximum.reduce([bindings.rows[name] for name in root.leaves])
    return found


def ranges_of(block: Block, asked: Asked, length: int) -> Iterator[Ranges]:
    """Yield ranges: a match whose last (or first) event has one of the wanted rows fits exactly one."""
    if asked.first <= 0 and asked.end >= length:
        yield {}
        return
    ends = block.outermost(last=asked.by_last)
    for number, name in enumerate(ends):
        ranges = {name: (asked.first, asked.end)}
        for other in ends[:number]:
            ranges[other] = (0, asked.first) if asked.by_last else (asked.end, length)
        for other in ends[number + 1 :]:
            ranges[other] = (0, asked.end) if asked.by_last else (asked.first, length)
        yield ranges
