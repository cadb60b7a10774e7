"""Runs a program operator by operator for `explain(analyze=...)`: what each finds, and how long it takes."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nestream.compose.run import Run
from nestream.engine.matcher import Matcher
from nestream.engine.operator import Measured
from nestream.engine.program import Program
from nestream.logical.explain import explain, explain_json
from nestream.model.text import print_name
from nestream.runtime.local import LocalRun
from nestream.runtime.saved_events import in_order


@dataclass(frozen=True)
class Analysis:
    """The result of a run: the matches and the time of each operator, and the program's counters."""

    program: Program
    events: int
    operators: Sequence[Measured]
    counters: Sequence[tuple[tuple[str, ...], Any]] = ()

    def text(self) -> str:
        """The program as indented text, then the measurements."""
        total = sum(one.matches for one in self.operators)
        seconds = sum(one.seconds for one in self.operators)
        lines = [self.program.explain(self.operators)]
        lines.append(f"Measured over {self.events:,} events: {total:,} found in {seconds * 1e3:,.2f} ms")
        lines += [f"  view of ({', '.join(map(print_name, names))}): {did}" for names, did in self.counters]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        blocks = [
            {"block": number, "matches": one.matches, "nanoseconds": round(one.seconds * 1e9)}
            for number, one in enumerate(self.operators)
        ]
        views = [{"variables": list(names), **did.numbers()} for names, did in self.counters]
        kept = {"views": views} if views else {}
        measured = {"events": self.events, "blocks": blocks, **kept}
        return {**self.program.explain_json(self.operators), "measured": measured}


def analyzed(run: Run, format: str) -> Any:
    """The explanation, with the matches and times of a run over the events."""
    run.settings.without_reference("has no plan to analyze: choose another strategy")
    local = LocalRun(run.compiled(whole=True))
    local.append(in_order(run.table, run.schema))
    found = measured(local.matcher, run.table.num_rows)
    if format == "json":
        return {**explain_json(run.plan), **found.json()}
    return "\n".join([explain(run.plan), found.text()])


def measured(matcher: Matcher, events: int) -> Analysis:
    """Run the operators of a program one after the other, after all events have arrived.

    The matches are dropped as they are found, before sorting and removing duplicates.
    """
    matcher.events.seal()
    found: list[Measured] = []
    if len(matcher.store):
        length = int(matcher.store.pos[-1]) + 1
        for operator in matcher.operators(at_once=True):
            begin = clock.perf_counter()
            matches = sum(matches.count for matches in operator.run(0, length))
            found.append(Measured(matches, clock.perf_counter() - begin))
    return Analysis(matcher.program, events, found, matcher.execution.counters())
