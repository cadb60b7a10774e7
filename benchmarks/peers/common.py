"""What the peers share: their command line, and one line of JSON for each repeat."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """One query in one formulation over a Parquet file of events."""

    query: str
    formulation: str
    events: Path
    window: int
    threads: int
    repeats: int
    turns: bool


def task(description: str | None) -> Task:
    """The task from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("query", help="such as flat, not-seq or unkeyed-6")
    parser.add_argument("formulation", help="such as bucket, bound, exists or natural")
    parser.add_argument("events", type=Path, help="a Parquet file with ts, type, id, attr1 and attr2")
    parser.add_argument("window", type=int, help="in the unit of ts, its end included")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--turns", action="store_true", help="run once for each line of standard input")
    return Task(**vars(parser.parse_args()))


def measure(run: Callable[[], Any], sums: Callable[[Any], tuple[int, int]], task: Task) -> None:
    """Run it several times, or in turns with others, and print the seconds, matches and checksum of each."""
    if task.turns:
        print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin if task.turns else range(task.repeats):
        begin = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - begin
        matches, checksum = sums(result)
        del result
        print(json.dumps({"seconds": seconds, "matches": matches, "checksum": checksum}), flush=True)
