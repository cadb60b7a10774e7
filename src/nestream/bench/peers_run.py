"""Runs the peers: each in turns with nestream on the same events, memory watched and matches compared."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from nestream.bench.files import cache_folder, repository
from nestream.bench.peers import PEERS_SUITE
from nestream.bench.peers_data import columns_of, events_of
from nestream.bench.peers_install import JARS, command, install, missing, version
from nestream.bench.peers_lines import of_ours, of_peer
from nestream.bench.run import BenchError, Progress, Run, chosen_of, outcome
from nestream.bench.spec import Benchmark
from nestream.bench.turns import Contestant

ENOUGH = 4.0
"""After so many seconds of measured turns a peer takes no more."""
LOOK = 0.05
"""Seconds between two looks at the memory of a program and its children."""


class Watched(Contestant):
    """A program whose greatest memory during its turns is known; the first turn is for warming up."""

    def __init__(self, name: str, how: str, command: list[str], task: str, limit: float) -> None:
        super().__init__(name, how, command, task, limit)
        self.memory = 0
        self.first: list[float] = []

    def turn(self) -> None:
        """Run the query once."""
        with self._watch():
            super().turn()
        if not self.first and self.samples:
            self.first, self.samples = self.samples, []

    @property
    def enough(self) -> bool:
        """Whether it takes no more turns."""
        return self.over or sum(self.samples) > ENOUGH

    @contextmanager
    def _watch(self) -> Iterator[None]:
        done = threading.Event()

        def look() -> None:
            while True:
                self.memory = max(self.memory, held(self.pid))
                if done.wait(LOOK):
                    return

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def result(self) -> dict[str, Any]:
        """What it needed, or why it has not finished; the first turn, where there was no time for another."""
        if self.first and not self.samples:
            self.samples = self.first
        return {**super().result(), "memory": self.memory, "first": self.first}


def held(pid: int) -> int:
    """The resident memory of a program and its children."""
    try:
        root = psutil.Process(pid)
        return sum(process.memory_info().rss for process in (root, *root.children(recursive=True)))
    except psutil.Error:
        return 0


def run_peers(how: Run, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The results of the suite, as plain data in the shape of the others."""
    chosen = chosen_of(PEERS_SUITE, how.only)
    root = repository()
    if root is None:
        raise BenchError("the peers are in benchmarks/peers of the repository: run this inside it")
    folder = root / "benchmarks" / "peers"
    if how.install:
        for peer in dict.fromkeys(benchmark.settings["peer"] for benchmark in chosen):
            progress(f"installing {peer}", 0, len(chosen))
            install(peer, folder)
    load = os.getloadavg()[0]
    results: dict[str, dict[str, Any]] = {}
    for done, benchmark in enumerate(chosen):
        progress(benchmark.name, done, len(chosen))
        load = max(load, os.getloadavg()[0])
        results[benchmark.name] = compared(benchmark, how, folder)
    progress("done", len(chosen), len(chosen))
    return outcome(PEERS_SUITE, how, results, load, threads=how.threads)


def compared(benchmark: Benchmark, how: Run, folder: Path) -> dict[str, Any]:
    """A query by nestream and by one peer, in each of its ways."""
    peer, cannot = benchmark.settings["peer"], benchmark.settings["cannot"]
    events = benchmark.data.events(how.events)
    described: dict[str, Any] = {
        "title": benchmark.title,
        "query": benchmark.text,
        "peer": peer,
        "version": version(peer, folder),
        "events": events,
        "data": benchmark.data.generator,
        "lines": of_ours(benchmark.text),
    }
    absent = f"cannot say it: {cannot}" if cannot else missing(peer, folder)
    if absent:
        ways = [{"peer": peer, "formulation": one.formulation, "status": absent} for one in benchmark.peers]
        return {**described, "peers": ways or [{"peer": peer, "formulation": "", "status": absent}]}
    path = events_of(benchmark.data, events, how.folder or cache_folder())
    ours, others = _in_turns(benchmark, path, how, folder)
    for other in others:
        agree(f"{benchmark.name} ({other['formulation']})", ours, other)
        if "best" in other:
            other["ratio"] = other["best"] / ours["best"]
            pairs = list(zip(other["samples"], ours["samples"], strict=False))
            other["ratios"] = [
                min(a / b for a, b in pairs),
                median(a / b for a, b in pairs),
                max(a / b for a, b in pairs),
            ]
        other["lines"] = of_peer(peer, benchmark.shape, other["formulation"], folder)
    return {**described, "matches": ours["matches"], "ours": ours, "peers": others}


def agree(name: str, ours: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """A peer that has finished must have found the same matches."""
    if "matches" not in other:
        return
    here, there = ((one["matches"], one["checksum"]) for one in (ours, other))
    if here != there:
        found = f"{there[0]:,} matches with checksum {there[1]}, nestream {here[0]:,} with {here[1]}"
        raise BenchError(f"{name}: {other['peer']} finds {found}")


def _in_turns(
    benchmark: Benchmark, path: Path, how: Run, folder: Path
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    task = json.dumps({"measure": "turns", "path": str(path), "query": benchmark.text})
    worker = [sys.executable, "-m", "nestream.bench.worker"]
    all_of_them = [Watched("nestream", "", worker, task + "\n", how.limit)]
    try:
        for peer in benchmark.peers:
            files = (path, columns_of(path) if peer.name in JARS else path)
            run = command(peer.name, benchmark.shape, peer.formulation, files, benchmark.window, folder)
            all_of_them.append(Watched(peer.name, peer.formulation, run, "", how.limit))
        for _ in range(how.repeats + 1):
            for one in all_of_them:
                if not one.enough:
                    one.turn()
            if all(one.enough for one in all_of_them[1:]):
                break
    finally:
        for one in all_of_them:
            one.retire()
    ours, *others = (one.result() for one in all_of_them)
    if "matches" not in ours:
        raise BenchError(f"{benchmark.name}: nestream {ours['status']}")
    return ours, others
