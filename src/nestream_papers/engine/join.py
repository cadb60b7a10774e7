"""The general join: binds leaf by leaf, in any order, with negations as lateral anti-joins.

For every partial match, the candidates of the next leaf are a range of its stack: bounded by the events
already bound, within the key that equalities determine. Partial matches are processed in pieces, so that what
is built stays within the budget, whatever the fan-out.

A block with levels runs by iterative nested execution, as the papers describe it: starting with its last
event, first the leaves of the outermost expression, then those nested in it, each within the window that its
surroundings leave. Negated expressions are evaluated when the whole match is bound, from scratch for each
match and with all their results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nestream.engine.block import closure
from nestream.engine.event_buffer import Ints
from nestream.engine.operators.alike import alike
from nestream.engine.program import Edge, Equality
from nestream.model.expression import Expression, variables
from nestream_papers.engine.context import Bindings, Evaluation, Mask, Ranges, needed
from nestream_papers.engine.program import Block, Constraint, Negation, Witness
from nestream_papers.engine.stack import Stack, by_number, expand, least, places
from nestream_papers.engine.witness import witnessed
from nestream_papers.nested.shortcut import with_possible_matches, without_hopeless
from nestream_papers.sase.negation import all_events, in_interval, is_scanned

_NEARLY = 4
"""The join starts with a leaf that has an equality, unless another is this many times rarer."""
_SEVERAL = 4096
"""From this many rows on, sorting them pays off."""
_FEW = 4
"""How many events a lateral join first tries for an outer match, and the factor by which it then grows."""
_SAMPLE = 256
"""How many partial matches are sampled to choose the next leaf."""


@dataclass
class Join:
    """Finds the matches of a block, given matches of what is around it.

    `root` is the block of the whole query; the edges of intervals refer to its first and last events. `limit`
    is the maximum number of partial matches held at once.
    """

    evaluation: Evaluation
    block: Block
    root: Block
    negation: Negation | None
    limit: int

    def from_start(self, ranges: Ranges) -> Iterator[Bindings]:
        """The matches of the root block whose variables lie in the ranges."""
        name = self.starting_leaf(ranges)
        stack = self.stack(name, None)
        found = self.within(stack, name, ranges)
        for start in range(0, len(found), self.limit):
            piece = self.by_key(stack, found[start : start + self.limit], name)
            bindings = self.bound(Bindings({}, len(piece)), name, stack, piece, ranges)
            yield from self.extended(bindings, ranges, None)

    def by_key(self, stack: Stack, found: Ints, name: str) -> Ints:
        """Places ordered by the block's key, so that lookups go through the stacks from end to end."""
        if self.block.key is None or len(found) < _SEVERAL:
            return found
        return found[by_number(self.evaluation.keys.numbers(self.block.key[name])[stack.rows[found]])]

    def starting_leaf(self, ranges: Ranges) -> str:
        """The leaf to start with: the rarest, or the last of the sequence if ordering is switched off."""
        if self.block.levels is not None:
            limited = [name for name in self.block.leaves if name in ranges]
            return self.outermost_leaf(limited or list(self.block.leaves))
        sizes = {name: len(self.within(self.stack(name, None), name, ranges)) for name in self.choosable}
        if not self.evaluation.program.options.ordering:
            return min(reversed(sizes), key=lambda name: name not in ranges)
        least = min(sizes.values())
        linked = {name for e in self.block.equalities for name in (e.left[0], e.right[0]) if name in sizes}
        looked_up = [name for name in sizes if name in linked and sizes[name] <= _NEARLY * least]
        return min(looked_up or sizes, key=lambda name: (sizes[name], name not in ranges))

    @property
    def choosable(self) -> tuple[str, ...]:
        """The variables that can be bound next."""
        return self.block.variables

    def stack(self, name: str, key: tuple[str, ...] | None) -> Stack:
        """The stack that a variable is bound from, ordered by the key's attributes first."""
        return self.evaluation.stack(self.block.leaves[name], key)

    def within(self, stack: Stack, name: str, ranges: Ranges) -> Ints:
        """The places of a stack, by position, whose events lie in the range of a variable."""
        if name not in ranges:
            return np.arange(len(stack))
        first, end = np.searchsorted(stack.rows, np.searchsorted(self.evaluation.store.pos, ranges[name]))
        return np.arange(first, end)

    def in_range(self, rows: Ints, name: str, ranges: Ranges) -> Mask:
        first, end = ranges[name]
        positions = self.evaluation.store.pos[rows]
        return (positions >= first) & (positions < end)

    def extended(self, bindings: Bindings, ranges: Ranges, found: Mask | None) -> Iterator[Bindings]:
        """The matches that the partial matches extend to, piece by piece.

        With `found`, outer matches for which a match was already found are skipped.
        """
        if found is not None and bindings.outer is not None:
            bindings = bindings.only(~found[bindings.outer])
        if not bindings.count:
            return
        remaining = [name for name in self.choosable if name not in bindings.rows]
        if not remaining:
            yield bindings
            return
        name = self.next_leaf(remaining, bindings)
        stack, first, counts = self.range(name, bindings)
        if found is not None and bindings.outer is not None and len(remaining) == len(self.block.leaves):
            few = _FEW  # for an outer match, a few at a time: mostly these are enough
            while few < counts.max(initial=0):
                some = np.minimum(counts, few)
                yield from self.taken(name, bindings, stack, first + counts - some, some, ranges, found)
                rest = ~found[bindings.outer] & (counts > few)
                bindings, first, counts = bindings.only(rest), first[rest], counts[rest] - few
                few *= _FEW
        yield from self.taken(name, bindings, stack, first, counts, ranges, found)

    def taken(
        self,
        name: str,
        bindings: Bindings,
        stack: Stack,
        first: Ints,
        counts: Ints,
        ranges: Ranges,
        found: Mask | None,
    ) -> Iterator[Bindings]:
        """Extend partial matches by ranges of a leaf's stack."""
        if not bindings.count:
            return
        if counts.max() > self.limit:
            which, first, counts = _split(first, counts, self.limit)
            bindings = bindings.only(which)
        for piece in _pieces(counts, self.limit):
            part = bindings.only(np.arange(piece.start, piece.stop))
            run, here = expand(counts[piece], first[piece])
            yield from self.extended(self.bound(part.only(run), name, stack, here, ranges), ranges, found)

    def bound(self, bindings: Bindings, name: str, stack: Stack, here: Ints, ranges: Ranges) -> Bindings:
        """Bind a variable to events of a stack; return the partial matches that pass the tests."""
        bindings.rows[name] = stack.rows[here]
        return self.filtered(bindings, name, ranges)

    def next_leaf(self, remaining: list[str], bindings: Bindings) -> str:
        """The leaf with the fewest expected partial matches, measured on a sample."""
        if len(remaining) == 1:
            return remaining[0]
        if self.block.levels is not None:
            return self.outermost_leaf(remaining)
        if not self.evaluation.program.options.ordering:
            return remaining[-1]
        step = max(1, bindings.count // _SAMPLE)
        sample = bindings.only(np.arange(0, bindings.count, step))
        return min(remaining, key=lambda name: int(self.range(name, sample)[2].sum()))

    def outermost_leaf(self, names: list[str]) -> str:
        """The last of the least nested leaves."""
        assert self.block.levels is not None
        return min(reversed(names), key=self.block.levels.__getitem__)

    # -- the range of a leaf -------------------------------------------------------------------------------

    def range(self, name: str, bindings: Bindings) -> tuple[Stack, Ints, Ints]:
        """For each partial match, the first place in the leaf's stack and the number of candidates."""
        if is_scanned(self):
            return all_events(self, name, bindings)
        stack, start = self.lookup(name, bindings)
        first = self.lower(name, bindings, stack, start)
        end = self.upper(name, bindings, stack, start)
        counts = np.maximum(end - first, 0)
        counts[start < 0] = 0  # a NULL key equals nothing
        return stack, first, counts

    def lookup(self, name: str, bindings: Bindings) -> tuple[Stack, Ints]:
        """The leaf's stack by the attributes that equal bound ones, and where each match's key starts."""
        own, other = [], []
        for equality in self.equalities:
            for mine, theirs in ((equality.left, equality.right), (equality.right, equality.left)):
                if mine[0] == name and theirs[0] in bindings.rows and mine[1] not in own:
                    own.append(mine[1])
                    other.append(theirs)
        evaluation = self.evaluation
        if not own:
            return self.stack(name, None), np.zeros(bindings.count, np.int64)
        parts = [
            evaluation.keys.numbers((attribute,))[bindings.rows[variable]] for variable, attribute in other
        ]
        numbers, _ = evaluation.keys.combine(tuple(own), parts)
        return self.stack(name, tuple(own)), numbers * evaluation.stride

    @cached_property
    def order(self) -> frozenset[tuple[str, str]]:
        """The transitive order of the variables, because neighbours may be bound last."""
        return closure(self.block.order)

    @cached_property
    def equalities(self) -> list[Equality]:
        """The equalities of the block, including those of its key."""
        return list(self._equalities())

    def _equalities(self) -> Iterator[Equality]:
        yield from self.block.equalities
        if self.block.key:
            names = list(self.block.key)
            for left in names:
                for right in names:
                    if left < right:
                        for a, b in zip(self.block.key[left], self.block.key[right], strict=True):
                            yield Equality((left, a), (right, b))

    def lower(self, name: str, bindings: Bindings, stack: Stack, start: Ints) -> Ints:
        store = self.evaluation.store
        earlier = [store.pos[bindings.rows[x]] for x, y in self.order if y == name and x in bindings.rows]
        if earlier:
            return places(stack.low, start + np.maximum.reduce(earlier), "right")
        since: Ints | None = None
        if self.negation is None:
            since = store.reach(np.maximum.reduce(list(bindings.rows.values())))
        elif self.negation.interval.after is Edge.WINDOW_START:
            since = store.reach(self.evaluation.last(bindings, self.root))
        return places(stack.pos, start if since is None else start + since, "left")

    def upper(self, name: str, bindings: Bindings, stack: Stack, start: Ints) -> Ints:
        store = self.evaluation.store
        later = [store.low[bindings.rows[y]] for x, y in self.order if x == name and y in bindings.rows]
        ends: list[Ints] = []
        if later:
            ends.append(places(stack.pos, start + np.minimum.reduce(later), "left"))
        if self.negation is None:
            if not later:
                first = np.minimum.reduce(list(bindings.rows.values()))
                ends.append(places(stack.reach, start + store.pos[first], "right"))
        elif self.negation.interval.before is Edge.WINDOW_END:
            first = self.evaluation.first(bindings, self.root)
            ends.append(places(stack.reach, start + store.pos[first], "right"))
        elif self.negation.interval.before is Edge.MATCH_END:
            last = self.evaluation.last(bindings, self.root)
            ends.append(places(stack.low, start + store.pos[last], "right"))
        if not ends:
            ends.append(places(stack.pos, start + self.evaluation.stride, "left"))
        return least(ends)

    # -- filters -------------------------------------------------------------------------------------------

    def filtered(self, bindings: Bindings, name: str, ranges: Ranges) -> Bindings:
        """The partial matches that pass every test that is possible once `name` is bound."""
        bound = set(bindings.rows)
        if is_scanned(self) and bindings.count:
            bindings = in_interval(self, name, bindings)
        if name in ranges and bindings.count:
            bindings = bindings.only(self.in_range(bindings.rows[name], name, ranges))
        for x, y in self.block.apart:
            if name in (x, y) and {x, y} <= bound and bindings.count:
                bindings = bindings.only(bindings.rows[x] != bindings.rows[y])
        for predicate in self.due(name, bound):
            if bindings.count:
                bindings = bindings.only(self.evaluation.satisfied(predicate, bindings))
        for equality in self.same_variable_twice(name, bound):
            bindings = self.equal_terms(bindings, equality)
        bindings = without_hopeless(self, name, bindings)
        return self.without_negated(bindings, name)

    def due(self, name: str, bound: set[str]) -> list[Expression]:
        """The predicates to test once `name` is bound; without push-in, when the whole block is bound."""
        own = set(self.block.leaves)
        if not self.evaluation.program.options.push_in:
            return list(self.block.predicates) if own <= bound else []
        read = [(predicate, variables(predicate)) for predicate in self.block.predicates]
        return [p for p, names in read if names <= bound and (name in names or not names & own)]

    def same_variable_twice(self, name: str, bound: set[str]) -> list[Equality]:
        """The equalities that the lookup of `name` could not use: a second one on the same attribute."""
        used: set[str] = set()
        rest = []
        for equality in self.equalities:
            for mine, theirs in ((equality.left, equality.right), (equality.right, equality.left)):
                if mine[0] == name and theirs[0] in bound:
                    if mine[1] in used:
                        rest.append(equality)
                    used.add(mine[1])
        return rest

    def equal_terms(self, bindings: Bindings, equality: Equality) -> Bindings:
        sides = []
        for variable, attribute in (equality.left, equality.right):
            sides.append(self.evaluation.keys.numbers((attribute,))[bindings.rows[variable]])
        return bindings.only((sides[0] == sides[1]) & (sides[0] >= 0))

    def without_negated(self, bindings: Bindings, name: str) -> Bindings:
        """The partial matches without those that a negation rejects, for the negations now decidable."""
        bound = set(bindings.rows)
        for negation in self.block.negations:
            if not bindings.count:
                break
            wanted = needed(negation, self.root)
            own = wanted & set(self.block.leaves)
            if self.waits(negation):
                if not bound.issuperset(self.block.leaves):
                    continue
            elif not wanted <= bound or (own and name not in own):
                continue
            bindings = bindings.only(~self.drops(negation, bindings))
        for witness in self.block.witnesses:
            wanted = witness.needs(self.root)
            own = wanted & set(self.block.leaves)
            if bindings.count and wanted <= bound and (not own or name in own):
                bindings = bindings.only(self.satisfies(witness, bindings))
        return bindings

    def satisfies(self, constraint: Constraint, bindings: Bindings) -> Mask:
        """Which partial matches satisfy a constraint whose variables are all bound."""
        if isinstance(constraint, Witness):
            return witnessed(self.evaluation, constraint, bindings, self.root, self.limit)
        return ~self.drops(constraint, bindings)

    def waits(self, negation: Negation) -> bool:
        """Whether a negation is checked only when the whole block is bound.

        Nested execution does so; without push-in, predicates must be tested first.
        """
        late = negation.block.levels is not None or not self.evaluation.program.options.push_in
        return late and negation.stair is None

    def drops(self, negation: Negation, bindings: Bindings) -> Mask:
        """Which partial matches have a match of the negation in its interval."""
        if negation.stair is not None:
            return self.evaluation.occurs(negation, bindings, self.root)
        if negation.block.levels is None and self.evaluation.program.options.once:
            some = alike(
                bindings.rows, bindings.count, needed(negation, self.root), len(self.evaluation.store)
            )
            if some is not None:
                return self.joins(negation, bindings.only(some.first))[some.number]
        return self.joins(negation, bindings)

    def joins(self, negation: Negation, bindings: Bindings) -> Mask:
        """Which partial matches have a match of the negation, found by a lateral join."""
        found = np.zeros(bindings.count, bool)
        inner = Join(self.evaluation, negation.block, self.root, negation, self.limit)
        around = Bindings(dict(bindings.rows), bindings.count, np.arange(bindings.count))
        for predicate in negation.block.predicates:
            if not variables(predicate) & set(negation.block.leaves):
                around = around.only(self.evaluation.satisfied(predicate, around))
        around = with_possible_matches(inner, around)
        early = None if negation.block.levels is not None else found
        for match in inner.extended(around, {}, early):
            assert match.outer is not None
            found[match.outer] = True
        return found


def _split(first: Ints, counts: Ints, limit: int) -> tuple[Ints, Ints, Ints]:
    """Ranges of at most `limit` events: the partial match of each, its first place and its length."""
    parts = np.maximum(-(-counts // limit), 1)
    which, number = expand(parts, np.zeros(len(parts), np.int64))
    return which, first[which] + number * limit, np.minimum(counts[which] - number * limit, limit)


def _pieces(counts: Ints, limit: int) -> Iterator[slice]:
    """Consecutive runs of partial matches that extend to at most `limit` each, or a single larger one."""
    ends = np.cumsum(counts)
    start, done = 0, 0
    while start < len(counts):
        end = int(np.searchsorted(ends, done + limit, "right"))
        end = max(end, start + 1)
        yield slice(start, end)
        done = int(ends[end - 1])
        start = end


def ranges_of(block: Block, first: int, end: int, *, by_last: bool, length: int) -> Iterator[Ranges]:
    """Ranges whose matches together are those with their last (or first) event in `[first, end)`."""
    if first <= 0 and end >= length:
        yield {}
        return
    ends = outermost(block, by_last=by_last)
    for number, name in enumerate(ends):
        ranges = {name: (first, end)}
        for other in ends[:number]:
            ranges[other] = (0, first) if by_last else (end, length)
        for other in ends[number + 1 :]:
            ranges[other] = (0, end) if by_last else (first, length)
        yield ranges


def outermost(block: Block, *, by_last: bool) -> list[str]:
    """The variables that can bind the last (or first) event of a match of the block."""
    place = 0 if by_last else 1
    inner = {pair[place] for pair in block.order if set(pair) <= set(block.leaves)}
    return [name for name in block.leaves if name not in inner]
