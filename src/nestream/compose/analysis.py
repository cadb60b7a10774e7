"""The part of the composer that runs a program block by block: what each found, and how long it took."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nestream.compose.flat import Flat
from nestream.engine.matcher import Matcher
from nestream.model.text import print_name
from nestream.papers.engine.context import Round, Shared
from nestream.papers.engine.program import Program
from nestream.papers.optimize.describe import branches
from nestream.papers.optimize.explain import Explained, Measured
from nestream.papers.plan.choices import choices
from nestream.papers.sharing.runs import runs_of
from nestream.papers.views.counters import Counters


@dataclass(frozen=True)
class Analysis:
    """What a run found: the matches and the time of each block, and of each group of a flat plan."""

    program: Program
    events: int
    blocks: Mapping[int, Measured]
    shared: Explained | None = None
    views: tuple[tuple[tuple[str, ...], Counters], ...] = ()
    """The variables of each inner query that has a view, and what the view did."""

    def text(self) -> str:
        """Indented text, after that of the groups where there are any."""
        lines = [self.shared.text()] if self.shared else []
        total = sum(block.matches for block in self.blocks.values())
        seconds = sum(block.seconds for block in self.blocks.values())
        lines.append(f"Measured over {self.events:,} events: {total:,} found in {seconds * 1e3:,.2f} ms")
        if self.shared is None:
            for number, block in self.blocks.items():
                names = ", ".join(map(print_name, self.program.blocks[number].leaves))
                lines.append(f"  ({names}): {block.matches:,} found in {block.seconds * 1e3:,.2f} ms")
        lines += [f"  view of ({', '.join(map(print_name, names))}): {did}" for names, did in self.views]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        blocks = [
            {"block": number, "matches": block.matches, "nanoseconds": round(block.seconds * 1e9)}
            for number, block in self.blocks.items()
        ]
        shared = {"sharing": self.shared.json()} if self.shared else {}
        views = [{"variables": list(names), **did.numbers()} for names, did in self.views]
        kept = {"views": views} if views else {}
        return {**shared, "measured": {"events": self.events, "blocks": blocks, **kept}}


def measured(program: Program, matcher: Matcher, events: int, flat: Flat | None = None) -> Analysis:
    """Run the blocks of a program one after the other, when all the events have arrived.

    The matches are dropped as they are found, before they are put in order and made distinct.
    """
    matcher.events.seal()
    found: dict[int, Measured] = {}
    if len(matcher.store):
        round = Round(matcher.store, Shared(matcher.events, matcher.groups))
        length = int(matcher.store.pos[-1]) + 1
        runs = runs_of(program, round, matcher.limit, {}, at_once=True, shelves=matcher.shelves)
        for number, run in enumerate(runs):
            begin = clock.perf_counter()
            matches = sum(bindings.count for bindings in run.matches(0, length, length))
            found[number] = Measured(matches, clock.perf_counter() - begin)
    if flat is None:
        views = (view for shelf in matcher.shelves.values() for view in shelf.views)
        return Analysis(program, events, found, views=tuple((v.inner.names, v.counters) for v in views))
    return Analysis(program, events, found, _grouped(flat, found))


def _grouped(flat: Flat, blocks: Mapping[int, Measured]) -> Explained:
    """The groups with what was measured of their blocks; of a group, the first block runs all."""
    groups = {}
    first = 0
    numbers = []  # of the blocks of each expression
    for branch in branches(flat.normal.plan):
        count = len(choices(branch))
        numbers.append(range(first, first + count))
        first += count
    for number, group in enumerate(flat.shared.plan.groups):
        own = [blocks[block] for member in group.members for block in numbers[member] if block in blocks]
        groups[number] = Measured(sum(m.matches for m in own), sum(m.seconds for m in own))
    return replace(flat.shared, measured=groups)
