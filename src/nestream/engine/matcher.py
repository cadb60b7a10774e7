"""The engine: ordered events in, matches out, up to a watermark; and what it must hold to go on.

A match is given when it is decided: with its last event, or when the time of its last event, or the window of
its first, has passed. So the state is only the events that can still take part and how far was decided;
nothing of a match is kept between two batches but, where the output is distinct, what was already given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nestream.engine.chain import Chain, is_chain
from nestream.engine.context import Bindings, Round, Shared
from nestream.engine.distinct import Given
from nestream.engine.events import Events, Ints
from nestream.engine.join import outermost
from nestream.engine.keys import attribute_groups
from nestream.engine.moment import Moment
from nestream.engine.order import in_output_order
from nestream.engine.program import Decided, Measure, Program
from nestream.engine.runs import BlockRun
from nestream.engine.sase.plan import is_planned
from nestream.engine.sharing.prefix import PreCache
from nestream.engine.sharing.runs import runs_of
from nestream.engine.store import Store
from nestream.engine.views.shelf import Shelf

UNBOUND = -1
PIECE = 1 << 17
"""How many partial matches are worked on at once: so few stay in the processor's caches, which makes matching
nearly twice as fast as working on millions, and memory small."""
END = np.iinfo(np.int64).max
"""The watermark at the end of a finite input: all time has passed."""


@dataclass(frozen=True)
class Matches:
    """Some matches: for each kept variable the rows of its events in the store, UNBOUND where it has none."""

    rows: dict[str, Ints]
    count: int


class Matcher:
    """Runs a program over events that arrive in order; several may run over the same events."""

    def __init__(self, program: Program, events: Events) -> None:
        self.program = program
        self.events = events
        self.store = Store(events, program)
        self.decided = [0] * len(program.blocks)
        """For each block, the position up to which its matches were given, by their last or first event."""
        self.watermark: int | None = None
        self.given = Given(program.kept) if program.distinct else None
        self._repeats = True
        """Whether a match that was given may be found again later."""
        self.caches: dict[int, PreCache] = {}
        self.shelves = {number: Shelf(program) for number, block in enumerate(program.blocks) if block.viewed}
        """The views of each block that has some."""
        width = max(len(block.leaves) for block in program.blocks)
        self.budget = max(1, program.options.memory // (64 * (width + 1)))
        """How many matches of one moment may be held."""
        self.limit = min(PIECE, self.budget)

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """The attributes that the program compares with each other."""
        return attribute_groups([self.program])

    # -- matches out ---------------------------------------------------------------------------------------

    def advance(
        self, watermark: int, rounds: Rounds | None = None, *, in_order: bool = True
    ) -> Iterator[Matches]:
        """Give the matches that are decided once no event earlier than the watermark can come.

        With `rounds` this matcher is one of several over the same events, which are then not forgotten here.
        Matches that are not found in the order of the output are held and sorted if `in_order` is set.
        """
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        self.events.seal()
        if len(self.store):
            targets = [self._decidable(decided, self.watermark) for decided in self.program.decided]
            at_once = self.watermark == END and not any(self.decided)
            found = self._decide(targets, at_once=at_once, rounds=rounds)
            sorted_already = found_in_order(self.program, at_once=at_once)
            yield from found if sorted_already or not in_order else self._all_in_order(found)
        if rounds is None:
            self._expire()

    def between(self, first: int, end: int, rounds: Rounds | None = None) -> Iterator[Matches]:
        """Give the matches that end from a time on and before another, all the events having arrived."""
        self.watermark = END
        self.events.seal()
        store = self.store
        if not len(store):
            return
        rows = np.searchsorted(store.ts, (first, end))
        bounds = [int(store.pos[row]) + store.base if row < len(store) else self.events.seen for row in rows]
        count = len(self.program.blocks)
        self.decided = [bounds[0]] * count
        yield from self._decide([bounds[1]] * count, at_once=True, rounds=rounds)

    def count(self) -> int:
        """How many matches there are when all the events have arrived, without building what it need not."""
        return sum(self.counts())

    def counts(self) -> Iterator[int]:
        """The same in parts, so that counting can be given up."""
        self.watermark = END
        self.events.seal()
        if not len(self.store):
            return
        planned = any(is_planned(block, self.program.options) for block in self.program.blocks)
        alone = self.given is None and not self.program.groups and not planned
        if alone and all(is_chain(block) for block in self.program.blocks):
            round = Round(self.store, Shared(self.events, self.groups))
            length = int(self.store.pos[-1]) + 1
            chains = [Chain(round, block, self.limit) for block in self.program.blocks]
            for chain in chains:
                yield from chain.counts(chain.triggers(0, length))
        else:
            yield from (matches.count for matches in self.advance(END, in_order=False))

    def _all_in_order(self, found: Iterable[Matches]) -> Iterator[Matches]:
        """All the matches, sorted together."""
        parts = list(found)
        if len(parts) < 2:
            yield from parts
            return
        columns = [np.concatenate([part.rows[name] for part in parts]) for name in self.program.kept]
        columns = in_output_order(columns, self.store)
        whole = Matches(dict(zip(self.program.kept, columns, strict=True)), len(columns[0]))
        yield from self._pieces([whole])

    def _decide(self, targets: list[int], *, at_once: bool, rounds: Rounds | None) -> Iterator[Matches]:
        """Give the matches up to the target positions, by their last events where all are decided at once."""
        store, base = self.store, self.store.base
        if all(done >= target for done, target in zip(self.decided, targets, strict=True)):
            return
        if self._nothing_new(targets, at_once=at_once):
            self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]
            return
        round = rounds.of(self.program) if rounds else Round(store, Shared(self.events, self.groups))
        runs = runs_of(self.program, round, self.limit, self.caches, at_once=at_once, shelves=self.shelves)
        self._repeats = self.given is not None and not told_by_last(self.program, at_once=at_once)
        first = max(min(self.decided) - base, 0)
        end = max(targets) - base
        length = int(store.pos[-1]) + 1
        size = min(run.promising(first, end, length) for run in runs)
        while first < end:
            until = self._cut(first, size, end)
            try:
                found: Iterable[Matches] = self._collect(runs, first, until, targets, self.limit)
            except _TooManyError:
                size = max(1, (until - first) // 2)
                if self._cut(first, size, end) < until:
                    continue
                found = self._at_one_moment(runs, round, first, until, targets)
            yield from found
            first = until
        self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]

    def _nothing_new(self, targets: list[int], *, at_once: bool) -> bool:
        """Whether no event that could be the last (or first) of a match is in what is now decided."""
        store = self.store
        for block, decided, done, target in zip(
            self.program.blocks, self.program.decided, self.decided, targets, strict=True
        ):
            by_last = at_once or decided is not Decided.WINDOW
            for name in outermost(block, by_last=by_last):
                rows = store.leaf_rows[block.leaves[name]]
                first, end = np.searchsorted(store.pos, (done - store.base, target - store.base))
                if np.searchsorted(rows, first) < np.searchsorted(rows, end):
                    return False
        return True

    def _cut(self, first: int, size: int, end: int) -> int:
        """A position at most `size` on where the time changes, so that equal ends stay together."""
        if first + size >= end:
            return end
        store = self.store
        row = int(np.searchsorted(store.pos, first + size, "left"))
        if row >= len(store):
            return end
        row = int(np.searchsorted(store.ts, store.ts[row], "left"))
        if store.pos[row] <= first:
            row = int(np.searchsorted(store.ts, store.ts[row], "right"))
            return int(store.pos[row]) if row < len(store) else end
        return int(store.pos[row])

    def _decidable(self, decided: Decided, watermark: int) -> int:
        """The position up to which the matches of a block are decided."""
        store, program = self.store, self.program
        if watermark == END:
            return self.events.seen
        match decided:
            case Decided.LAST:
                return self.events.seen
            case Decided.CLOSED:
                row = int(np.searchsorted(store.ts, watermark, "left"))
            case Decided.WINDOW:
                if program.measure is Measure.NONE:
                    return 0
                if program.measure is Measure.EVENTS:
                    return max(self.events.seen - (program.window - 1), 0)
                row = int(store.since(watermark - program.window))
        return int(store.pos[row]) + store.base if row < len(store) else self.events.seen

    def _collect(
        self, runs: list[BlockRun], first: int, end: int, targets: list[int], most: int
    ) -> list[Matches]:
        """The matches decided in a range of positions, sorted; raises where there are more than `most`."""
        held: list[Bindings] = []
        total = 0
        for bindings in self._parts(runs, first, end, targets):
            total += bindings.count
            if total > most:
                raise _TooManyError
            held.append(bindings)
        return self._sorted(held, repeated=self._repeats)

    def _at_one_moment(
        self, runs: list[BlockRun], round: Round, first: int, end: int, targets: list[int]
    ) -> Iterator[Matches]:
        """The matches of a moment that has more than a piece holds, in pieces that are in order."""
        if not all(run.by_last for run in runs):  # these are sorted when all are found
            for bindings in self._parts(runs, first, end, targets):
                yield from self._sorted([bindings], repeated=True)
            return
        try:
            whole = self._collect(runs, first, end, targets, self.budget)
        except _TooManyError:
            spans = [(since, max(since, until)) for since, until in self._spans(first, end, targets)]
            moment = Moment(round, self.program.blocks, spans, self.program.kept, self.limit, self.budget)
            for held in moment.parts():
                yield from self._pieces(self._sorted(held, repeated=True))
        else:
            yield from self._pieces(whole)

    def _pieces(self, found: list[Matches]) -> Iterator[Matches]:
        for matches in found:
            for start in range(0, matches.count, self.limit):
                some = slice(start, min(start + self.limit, matches.count))
                rows = {name: column[some] for name, column in matches.rows.items()}
                yield Matches(rows, some.stop - some.start)

    def _spans(self, first: int, end: int, targets: list[int]) -> list[tuple[int, int]]:
        """The positions of a range at which each block is still to be decided."""
        base = self.store.base
        return [
            (max(first, done - base), min(end, target - base))
            for done, target in zip(self.decided, targets, strict=True)
        ]

    def _parts(self, runs: list[BlockRun], first: int, end: int, targets: list[int]) -> Iterator[Bindings]:
        length = int(self.store.pos[-1]) + 1
        for run, (since, until) in zip(runs, self._spans(first, end, targets), strict=True):
            if since < until:
                yield from run.matches(since, until, length)

    def _sorted(self, held: list[Bindings], *, repeated: bool) -> list[Matches]:
        """The kept rows of the matches, distinct where asked, in the order of the output."""
        held = [bindings for bindings in held if bindings.count]
        if not held:
            return []
        columns = [
            np.concatenate(
                [b.rows[name] if name in b.rows else np.full(b.count, UNBOUND, np.int64) for b in held]
            )
            for name in self.program.kept
        ]
        if self.given is not None:
            columns = self.given.new(_with_an_event(columns), self.store, repeated=repeated)
            if not len(columns[0]):
                return []
        columns = in_output_order(columns, self.store)
        return [Matches(dict(zip(self.program.kept, columns, strict=True)), len(columns[0]))]

    # -- what is held --------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Forget the events that can take part in no match that is still to be decided."""
        if self.events.drop_expired(self.forgettable()):
            self.forget_given()

    def forgettable(self) -> int:
        """How many of the first events can take part in no match that is still to be decided."""
        store, program, watermark = self.store, self.program, self.watermark
        if not len(store) or watermark in (None, END) or program.measure is Measure.NONE:
            return 0
        assert watermark is not None
        waiting = Decided.WINDOW in program.decided
        windows = 2 if waiting and program.looks_back else 1
        if program.measure is Measure.EVENTS:
            oldest = self.events.seen - windows * (program.window - 1) - store.base
            if Decided.CLOSED in program.decided:
                oldest = min(oldest, min(self.decided) - (program.window - 1) - store.base)
            return int(np.searchsorted(store.pos, oldest, "left"))
        return int(np.searchsorted(store.ts, max(watermark - windows * program.window, -(2**63)), "left"))

    def forget_given(self) -> None:
        """Forget the matches given that no held event could give again."""
        if self.given is not None:
            self.given.forget_before(self.store.base if len(self.store) else self.events.seen)


class Rounds:
    """The rounds of several programs over the same events: one for each window, sharing all they can."""

    def __init__(self, events: Events, groups: Mapping[str, str]) -> None:
        self.shared = Shared(events, groups)
        self._rounds: dict[tuple[Measure, int, bool], Round] = {}

    def of(self, program: Program) -> Round:
        """The round of a program."""
        window = (program.measure, program.window, program.exclusive)
        if window not in self._rounds:
            self._rounds[window] = Round(Store(self.shared.events, program), self.shared)
            self._rounds[window].prefixes = {}
        return self._rounds[window].for_program(program)


def told_by_last(program: Program, *, at_once: bool) -> bool:
    """Whether equal matches have the same last event, by which all are decided: then they come together."""
    decided = set(program.decided)
    if not at_once and (len(decided) > 1 or Decided.WINDOW in decided):
        return False
    kept = set(program.kept)
    return all(kept.issuperset(outermost(block, by_last=True)) for block in program.blocks)


def found_in_order(program: Program, *, at_once: bool) -> bool:
    """Whether matches are found in the order of the output: by the last events that they show."""
    if program.distinct:
        return told_by_last(program, at_once=at_once)
    return at_once or Decided.WINDOW not in program.decided


class _TooManyError(Exception):
    """More matches in a range than the budget holds."""


def _with_an_event(columns: list[Ints]) -> list[Ints]:
    """The matches that keep at least one event."""
    bound = np.maximum.reduce(columns) != UNBOUND
    return columns if bound.all() else [column[bound] for column in columns]
