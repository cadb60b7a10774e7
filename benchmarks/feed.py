"""Writes events as they fall due: `python -m benchmarks.feed EVENTS RATE TICK BEGIN TARGET`.

Event n has the time BEGIN + n / RATE. All that are due are written every TICK seconds: as lines of JSON to a
file or to standard output (`-`), or as Parquet files to a folder. A feed that is late keeps the times.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TIME = pa.timestamp("us", "UTC")


def timed(events: pa.Table, rate: float, begin: float) -> pa.Table:
    """The types and ids of events with the times at which they fall due."""
    moments = round(begin * 1e6) + (np.arange(1, events.num_rows + 1) * (1e6 / rate)).astype(np.int64)
    kinds = events.column("type").cast(pa.string())
    return pa.table({"ts": pa.array(moments, TIME), "type": kinds, "id": events.column("id")})


def lines(events: pa.Table) -> bytes:
    """One object a line."""
    times = events.column("ts").cast(pa.string()).combine_chunks()
    ids = events.column("id").cast(pa.string()).combine_chunks()
    kinds = events.column("type").combine_chunks()
    parts = '{"ts":"', times, '","type":"', kinds, '","id":', ids, "}"
    return ("\n".join(pc.binary_join_element_wise(*parts, "").to_pylist()) + "\n").encode()


def to_folder(folder: Path) -> Callable[[int, pa.Table], None]:
    """Writes files that appear as a whole."""

    def write(number: int, events: pa.Table) -> None:
        pq.write_table(events, folder / f".{number}")
        (folder / f".{number}").rename(folder / f"{number:08}.parquet")

    return write


def to_lines(descriptor: int) -> Callable[[int, pa.Table], None]:
    """Writes lines."""

    def write(number: int, events: pa.Table) -> None:
        data = memoryview(lines(events))
        while data:
            data = data[os.write(descriptor, data) :]

    return write


def feed(events: pa.Table, rate: float, tick: float, begin: float, write: Callable[..., None]) -> None:
    """Write all events, each at the first tick at which it is due."""
    written = 0
    while written < events.num_rows:
        time.sleep(max(0.0, begin + (int((time.time() - begin) / tick) + 1) * tick - time.time()))
        due = min(int((time.time() - begin) * rate), events.num_rows)
        if due > written:
            write(written + 1, events.slice(written, due - written))
            written = due


def main() -> None:
    """Feed the target until all events are written, or nobody reads them."""
    path, rate, tick, begin, target = sys.argv[1:]
    events = timed(pq.read_table(path, columns=["type", "id"]), float(rate), float(begin))
    if Path(target).is_dir():
        write = to_folder(Path(target))
    else:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        write = to_lines(1 if target == "-" else os.open(target, flags))
    try:
        feed(events, float(rate), float(tick), float(begin), write)
    except BrokenPipeError:
        os._exit(1)


if __name__ == "__main__":
    main()
