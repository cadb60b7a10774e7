"""Runs a suite: group after group in processes of their own, with every result checked."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from benchmarks.measures import MEASURES
from benchmarks.spec import Benchmark, Progress, Run, Suite

PACKAGES = ("nestream", "pyarrow", "numpy", "polars", "duckdb", "pyspark")


def run(suite: Suite, how: Run, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The results of a suite as plain data, with where and how they came about."""
    groups: dict[tuple[str, str], list[Benchmark]] = {}
    for benchmark in suite.chosen(how.only):
        groups.setdefault((benchmark.measure, benchmark.together or benchmark.name), []).append(benchmark)
    load, begin = os.getloadavg()[0], time.monotonic()
    results: dict[str, Any] = {}
    for done, ((measure, name), group) in enumerate(groups.items()):
        progress(name, done, len(groups))
        load = max(load, os.getloadavg()[0])
        found = MEASURES[measure](group, how)
        for one in group:
            told = {"query": one.text, "events": one.data.events(how.events), **one.told}
            results[one.name] = {**told, **found[one.name]}
    return {
        "suite": suite.name,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": _machine(load),
        "events": how.events,
        "repeats": how.repeats,
        "limit": how.limit,
        "seconds": round(time.monotonic() - begin, 1),
        "results": results,
    }


def _machine(load: float) -> dict[str, Any]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "highest load": round(load, 1),
        **versions,
    }


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar that names what is measured, on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
