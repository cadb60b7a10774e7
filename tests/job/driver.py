"""A job in a process of its own, with a checkpoint every moment, for the tests to kill."""

from __future__ import annotations

import signal
import sys
from functools import partial
from threading import Event
from typing import Any

import nestream
from nestream.job import Checkpoint, Job, LiveRules, RuleFolder
from nestream.sink import first_column, open_sink
from nestream.source import open_source
from tests.job.feed import QUERY


def main(
    source: str, sink: str, checkpoint: str, aside: str, lateness: str, interval: str, rules: str = ""
) -> None:
    """Run the job until SIGTERM, with one query or with the rules of a folder."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def start(query: nestream.Query | nestream.Queries, **handlers: Any) -> Any:
        return query.stream(lateness=int(lateness), **handlers)

    live = LiveRules(RuleFolder(rules, noted=True), nestream.queries, start) if rules else None
    job = Job(
        partial(start, nestream.query(QUERY)) if live is None else live.start,
        open_source(source),
        open_sink(sink),
        aside=open_sink(aside, "jsonl", encode=first_column),
        checkpoint=Checkpoint(checkpoint),
        lateness=int(lateness),
        interval=float(interval),
        rules=live,
    )
    job.run(stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
