"""A job in a process of its own, with a checkpoint every moment, for the tests to kill."""

from __future__ import annotations

import signal
import sys
from threading import Event

import nestream
from nestream.job import Checkpoint, Job
from nestream.sink import first_column, open_sink
from nestream.source import open_source
from tests.job.feed import QUERY


def main(source: str, sink: str, checkpoint: str, aside: str, lateness: str, interval: str) -> None:
    """Run the job until SIGTERM."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    query = nestream.query(QUERY)
    job = Job(
        lambda **handlers: query.stream(lateness=int(lateness), **handlers),
        open_source(source),
        open_sink(sink),
        aside=open_sink(aside, "jsonl", encode=first_column),
        checkpoint=Checkpoint(checkpoint),
        lateness=int(lateness),
        interval=float(interval),
    )
    job.run(stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
