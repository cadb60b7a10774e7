"""The engine: ordered events in, matches out, up to a watermark; and the state it needs to continue.

A match is emitted when it is decided: with its last event, or once the time of its last event, or the window
of its first, has passed. So the state is only the events that can still be part of a match, and how far
matches are decided. Between batches, the only matches kept are those that KEEP holds and, if the output is
distinct, those that were emitted and could be found again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import numpy as np

from nestream.engine.distinct import EmittedMatches
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.keeper import NEVER, Keeper, kept_by_last
from nestream.engine.kernels import Rows
from nestream.engine.keys import key_classes
from nestream.engine.moment import Moment
from nestream.engine.operator import EvaluationCache, Matches, Operator
from nestream.engine.ordering import found_in_order, in_output_order, told_by_last
from nestream.engine.program import Decided, Measure, Program
from nestream.engine.retention import complete_since, forgettable
from nestream.engine.slices import Slices
from nestream.engine.windowed_events import WindowedEvents

UNBOUND = -1
_NO_ROWS = np.empty(0, np.int32)
PIECE = 600_000
"""How many events the partial matches that are processed at once have together.

This few stay in the processor's caches, which makes matching nearly twice as fast as processing millions, and
keeps memory small.
"""
END = np.iinfo(np.int64).max
"""The watermark at the end of a finite input: all time has passed."""


class Matcher:
    """Runs a program over events that arrive in order; several matchers may share the same events."""

    def __init__(self, program: Program, events: EventBuffer) -> None:
        self.program = program
        self.events = events
        self.store = WindowedEvents(events, program)
        self.decided = [0] * len(program.outlines)
        """For each operator, the position up to which its matches were emitted, by last or first event."""
        self.watermark: int | None = None
        self.emitted = EmittedMatches(program.kept) if program.distinct else None
        self._repeats = True
        """Whether an emitted match may be found again later."""
        self.budget = max(1, program.memory // (64 * (program.width + 1)))
        """The maximum number of matches of one moment held at once."""
        self.limit = min(PIECE // program.width + 1, self.budget)
        self.execution = program.start(self.limit)
        self.keeper = Keeper(program, events) if program.keep is not None else None

    def go_on_with(self, program: Program) -> None:
        """Run another program for the same query from now on; decided matches stay decided."""
        self.program = program
        self.execution = program.start(self.limit)
        if program.distinct and self.emitted is None:
            self.emitted = EmittedMatches(program.kept)

    @cached_property
    def key_classes(self) -> Mapping[str, str]:
        """Map the attributes that the program compares with each other to the first of their class."""
        return key_classes([self.program])

    # -- matches out ---------------------------------------------------------------------------------------

    def advance(
        self, watermark: int, cache: EvaluationCache | None = None, *, in_order: bool = True
    ) -> Iterator[Matches]:
        """Emit the matches that are decided once no event earlier than the watermark can come.

        A `cache` means that several matchers share the events, which are then not forgotten here. With
        `in_order`, matches that are not found in output order are held and sorted.
        """
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        self.events.seal()
        if len(self.store):
            with self._cached(cache) as made:
                for matches in self._emitted(made, in_order=in_order):
                    yield from self._completed(matches, made)
        if cache is None:
            self._expire()

    def _cached(self, cache: EvaluationCache | None) -> AbstractContextManager[EvaluationCache]:
        """The shared cache of several matchers, or a fresh one that is emptied afterwards."""
        return EvaluationCache(self.events, self.key_classes) if cache is None else nullcontext(cache)

    def _completed(self, matches: Matches, cache: EvaluationCache) -> Iterator[Matches]:
        """The matches with their groups."""
        return self.execution.completed(matches, lambda: cache)

    def _emitted(self, cache: EvaluationCache, *, in_order: bool) -> Iterator[Matches]:
        """The matches that the watermark decides and KEEP keeps, without their groups."""
        assert self.watermark is not None
        targets = [self._decidable(decided, self.watermark) for decided in self.program.decided]
        at_once = self.watermark == END and not any(self.decided)
        found = self._decide(targets, at_once=at_once, cache=cache)
        sorted_already = found_in_order(self.program, at_once=at_once)
        if self.keeper is None:
            yield from found if sorted_already or not in_order else self._all_in_order(found)
        elif at_once:
            chosen = self._chosen(0, max(targets), cache)
            if chosen is None:
                yield from self.keeper.all_of(found if sorted_already else self._all_in_order(found))
            else:
                self.decided = targets
                yield from self._pieces(chosen)
        else:
            found = iter(list(found))  # only after all are found is it known how far they are decided
            yield from self.keeper.up_to(found, self._frontier(), self.watermark)

    @property
    def frontier(self) -> int:
        """A time before which all matches have ended and been emitted."""
        assert self.watermark is not None, "nothing was decided yet"
        if self.watermark == END:
            return END
        held = () if self.keeper is None else (*self.keeper.waiting, *self.keeper.best.values())
        return min([self._frontier(), *(match.end for match in held)])

    def _chosen(self, first: int, end: int, cache: EvaluationCache) -> list[Matches] | None:
        """The matches that KEEP keeps and that end in a range of positions, in output order.

        None where they cannot be found without building the others.
        """
        keep, base = self.program.keep, self.store.base
        if keep is None or self.emitted is not None or len(self.program.outlines) > 1:
            return None
        (operator,) = self.operators(cache, at_once=True)
        found = operator.chosen(keep, first - base, end - base)
        return None if found is None else self._sorted([found], repeated=False)

    def _frontier(self) -> int:
        """A time before which all matches have ended and been found."""
        store, watermark = self.store, self.watermark
        assert watermark is not None
        if watermark == END:
            return NEVER + 1
        moments, shown = [watermark], set(self.program.kept)
        for outline, done in zip(self.program.outlines, self.decided, strict=True):
            row = len(store)
            if outline.decided is Decided.WINDOW:
                row = int(np.searchsorted(store.pos, done - store.base, "left"))
            elif not shown.issuperset(outline.last) and not shown.isdisjoint(outline.bound):
                row = self._first_reached(done)  # a match that shows no event is not emitted at all
            if row < len(store):
                moments.append(int(store.ts[row]))
        return min(moments)

    def _first_reached(self, done: int) -> int:
        """The first row that a match still to be found may have: one that ends at a position or later.

        If a projection leaves out the last event, what it shows of such a match may end with that first row.
        """
        store, program = self.store, self.program
        match program.measure:
            case Measure.NONE:
                return 0
            case Measure.EVENTS:
                return int(np.searchsorted(store.pos, done - store.base - (program.window - 1), "left"))
            case Measure.TIME:
                assert self.watermark is not None
                return int(store.since(self.watermark - program.window))

    def pass_over(self, watermark: int, *, several: bool = False) -> None:
        """Treat the matches that a watermark decides as emitted: they were found elsewhere.

        With `several` matchers over the same events, the events are not forgotten here.
        """
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        self.events.seal()
        targets = [self._decidable(decided, self.watermark) for decided in self.program.decided]
        self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]
        if not several:
            self._expire()

    def between(self, first: int, end: int | None, cache: EvaluationCache | None = None) -> Iterator[Matches]:
        """Yield the matches that end from one time on and before another, after all events have arrived.

        None means the end of the events. KEEP also compares them with matches that end up to a window
        earlier, which are not returned.
        """
        rows = self._all_arrived(first, end)
        if len(self.store):
            with self._cached(cache) as made:
                for matches in self._kept_between(*rows, made):
                    yield from self._completed(matches, made)

    def counts_between(self, first: int, end: int | None) -> Iterator[int]:
        """Count the matches of `between` in parts, building only what is needed."""
        rows = self._all_arrived(first, end)
        if not len(self.store):
            return
        with self._cached(None) as cache:
            if self.emitted is not None or self.keeper is not None:
                yield from (matches.count for matches in self._kept_between(*rows, cache))
                return
            since, until = (self._position(row) - self.store.base for row in rows)
            for operator in self.operators(cache, at_once=True, first=since):
                yield from operator.counts(since, until)

    def _all_arrived(self, first: int, end: int | None) -> tuple[int, int]:
        """Take the events as complete; return the rows of those from one time on and before another."""
        self.watermark = END
        self.events.seal()
        times = self.store.ts
        until = len(times) if end is None else int(np.searchsorted(times, end))
        return int(np.searchsorted(times, first)), until

    def _position(self, row: int) -> int:
        """The position of a row, or of the next event to arrive."""
        return int(self.store.pos[row]) + self.store.base if row < len(self.store) else self.events.seen

    def _kept_between(self, since: int, until: int, cache: EvaluationCache) -> Iterable[Matches]:
        """The matches that end in a range of rows and that KEEP keeps."""
        target = self._position(until)
        chosen = self._chosen(self._position(since), target, cache)
        if chosen is not None:
            return self._pieces(chosen)
        first = since
        if since < until and not kept_by_last(self.program):
            first = int(self.store.since(int(self.store.ts[since]) - self.program.window))
        self.decided = [self._position(first)] * len(self.program.outlines)
        found = self._decide([target] * len(self.program.outlines), at_once=True, cache=cache)
        if self.keeper is None:
            return found
        kept = self.keeper.all_of(found)
        return kept if first == since else (_ending_from(since, matches) for matches in kept)

    def counts(self) -> Iterator[int]:
        """Count all matches in parts, after all events have arrived, building only what is needed."""
        self.watermark = END
        self.events.seal()
        if not len(self.store):
            return
        with self._cached(None) as cache:
            if self.emitted is not None or self.keeper is not None:
                yield from (matches.count for matches in self._emitted(cache, in_order=False))
                return
            length = int(self.store.pos[-1]) + 1
            for operator in self.operators(cache, at_once=True):
                yield from operator.counts(0, length)

    def operators(
        self, cache: EvaluationCache | None = None, *, at_once: bool, first: int = 0
    ) -> Sequence[Operator]:
        """The operators of the program over the events held now, for matches from a position on."""
        cache = cache or EvaluationCache(self.events, self.key_classes)
        return self.execution.operators(cache, at_once=at_once, first=first)

    @property
    def _moments(self) -> Rows:
        """For each row, the first row with its time; empty where all times differ."""
        return self.events.moments if self.events.ties else _NO_ROWS

    def _all_in_order(self, found: Iterable[Matches]) -> Iterator[Matches]:
        """All the matches, sorted together."""
        parts = list(found)
        if len(parts) < 2:
            yield from parts
            return
        yield from self._pieces([self._in_order(self._joined(parts))])

    def _joined(self, parts: list[Matches]) -> Rows:
        """The kept rows of some matches, a column per match; -1 for a variable that a part does not bind."""
        columns = np.empty((len(self.program.kept), sum(part.count for part in parts)), np.int32)
        for name, column in zip(self.program.kept, columns, strict=True):
            bound = [part.rows[name] if name in part.rows else np.full(part.count, UNBOUND) for part in parts]
            np.concatenate(bound, out=column)
        return columns

    def _in_order(self, columns: Rows) -> Matches:
        """Sort the matches with these rows into output order."""
        columns = in_output_order(columns, self._moments)
        return Matches(dict(zip(self.program.kept, columns, strict=True)), columns.shape[1])

    def _decide(
        self,
        targets: list[int],
        *,
        at_once: bool,
        cache: EvaluationCache,
    ) -> Iterator[Matches]:
        """Emit the matches up to the target positions, by their last events where all are decided at once."""
        base = self.store.base
        if all(done >= target for done, target in zip(self.decided, targets, strict=True)):
            return
        if self._nothing_new(targets, at_once=at_once):
            self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]
            return
        first = max(min(self.decided) - base, 0)
        operators = self.operators(cache, at_once=at_once, first=first)
        self._repeats = self.emitted is not None and not told_by_last(self.program, at_once=at_once)
        end = max(targets) - base
        slices = Slices(first, end, min(operator.promising(first, end) for operator in operators))
        for span in slices.cut(self._cut):
            try:
                held = self._collect(operators, *span, targets, self.limit)
            except _TooManyError:
                slices.adapt(span, self.limit, self.limit)
                yield from self._halved(operators, *span, targets, at_once=at_once)
            else:
                slices.adapt(span, sum(matches.count for matches in held), self.limit)
                yield from held
        self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]

    def _halved(
        self, operators: Sequence[Operator], first: int, end: int, targets: list[int], *, at_once: bool
    ) -> Iterator[Matches]:
        """The matches of a slice that has too many for a piece, from its halves."""
        middle = self._cut(first, max(1, (end - first) // 2), end)
        if middle >= end:
            yield from self._at_one_moment(operators, first, end, targets, at_once=at_once)
            return
        for since, until in ((first, middle), (middle, end)):
            try:
                yield from self._collect(operators, since, until, targets, self.limit)
            except _TooManyError:
                yield from self._halved(operators, since, until, targets, at_once=at_once)

    def _nothing_new(self, targets: list[int], *, at_once: bool) -> bool:
        """Whether no undecided event before the targets could be the last (or first) of a match."""
        store = self.store
        for outline, done, target in zip(self.program.outlines, self.decided, targets, strict=True):
            by_last = at_once or outline.decided is not Decided.WINDOW
            first, end = (store.pos.searchsorted(at - store.base) for at in (done, target))
            for leaf in outline.ends(by_last=by_last):
                rows = store.leaf_rows[leaf]
                if rows.searchsorted(first) < rows.searchsorted(end):
                    return False
        return True

    def _cut(self, first: int, size: int, end: int) -> int:
        """A position at most `size` ahead where the time changes, so that equal ends stay together."""
        if first + size >= end:
            return end
        store = self.store
        row, until = map(int, np.searchsorted(store.pos, (first + size, end)))
        row = min(row, until - 1)  # where the rest has no events, the last event before it
        if row < 0:
            return end
        moment = int(np.searchsorted(store.ts, store.ts[row], "left"))
        if store.pos[moment] <= first:
            moment = int(np.searchsorted(store.ts, store.ts[row], "right"))
        return int(store.pos[moment]) if moment < until else end

    def _decidable(self, decided: Decided, watermark: int) -> int:
        """The position up to which the matches of an operator are decided."""
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
        return self._position(row)

    def _collect(
        self, operators: Sequence[Operator], first: int, end: int, targets: list[int], most: int
    ) -> list[Matches]:
        """The matches decided in a range of positions, sorted; raises if there are more than `most`."""
        held: list[Matches] = []
        total = 0
        for found in self._parts(operators, first, end, targets):
            total += found.count
            if total > most:
                raise _TooManyError
            held.append(found)
        return self._sorted(held, repeated=self._repeats)

    def _at_one_moment(
        self, operators: Sequence[Operator], first: int, end: int, targets: list[int], *, at_once: bool
    ) -> Iterator[Matches]:
        """The matches of one moment, which has too many for a piece, in pieces in output order."""
        if not at_once and Decided.WINDOW in self.program.decided:  # sorted once all are found
            for found in self._parts(operators, first, end, targets):
                yield from self._sorted([found], repeated=True)
            return
        try:
            whole = self._collect(operators, first, end, targets, self.budget)
        except _TooManyError:
            spans = [(since, max(since, until)) for since, until in self._spans(first, end, targets)]
            moment = Moment(operators, self.program, spans, self.store, self.budget)
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
        """The ranges of positions in which each operator is still undecided."""
        base = self.store.base
        return [
            (max(first, done - base), min(end, target - base))
            for done, target in zip(self.decided, targets, strict=True)
        ]

    def _parts(
        self, operators: Sequence[Operator], first: int, end: int, targets: list[int]
    ) -> Iterator[Matches]:
        for operator, (since, until) in zip(operators, self._spans(first, end, targets), strict=True):
            if since < until:
                yield from operator.run(since, until)

    def _sorted(self, held: list[Matches], *, repeated: bool) -> list[Matches]:
        """The kept rows of the matches, without duplicates where the output is distinct, in output order."""
        held = [bindings for bindings in held if bindings.count]
        if not held or self._come_in_order(held):
            return held
        columns = self._joined(held)
        if self.emitted is not None:
            some = columns[:, columns.max(axis=0) != UNBOUND]  # those that keep an event
            columns = np.array(self.emitted.new(list(some), self.store, repeated=repeated), np.int32)
        return [self._in_order(columns)] if columns.shape[1] else []

    def _come_in_order(self, held: list[Matches]) -> bool:
        """Whether matches were found in output order, each once, and show all their variables."""
        single = len(self.program.outlines) == 1 and self.emitted is None
        kept = self.program.kept
        return single and not self.events.ties and all(m.in_order and tuple(m.rows) == kept for m in held)

    # -- what is held --------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Forget the events that can no longer be part of an undecided match."""
        if self.events.drop_expired(self.forgettable()):
            self.forget_given()

    def forgettable(self) -> int:
        """How many of the first events no undecided or pending match needs."""
        held = None if self.keeper is None else self.keeper.first
        watermark = None if self.watermark == END else self.watermark  # forgetting no longer pays
        return forgettable(self.program, self.store, self.decided, watermark, held)

    @property
    def remembers(self) -> bool:
        """Whether KEEP remembers emitted matches whose events may be gone."""
        return self.keeper is not None and bool(self.keeper.left)

    @property
    def complete_since(self) -> int:
        """The time from which this matcher holds every event that has arrived."""
        return complete_since(self.program, self.store, self.decided, self.watermark)

    def catch_up(self, cache: EvaluationCache) -> None:
        """Treat the matches that the watermark decides over the held events as emitted.

        The effect is as if the matcher had run all the time: KEEP and a distinct output remember these
        matches.
        """
        assert self.watermark is not None
        if self.emitted is None and self.keeper is None:
            self.pass_over(self.watermark, several=True)
        else:
            for _ in self.advance(self.watermark, cache):
                pass

    def forget_given(self) -> None:
        """Forget the emitted matches that no held event could produce again."""
        if self.emitted is not None:
            self.emitted.forget_before(self.store.base if len(self.store) else self.events.seen)


def _ending_from(row: int, matches: Matches) -> Matches:
    """Of matches in output order, those that end at a row or later."""
    ends = np.maximum.reduce(list(matches.rows.values()))
    first = int(np.searchsorted(ends, row))
    return Matches({name: rows[first:] for name, rows in matches.rows.items()}, matches.count - first)


class _TooManyError(Exception):
    """More matches in a range than the budget holds."""
