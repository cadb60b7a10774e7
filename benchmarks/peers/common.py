"""What the peers and nestream's own worker share: a command line, checksums, and the memory of a turn."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc


def task(description: str | None) -> argparse.Namespace:
    """The task from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("query", help="such as flat, not-seq or unkeyed-6")
    parser.add_argument("formulation", help="such as bucket, bound, exists or natural")
    parser.add_argument("events", type=Path, help="a Parquet file with ts, type, id, attr1 and attr2")
    parser.add_argument("window", type=int, help="in the unit of ts, its end included")
    parser.add_argument("threads", type=int, nargs="?", default=2)
    return parser.parse_args()


class Memory:
    """The most memory that this process holds beyond what it held before."""

    def __enter__(self) -> Memory:
        gc.collect()
        pa.default_memory_pool().release_unused()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
        self.before = psutil.Process().memory_info().rss
        return self

    def __exit__(self, *_: object) -> None:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        self.beyond = max(peak * 1024 - self.before, 0)


def sums(matches: pa.Table) -> tuple[int, int]:
    """The number of matches, and the sum of their times: the first event's once, the second's twice, ...

    An event is a struct with its `ts`, or columns that end with the name of the step.
    """
    times = [
        pc.struct_field(matches.column(field.name), "ts").cast(pa.int64())
        if pa.types.is_struct(field.type)
        else matches.column(field.name)
        for field in matches.schema
        if pa.types.is_struct(field.type) or field.name.startswith("ts_")
    ]
    return matches.num_rows, sum(step * (pc.sum(column).as_py() or 0) for step, column in enumerate(times, 1))


def answer(run: Callable[[], Any], table: Callable[[Any], pa.Table] = lambda result: result) -> None:
    """Run once for each line of input, and print the seconds, the matches, their checksum and the memory."""
    print(json.dumps({"ready": True}), flush=True)
    more: dict[str, int] = {}
    for _ in sys.stdin:
        if more:
            begin = time.perf_counter()
            result = run()
            seconds = time.perf_counter() - begin
        else:
            with Memory() as used:
                begin = time.perf_counter()
                result = run()
                seconds = time.perf_counter() - begin
            more = {"beyond": used.beyond, "output": table(result).nbytes}
        matches, checksum = sums(table(result))
        del result
        said = {"seconds": seconds, "matches": matches, "checksum": checksum, **more}
        print(json.dumps(said), flush=True)
