"""The engine: ordered events in, matches out, up to a watermark; and what it must hold to go on.

A match is given when it is decided: with its last event, or when the time of its last event, or the window of
its first, has passed. So the state is only the events that can still take part and how far was decided;
nothing of a match is kept between two batches but, where the output is distinct, what was already given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from nestream.engine.distinct import Given
from nestream.engine.events import Events, Ints
from nestream.engine.keys import key_classes
from nestream.engine.kernels import Rows
from nestream.engine.operator import EvaluationCache, Matches, Operator
from nestream.engine.kernels.stack import first_of_time
from nestream.engine.ordering import in_output_order
from nestream.engine.program import Decided, Measure, Program
from nestream.engine.store import Store

UNBOUND = -1
PIECE = 1 << 17
"""How many partial matches are worked on at once: so few stay in the processor's caches, which makes matching
nearly twice as fast as working on millions, and memory small."""
END = np.iinfo(np.int64).max
"""The watermark at the end of a finite input: all time has passed."""


class Matcher:
    """Runs a program over events that arrive in order; several may run over the same events."""

    def __init__(self, program: Program, events: Events) -> None:
        self.program = program
        self.events = events
        self.store = Store(events, program)
        self.decided = [0] * len(program.outlines)
        """For each operator, the position up to which its matches were given, by last or first event."""
        self.watermark: int | None = None
        self.given = Given(program.kept) if program.distinct else None
        self._repeats = True
        """Whether a match that was given may be found again later."""
        width = max(len(outline.bound) for outline in program.outlines)
        self.limit = max(1, min(PIECE, program.memory // (64 * (width + 1))))
        self.execution = program.start(self.limit)

    @cached_property
    def key_classes(self) -> Mapping[str, str]:
        """The attributes that the program compares with each other, each with the first of its class."""
        return key_classes([self.program])

    # -- matches out ---------------------------------------------------------------------------------------

    def advance(self, watermark: int, cache: EvaluationCache | None = None) -> Iterator[Matches]:
        """Give the matches that are decided once no event earlier than the watermark can come.

        With a `cache` this matcher is one of several over the same events, which are then not forgotten here.
        """
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        self.events.seal()
        if len(self.store):
            targets = [self._decidable(decided, self.watermark) for decided in self.program.decided]
            at_once = self.watermark == END and not any(self.decided)
            yield from self._decide(targets, at_once=at_once, cache=cache)
        if cache is None:
            self._expire()

    def between(self, first: int, end: int, cache: EvaluationCache | None = None) -> Iterator[Matches]:
        """Give the matches that end from a time on and before another, all the events having arrived."""
        self.watermark = END
        self.events.seal()
        store = self.store
        if not len(store):
            return
        rows = np.searchsorted(store.ts, (first, end))
        bounds = [int(store.pos[row]) + store.base if row < len(store) else self.events.seen for row in rows]
        count = len(self.program.outlines)
        self.decided = [bounds[0]] * count
        yield from self._decide([bounds[1]] * count, at_once=True, cache=cache)

    def count(self) -> int:
        """How many matches there are when all the events have arrived, without building what it need not."""
        self.watermark = END
        self.events.seal()
        if not len(self.store):
            return 0
        if self.given is not None:
            return sum(matches.count for matches in self.advance(END))
        length = int(self.store.pos[-1]) + 1
        return sum(operator.count(0, length) for operator in self.operators(at_once=True))

    def operators(
        self, cache: EvaluationCache | None = None, *, at_once: bool, first: int = 0
    ) -> Sequence[Operator]:
        """The operators of the program over the events held now, for the matches from a position on."""
        cache = cache or EvaluationCache(self.events, self.key_classes)
        self._moments: Rows = cache.once("moments", lambda: first_of_time(self.events.ts))
        return self.execution.operators(cache, at_once=at_once, first=first)

    def ordered(self, found: Iterable[Matches]) -> list[Matches]:
        """All the matches, put into the order of the output together."""
        parts = list(found)
        if len(parts) < 2:
            return parts
        columns = [np.concatenate([part.rows[name] for part in parts]) for name in self.program.kept]
        columns = in_output_order(columns, self._moments)
        return [Matches(dict(zip(self.program.kept, columns, strict=True)), len(columns[0]))]

    def _decide(
        self, targets: list[int], *, at_once: bool, cache: EvaluationCache | None
    ) -> Iterator[Matches]:
        """Give the matches up to the target positions, by their last events where all are decided at once."""
        base = self.store.base
        if all(done >= target for done, target in zip(self.decided, targets, strict=True)):
            return
        if self._nothing_new(targets, at_once=at_once):
            self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]
            return
        first = max(min(self.decided) - base, 0)
        operators = self.operators(cache, at_once=at_once, first=first)
        self._repeats = self.given is not None and not told_by_last(self.program, at_once=at_once)
        end = max(targets) - base
        size = min(operator.promising(first, end) for operator in operators)
        while first < end:
            until = self._cut(first, size, end)
            try:
                found = self._collect(operators, first, until, targets, base, splittable=True)
            except _TooManyError:
                size = max(1, (until - first) // 2)
                if self._cut(first, size, end) < until:
                    continue
                found = self._collect(operators, first, until, targets, base, splittable=False)
            count = 0
            for matches in found:
                count += matches.count
                yield matches
            if until - first >= size and count < self.limit // 4:  # fewer than promised
                size = min(size * max(2, min(16, self.limit // (2 * max(count, 1)))), max(end - until, 1))
            first = until
        self.decided = [max(done, target) for done, target in zip(self.decided, targets, strict=True)]

    def _nothing_new(self, targets: list[int], *, at_once: bool) -> bool:
        """Whether no event that could be the last (or first) of a match is in what is now decided."""
        store = self.store
        for outline, done, target in zip(self.program.outlines, self.decided, targets, strict=True):
            by_last = at_once or outline.decided is not Decided.WINDOW
            for leaf in outline.ends(by_last=by_last):
                rows = store.leaf_rows[leaf]
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
        return int(store.pos[row]) + store.base if row < len(store) else self.events.seen

    def _collect(
        self,
        operators: Sequence[Operator],
        first: int,
        end: int,
        targets: list[int],
        base: int,
        *,
        splittable: bool,
    ) -> Iterator[Matches] | list[Matches]:
        """The matches decided in a range of positions.

        They come all at once and sorted, or where one moment alone has too many, in pieces as they are found.
        """
        parts = self._parts(operators, first, end, targets, base)
        if not splittable:
            return self._in_pieces(parts)
        held: list[Matches] = []
        total = 0
        for bindings in parts:
            total += bindings.count
            if total > self.limit:
                raise _TooManyError
            held.append(bindings)
        return self._sorted(held, repeated=self._repeats)

    def _in_pieces(self, parts: Iterator[Matches]) -> Iterator[Matches]:
        for bindings in parts:
            yield from self._sorted([bindings], repeated=True)

    def _parts(
        self, operators: Sequence[Operator], first: int, end: int, targets: list[int], base: int
    ) -> Iterator[Matches]:
        for operator, done, target in zip(operators, self.decided, targets, strict=True):
            since, until = max(first, done - base), min(end, target - base)
            if since < until:
                yield from operator.run(since, until)

    def _sorted(self, held: list[Matches], *, repeated: bool) -> list[Matches]:
        """The kept rows of the matches, distinct where asked, in the order of the output."""
        held = [bindings for bindings in held if bindings.count]
        if not held:
            return []
        columns = [
            np.concatenate(
                [b.rows[name] if name in b.rows else np.full(b.count, UNBOUND, np.int32) for b in held]
            )
            for name in self.program.kept
        ]
        if self.given is not None:
            columns = self.given.new(_with_an_event(columns), self.store, repeated=repeated)
            if not len(columns[0]):
                return []
        columns = in_output_order(columns, self._moments)
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


def told_by_last(program: Program, *, at_once: bool) -> bool:
    """Whether equal matches have the same last event, by which all are decided: then they come together."""
    decided = set(program.decided)
    if not at_once and (len(decided) > 1 or Decided.WINDOW in decided):
        return False
    kept = set(program.kept)
    return all(kept.issuperset(outline.last) for outline in program.outlines)


class _TooManyError(Exception):
    """More matches in a range than the budget holds."""


def _with_an_event(columns: list[Ints]) -> list[Ints]:
    """The matches that keep at least one event."""
    bound = np.maximum.reduce(columns) != UNBOUND
    return columns if bound.all() else [column[bound] for column in columns]
