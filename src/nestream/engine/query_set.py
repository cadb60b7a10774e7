"""Runs many programs over one set of events: each event is stored once, and shared work is done once."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Sequence

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.keys import key_classes
from nestream.engine.matcher import Matcher
from nestream.engine.operator import EvaluationCache, Matches
from nestream.engine.program import Decided, Program


class Matchers:
    """One matcher per program, over the same events.

    A program whose matches are decided by their last events runs only when one of these has arrived.
    """

    def __init__(self, programs: Sequence[Program], events: EventBuffer) -> None:
        self.events = events
        self.members = [Matcher(program, events) for program in programs]
        self.key_classes = key_classes(programs)
        self.seconds = [0.0] * len(programs)
        """The seconds spent on finding the matches of each program."""
        self._always: list[int] = []
        self._awaiting: dict[int, list[int]] = {}
        for number, program in enumerate(programs):
            if program.keep is not None or any(decided is not Decided.LAST for decided in program.decided):
                self._always.append(number)
                continue
            lasts = {leaf for outline in program.outlines for leaf in outline.ends(by_last=True)}
            for leaf in lasts:
                self._awaiting.setdefault(leaf, []).append(number)

    def decide(self, watermark: int, *, in_order: bool = True) -> Iterator[tuple[int, Matches]]:
        """Emit the matches of each program, by its number, that a watermark decides.

        Nothing is forgotten before `expire` is called, because matches are rows of the held events.
        """
        for number, found in self.decide_each(watermark, in_order=in_order):
            while True:
                begin = clock.perf_counter()
                matches = next(found, None)
                self.seconds[number] += clock.perf_counter() - begin
                if matches is None:
                    break
                yield number, matches

    def decide_each(
        self, watermark: int, *, in_order: bool = True
    ) -> Iterator[tuple[int, Iterator[Matches]]]:
        """Emit the matches program by program; to stop the search of one, stop reading its matches."""
        self.events.seal()
        for member in self.members:
            member.watermark = watermark if member.watermark is None else max(watermark, member.watermark)
        with self.cache() as cache:
            for number in self._due():
                yield number, self.members[number].advance(watermark, cache, in_order=in_order)

    def pass_over(self, watermark: int) -> None:
        """Treat the matches that a watermark decides as emitted: they were found elsewhere."""
        for member in self.members:
            member.pass_over(watermark, several=True)
        self.events.take_fresh()
        self.expire()

    def cache(self) -> EvaluationCache:
        """What the programs share over the events held now."""
        return EvaluationCache(self.events, self.key_classes, several=True)

    def _due(self) -> list[int]:
        """The numbers of the programs with something to decide."""
        fresh = self.events.take_fresh()
        found = {number for leaf in fresh for number in self._awaiting.get(leaf, ())}
        return sorted(found.union(self._always))

    def between(self, first: int, end: int | None) -> Iterator[tuple[int, Matches]]:
        """Yield the matches of each program that end in a range of times, after all events have arrived."""
        self.events.seal()
        with self.cache() as cache:
            for number, member in enumerate(self.members):
                for matches in member.between(first, end, cache):
                    yield number, matches

    def expire(self) -> None:
        """Forget the events that no program needs any more."""
        if self.events.drop_expired(min(member.forgettable() for member in self.members)):
            for member in self.members:
                member.forget_given()
