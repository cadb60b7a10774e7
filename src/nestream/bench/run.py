"""Runs a suite: one measurement after the other, in processes of their own, and checks the matches."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nestream.bench.files import cache_folder, events_file
from nestream.bench.process import limited
from nestream.bench.spec import Benchmark, Suite
from nestream.bench.turns import in_turns, summed_up

Progress = Callable[[str, int, int], None]
_LONG = 1_800.0
"""The seconds that a measurement of our own may be silent."""
_PACKAGES = ("nestream", "pyarrow", "numpy", "polars", "duckdb")


class BenchError(Exception):
    """A measurement that could not be made, or matches that differ."""


@dataclass(frozen=True)
class Run:
    """How to run a suite: the size of the data, how often each time is taken, and what is wanted of it."""

    events: int
    repeats: int = 5
    only: tuple[str, ...] = ()
    folder: Path | None = None
    threads: int = 2
    limit: float = 60.0
    peers: bool = True
    install: bool = False


def run(suite: Suite, how: Run, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The results of a suite, as plain data."""
    chosen = chosen_of(suite, how.only)
    folder = how.folder or cache_folder()
    groups = _groups(chosen)
    steps = len(groups) + sum(bool(benchmark.peers) for benchmark in chosen if how.peers)
    load, done = os.getloadavg()[0], 0
    results: dict[str, dict[str, Any]] = {}
    for group in groups:
        progress(group[0].together or group[0].name, done, steps)
        load = max(load, os.getloadavg()[0])
        events = group[0].data.events(how.events)
        path = events_file(group[0].data, events, folder)
        settings = {benchmark.name: benchmark.settings for benchmark in group}
        for name, result in _measured(group, path, how).items():
            results[name] = {"events": events, **settings[name], **summed_up(result)}
        done += 1
    for benchmark in (b for b in chosen if how.peers and b.peers):
        progress(f"{benchmark.name} beside its peers", done, steps)
        load = max(load, os.getloadavg()[0])
        path = events_file(benchmark.data, benchmark.data.events(how.events), folder)
        results[benchmark.name] |= in_turns(benchmark, path, how.repeats, how.threads, how.limit)
        done += 1
    progress("done", steps, steps)
    for benchmark in chosen:
        results[benchmark.name] |= {"title": benchmark.title, "query": benchmark.text}
        _check(benchmark.name, results[benchmark.name])
    return outcome(suite, how, results, load, threads=how.threads)


def outcome(suite: Suite, how: Run, results: dict[str, Any], load: float, threads: int = 1) -> dict[str, Any]:
    """The results of a run as plain data, with where and how they came about and which targets they reach."""
    return {
        "suite": suite.name,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": _machine(load),
        "events": how.events,
        "repeats": how.repeats,
        "threads of the peers": threads,
        "time limit of the peers": how.limit,
        "results": results,
        "targets": [found for target in suite.targets if (found := target.judged(results)) is not None],
    }


def chosen_of(suite: Suite, only: tuple[str, ...]) -> list[Benchmark]:
    """The benchmarks of these names, or below them (`memory` for `memory/flat`)."""
    names = [benchmark.name for benchmark in suite.benchmarks]
    for wanted in only:
        if not any(_is_in(name, wanted) for name in names):
            raise BenchError(f"{suite.name} has no benchmark {wanted!r}. It has {', '.join(names)}.")
    return [b for b in suite.benchmarks if not only or any(_is_in(b.name, wanted) for wanted in only)]


def _is_in(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}/")


def _groups(benchmarks: Iterable[Benchmark]) -> list[list[Benchmark]]:
    """What runs in one process."""
    groups: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        groups.setdefault(benchmark.together or benchmark.name, []).append(benchmark)
    return list(groups.values())


def _measured(group: list[Benchmark], path: Path, how: Run) -> dict[str, dict[str, Any]]:
    first = group[0]
    task: dict[str, Any] = {"path": str(path), "repeats": how.repeats, **first.settings}
    if group[-1].measure in ("match", "read"):
        queries = [benchmark for benchmark in group if benchmark.measure == "match"]
        task |= {
            "measure": "match",
            "queries": {b.name: b.text for b in queries},
            "shapes": {b.name: b.shape for b in queries},
            "windows": {b.name: b.window for b in queries},
        }
        found = _worker(task)
        return {benchmark.name: found[benchmark.name] for benchmark in group}
    task |= {"measure": first.measure, "query": first.text, "shape": first.shape, "window": first.window}
    if first.measure == "memory":
        ways = {way: _worker({**task, "way": way}) for way in ("count", "batches")}
        return {first.name: {**ways["batches"], "count": ways["count"]["matches"], "ways": ways}}
    return {first.name: _worker(task)}


def _worker(task: dict[str, Any]) -> dict[str, Any]:
    outcome = limited(
        [sys.executable, "-m", "nestream.bench.worker"],
        input=json.dumps(task),
        seconds=_LONG,
        memory=2**62,
    )
    if not outcome.lines:
        raise BenchError(f"a measurement {outcome.status}: {task}")
    return outcome.lines[-1]


def _check(name: str, result: dict[str, Any]) -> None:
    """Every way to find the matches must have found the same."""
    ours = result.get("matches")
    counted = result["count"]["matches"] if isinstance(result.get("count"), dict) else result.get("count")
    others = {"count()": counted, "the prefix sums": result.get("expected")}
    for peer in result.get("peers", ()):
        if "matches" in peer:
            others[f"{peer['peer']} ({peer['formulation']})"] = peer["matches"]
            if "checksum" in result and peer["checksum"] != result["checksum"]:
                raise BenchError(f"{name}: {peer['peer']} ({peer['formulation']}) finds other matches")
    for who, number in others.items():
        if ours is not None and number is not None and number != ours:
            raise BenchError(f"{name}: nestream finds {ours:,} matches, {who} {number:,}")
    result["agreed"] = [who for who, number in others.items() if number is not None]


def _machine(load: float) -> dict[str, Any]:
    versions = {}
    for package in _PACKAGES:
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
