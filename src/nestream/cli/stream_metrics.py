"""`nestream stream --metrics`: serves the progress of a stream on /metrics while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from nestream.cli.stream_job import StreamJob
from nestream.cli.terminal import note
from nestream.job import Progress
from nestream.job.metrics import serve_metrics


@contextmanager
def served(address: str | None, progress: Callable[[], Progress], job: StreamJob) -> Iterator[None]:
    """Serve the progress on /metrics, if an address is given."""
    if address is None:
        job.describe(metrics=None)
        yield
        return
    try:
        port, stop = serve_metrics(address, progress)
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="--metrics") from None
    where = f"http://{address.rpartition(':')[0] or '127.0.0.1'}:{port}/metrics"
    note(f"metrics are at {where}")
    job.describe(metrics=where)
    try:
        yield
    finally:
        stop()
