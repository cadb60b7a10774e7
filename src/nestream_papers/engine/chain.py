"""Sequences without dead ends: for each event, the latest start of any prefix that can end in it.

The forward pass drops events that no prefix reaches; every other event remembers the latest start of its
prefixes. It grows along the stack, so the predecessors whose prefix still fits the window of a trigger are a
tail of the range, and every row that is built belongs to a match of the sequence with its bounds. Negations
between two steps only shorten the ranges. The cost is linear in events plus matches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.model.expression import variables
from nestream_papers.engine.context import Bindings, Evaluation, Mask, needed
from nestream_papers.engine.join import Join, _pieces, _split
from nestream_papers.engine.program import Block, Constraint, Negation, Witness
from nestream_papers.engine.stack import Stack, before, expand, places
from nestream_papers.engine.staircase import signature
from nestream_papers.engine.witness import gap_attributes, gap_range


@dataclass
class Step:
    """The events of one step that some prefix reaches.

    `start` is the latest start of a prefix (a coordinate); `lowest` and `end` are the places of the first and
    one past the last event of the previous step that may precede it, apart from the window.
    """

    stack: Stack
    start: Ints
    lowest: Ints
    end: Ints


def is_chain(block: Block) -> bool:
    """Whether a block can run as a chain: totally ordered, with no equality besides its key."""
    return block.chain is not None and not block.equalities


class Chain:
    """The steps of a sequence over the events, ready to find the matches of any of its last events."""

    def __init__(self, evaluation: Evaluation, block: Block, limit: int, since: int = 0) -> None:
        """Prepare the steps for the triggers from the position `since` on."""
        assert block.chain is not None
        self.since = since
        self.evaluation = evaluation
        self.block = block
        self.names = block.chain
        self.limit = limit
        self.join = Join(evaluation, block, block, None, limit)
        self.gaps: dict[tuple[str, str], list[Constraint]] = {}
        self.late: list[Constraint] = []
        for constraint in block.constraints:
            gap = self.gap(constraint)
            if gap is None or (isinstance(constraint, Witness) and not self.is_steady(constraint, gap)):
                self.late.append(constraint)
            else:
                self.gaps.setdefault(gap, []).append(constraint)
        self.steps = self._steps()
        self._starts: dict[int, Ints] = {}

    # -- constraints between neighbours --------------------------------------------------------------------

    def gap(self, constraint: Constraint) -> tuple[str, str] | None:
        """The neighbouring steps where the right one limits the left one; None if the constraint filters."""
        interval = constraint.interval
        for left, right in pairwise(self.names):
            if (interval.after, interval.before) == ((left,), (right,)):
                if isinstance(constraint, Witness):
                    known = gap_attributes(constraint, left, right, self.block.key) is not None
                else:
                    link = constraint.link
                    known = link is None or self._by_key(link) or link[0] == right
                    known = known and constraint.stair is not None
                return (left, right) if known else None
        return None

    def is_steady(self, witness: Witness, gap: tuple[str, str]) -> bool:
        """Whether what a witness allows moves forward with the right event, as latest starts require."""
        right = self.block.key[gap[1]] if self.block.key else ()
        attributes = gap_attributes(witness, *gap, self.block.key)
        return attributes is not None and all(name in right for names in attributes for name in names)

    def _by_key(self, link: tuple[str, tuple[str, ...]]) -> bool:
        return self.block.key is not None and self.block.key.get(link[0]) == link[1]

    def allowed(self, constraint: Constraint, stack: Stack, gap: tuple[str, str]) -> tuple[Ints, Ints | None]:
        """For each event after the gap, the range of positions that its left neighbour may have.

        None if only the order limits it on the right; -1 if nothing is allowed, or on the left if everything
        is.
        """
        if isinstance(constraint, Witness):
            attributes = gap_attributes(constraint, *gap, self.block.key)
            assert attributes is not None
            return gap_range(self.evaluation, constraint, attributes, stack.rows)
        start = self._key_start(constraint, stack)
        latest = self.evaluation.staircases.of(constraint).latest_low(start, stack.low - stack.start)
        latest[start < 0] = -1
        return latest, None

    # -- forward -------------------------------------------------------------------------------------------

    def _steps(self) -> list[Step]:
        steps: list[Step] = []
        shared = self.evaluation.prefixes if self.since <= 0 else None
        prefix: tuple[Hashable, ...] | None = ()
        for place, name in enumerate(self.names):
            pair = (self.names[place - 1], name) if place else None
            prefix = self._longer(prefix, name, pair) if shared is not None else None
            if shared is None or prefix is None:
                steps.append(self._made(name, pair, steps))
                continue
            if prefix not in shared:
                shared[prefix] = self._made(name, pair, steps)
            steps.append(shared[prefix])
        return steps

    def _made(self, name: str, pair: tuple[str, str] | None, before: list[Step]) -> Step:
        stack = self._stack(name)
        if self.evaluation.prefixes is None:  # what others use too is not made for the rarest leaf of one
            stack = self.narrowed(stack)
        if pair is None:
            empty = np.zeros(len(stack), np.int64)
            return Step(stack, stack.pos, empty, empty)
        return self._step(before[-1], stack, pair)

    def _longer(
        self, prefix: tuple[Hashable, ...] | None, name: str, pair: tuple[str, str] | None
    ) -> tuple[Hashable, ...] | None:
        """What the steps up to this one depend on, whatever the variables are called; None if on more."""
        if prefix is None:
            return None
        gap: list[Hashable] = [self.evaluation.program.options.reach]
        for constraint in self.gaps.get(pair, ()) if pair else ():
            if isinstance(constraint, Witness):
                return None
            link = constraint.link
            by_key = link is not None and self._by_key(link)
            gap.append((signature(constraint), by_key, link[1] if link else None))
        key = self.block.key[name] if self.block.key else None
        return (*prefix, (self.block.leaves[name], key, tuple(gap)))

    def _stack(self, name: str) -> Stack:
        """The stack of a step; if few events are new, only the keys of the new triggers."""
        key = self.block.key[name] if self.block.key else None
        leaf = self.block.leaves[name]
        if self.since <= 0:
            return self.evaluation.stack(leaf, key)
        store = self.evaluation.store
        rows = store.leaf_rows[leaf]
        if name == self.names[-1]:
            rows = self._new_triggers
        elif key is None:
            rows = rows[np.searchsorted(rows, self._oldest) :]
        else:
            rows = rows[self._wanted_keys[self.evaluation.keys.numbers(key)[rows]]]
        return Stack(store, rows, self.evaluation.keys.numbers(key) if key else None, self.evaluation.stride)

    @cached_property
    def _new_triggers(self) -> Ints:
        """The rows of the last step from the first wanted position on."""
        rows = self.evaluation.store.leaf_rows[self.block.leaves[self.names[-1]]]
        return rows[np.searchsorted(rows, np.searchsorted(self.evaluation.store.pos, self.since)) :]

    @cached_property
    def _oldest(self) -> int:
        """The first row in the window of a new trigger."""
        store = self.evaluation.store
        reach = store.reach(self._new_triggers[:1])
        return int(np.searchsorted(store.pos, reach[0])) if len(reach) else len(store)

    @cached_property
    def _wanted_keys(self) -> Mask:
        """Which key numbers a new trigger has; the last place, for NULL, stays false."""
        assert self.block.key is not None
        key = self.block.key[self.names[-1]]
        numbers = self.evaluation.keys.numbers(key)
        wanted = np.zeros(self.evaluation.keys.size(key) + 1, bool)
        wanted[numbers[self._new_triggers]] = True
        wanted[-1] = False
        return wanted

    def narrowed(self, stack: Stack) -> Stack:
        """The stack without the events that have no event of the rarest leaf within a window."""
        store = self.evaluation.store
        if not self.evaluation.program.options.narrowing:
            return stack
        rarest = min((store.leaf_rows[leaf] for leaf in self.block.leaves.values()), key=len)
        if len(rarest) * 8 > len(stack):
            return stack
        if not len(rarest):
            return stack.only(np.empty(0, np.int64))
        following = np.searchsorted(rarest, stack.rows, "left")
        after = np.minimum(following, len(rarest) - 1)
        near_after = (following < len(rarest)) & (store.reach(rarest)[after] <= store.pos[stack.rows])
        preceding = np.maximum(np.searchsorted(rarest, stack.rows, "right") - 1, 0)
        earlier = rarest[preceding]
        near_before = (earlier <= stack.rows) & (store.reach(stack.rows) <= store.pos[earlier])
        return stack.only(near_after | near_before)

    def _step(self, previous: Step, stack: Stack, pair: tuple[str, str]) -> Step:
        end = before(previous.stack, stack.low)
        bound, limit = self._bounded(stack, pair)
        lowest: Ints | None = None
        if bound is not None:
            found = places(previous.stack.pos, stack.start + np.maximum(bound, 0), "left")
            lowest = np.where(bound < 0, 0, found)
        if limit is not None:
            end = np.minimum(end, places(previous.stack.pos, stack.start + limit, "left"))
        if not len(previous.stack):
            possible = np.zeros(len(stack), bool)
        else:
            possible = end > 0
            possible &= previous.stack.pos[end - 1] >= stack.start
            if lowest is not None:
                possible &= end > lowest
        if lowest is None:
            lowest = np.zeros(len(stack), np.int64)
        if self.evaluation.program.options.reach:
            kept = np.flatnonzero(possible)
            if len(kept) < len(stack):
                stack, end, lowest = stack.only(kept), end[kept], lowest[kept]
            start = previous.start[end - 1] if len(kept) else np.empty(0, np.int64)
        else:
            start = np.zeros(len(stack), np.int64)
        return Step(stack, start, lowest, end)

    def _bounded(self, stack: Stack, pair: tuple[str, str]) -> tuple[Ints | None, Ints | None]:
        """The range of positions that the constraints of a gap allow for the previous step."""
        ranges = [self.allowed(constraint, stack, pair) for constraint in self.gaps.get(pair, ())]
        limits = [limit for _, limit in ranges if limit is not None]
        bound = np.maximum.reduce([bound for bound, _ in ranges]) if ranges else None
        return bound, np.minimum.reduce(limits) if limits else None

    def _key_start(self, negation: Negation, stack: Stack) -> Ints:
        """Where a negation's key begins for each event of the step after the gap."""
        if negation.link is None:
            return np.zeros(len(stack), np.int64)
        if self._by_key(negation.link):
            return stack.start
        return self.evaluation.keys.numbers(negation.link[1])[stack.rows] * self.evaluation.stride

    # -- backward ------------------------------------------------------------------------------------------

    def triggers(self, first: int, end: int) -> Ints:
        """The places in the last stack of the events with positions in `[first, end)`, in order."""
        places, positions = self._in_order
        return places[np.searchsorted(positions, first) : np.searchsorted(positions, end)]

    @cached_property
    def _in_order(self) -> tuple[Ints, Ints]:
        """The places of the last stack by position, for events that have a match of the sequence."""
        step, store = self.steps[-1], self.evaluation.store
        stack = step.stack
        places: Ints = np.arange(len(stack))
        if len(self.names) > 1 and self.evaluation.program.options.reach:
            places = places[step.start >= stack.reach]
        if stack.keyed:  # put them back into the order of their rows
            place_of = np.full(len(store), -1, np.int32)
            place_of[stack.rows[places]] = places
            places = place_of[place_of >= 0].astype(np.int64)
        return places, store.pos[stack.rows[places]]

    def matches(self, triggers: Ints) -> Iterator[Bindings]:
        """The matches that end with the triggers."""
        level = len(self.names) - 1
        kept = self._keep([triggers], level)
        yield from self._extend([triggers if kept is None else triggers[kept]], level)

    def _extend(self, places: list[Ints], level: int) -> Iterator[Bindings]:
        """Extend partial matches, given by their places from `level` on, to the left."""
        if not len(places[0]):
            return
        if level == 0:
            yield self.bindings(places, 0)
            return
        first, counts = self._ranges(places, level)
        if not len(counts):
            return
        if counts.max() > self.limit:
            which, first, counts = _split(first, counts, self.limit)
            places = [column[which] for column in places]
        for piece in _pieces(counts, self.limit):
            run, earlier = expand(counts[piece], first[piece])
            longer = [earlier, *(column[piece][run] for column in places)]
            kept = self._keep(longer, level - 1)
            if kept is not None:
                longer = [column[kept] for column in longer]
            yield from self._extend(longer, level - 1)

    def _ranges(self, places: list[Ints], level: int) -> tuple[Ints, Ints]:
        """The range of the previous step for each partial match."""
        step = self.steps[level]
        here = places[0]
        first = np.maximum(step.lowest[here], self._window_start(level - 1)[places[-1]])
        return first, np.maximum(step.end[here] - first, 0)

    def _window_start(self, level: int) -> Ints:
        """For each event of the last step, the first place of a step in its window."""
        if level not in self._starts:
            last, step = self.steps[-1].stack, self.steps[level]
            measure = step.start if self.evaluation.program.options.reach else step.stack.pos
            self._starts[level] = np.searchsorted(measure, last.reach, "left")
        return self._starts[level]

    def _keep(self, places: list[Ints], level: int) -> Ints | None:
        """Which partial matches pass the predicates and late negations now decidable; None for all."""
        name = self.names[level]
        bound = set(self.names[level:])
        due = [p for p in self.block.predicates if name in variables(p) and variables(p) <= bound]
        if not self.evaluation.program.options.push_in:
            due = [p for p in self.block.predicates if variables(p)] if level == 0 else []
        constant = [p for p in self.block.predicates if not variables(p)] if level == 0 else []
        late = [constraint for constraint in self.late if self._level(constraint) == level]
        if not due and not constant and not late:
            return None
        bindings = self.bindings(places, level)
        kept = np.arange(bindings.count)
        for predicate in (*due, *constant):
            held = self.evaluation.satisfied(predicate, bindings)
            kept, bindings = kept[held], bindings.only(held)
        for constraint in late:
            if bindings.count:
                stays = self.join.satisfies(constraint, bindings)
                kept, bindings = kept[stays], bindings.only(stays)
        return kept

    def _level(self, constraint: Constraint) -> int:
        """The step at which a late constraint is checked: the first possible one, unless tests follow."""
        options = self.evaluation.program.options
        if not (options.once and options.push_in):
            return 0
        root = self.block
        wanted = constraint.needs(root) if isinstance(constraint, Witness) else needed(constraint, root)
        level = min(map(self.names.index, wanted), default=0)
        tested = [variables(predicate) for predicate in root.predicates]
        later = any(self.names.index(name) < level for names in tested for name in names)
        return 0 if later else level

    def bindings(self, places: list[Ints], level: int) -> Bindings:
        """The partial matches as rows of events."""
        rows = {
            name: self.steps[level + number].stack.rows[column]
            for number, (name, column) in enumerate(zip(self.names[level:], places, strict=True))
        }
        return Bindings(rows, len(places[0]))

    def count(self, triggers: Ints) -> int:
        """Count the matches of the triggers."""
        return sum(self.counts(triggers))

    @property
    def builds_to_count(self) -> bool:
        """Whether matches must be built to count them."""
        return len(self.names) == 1 or bool(self.late or self.block.predicates)

    def counts(self, triggers: Ints) -> Iterator[int]:
        """Count the matches, piece by piece; the last extension is counted without building it."""
        if self.builds_to_count:
            return (bindings.count for bindings in self.matches(triggers))
        return self._count([triggers], len(self.names) - 1)

    @property
    def has_tests(self) -> bool:
        """Whether there are predicates, or a single step, so that the upper bound says little."""
        return len(self.names) == 1 or bool(self.block.predicates)

    def most(self, triggers: Ints) -> Iterator[int]:
        """The number of matches, piece by piece, if late constraints let all pass."""
        return self._count([triggers], len(self.names) - 1)

    def _count(self, places: list[Ints], level: int) -> Iterator[int]:
        first, counts = self._ranges(places, level)
        if level == 1:
            yield int(counts.sum())
            return
        for piece in _pieces(counts, self.limit):
            run, earlier = expand(counts[piece], first[piece])
            longer = [earlier, *(column[piece][run] for column in places)]
            yield from self._count(longer, level - 1)
