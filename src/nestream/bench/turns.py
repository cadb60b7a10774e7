"""A query by nestream and its peers in turns, so that what else the machine does hits all of them alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from nestream.bench.files import repository
from nestream.bench.process import Program
from nestream.bench.spec import Benchmark

HOPELESS = 3.0
"""A formulation that takes this many times what the peer's best one takes is not repeated."""


class Contestant:
    """A program with the events in memory that runs the query once a turn."""

    def __init__(self, name: str, formulation: str, command: list[str], task: str, limit: float) -> None:
        self.name, self.formulation = name, formulation
        self.samples: list[float] = []
        self.sums: dict[str, int] = {}
        self.over = False
        self._program = Program(command, seconds=limit)
        self._program.say(task)
        self._take(self._program.hear())  # it says that it is ready

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._program.pid

    def turn(self) -> None:
        """Run the query once."""
        self._program.say("go\n")
        self._take(self._program.hear())

    def _take(self, said: dict[str, Any] | None) -> None:
        if said is None:
            self.over = True
        elif "seconds" in said:
            self.samples.append(said["seconds"])
            self.sums = {"matches": said["matches"], "checksum": said["checksum"]}

    def retire(self) -> None:
        """Take no more turns."""
        if not self.over:
            self.over = True
            self._program.end()

    def result(self) -> dict[str, Any]:
        """What it needed, or why it has not finished."""
        described = {"peer": self.name, "formulation": self.formulation}
        if not self.samples:
            return {**described, "status": self._program.status}
        return {**described, "status": "done", **summed_up({"samples": self.samples}), **self.sums}


def in_turns(benchmark: Benchmark, path: Path, repeats: int, threads: int, limit: float) -> dict[str, Any]:
    """The times of nestream and of every peer: `beside` and `peers`."""
    root = repository()
    if root is None:
        missing = "not found: run inside the repository"
        return {
            "peers": [
                {"peer": p.name, "formulation": p.formulation, "status": missing} for p in benchmark.peers
            ]
        }
    task = json.dumps({"measure": "turns", "path": str(path), "query": benchmark.text})
    ours = Contestant("nestream", "", [sys.executable, "-m", "nestream.bench.worker"], task + "\n", limit)
    contestants = [ours]
    try:
        for peer in benchmark.peers:
            script = root / "benchmarks" / "peers" / peer.script
            command = [sys.executable, str(script), benchmark.shape, peer.formulation, str(path)]
            command += [str(benchmark.window), f"--threads={threads}", "--turns"]
            contestants.append(Contestant(peer.name, peer.formulation, command, "", limit))
        for _ in range(repeats):
            for contestant in contestants:
                if not contestant.over:
                    contestant.turn()
                    _retire_hopeless(contestants)
    finally:
        for contestant in contestants:
            contestant.retire()
    beside, *peers = (contestant.result() for contestant in contestants)
    return {"beside": beside, "peers": peers}


def _retire_hopeless(contestants: list[Contestant]) -> None:
    best: dict[str, float] = {}
    for one in contestants:
        best[one.name] = min([*one.samples, best.get(one.name, float("inf"))])
    for one in contestants:
        if one.samples and min(one.samples) > HOPELESS * best[one.name]:
            one.retire()


def summed_up(result: dict[str, Any]) -> dict[str, Any]:
    """The result with the best of its samples and how far the middle one is from it."""
    for key, best, spread in (("samples", "best", "spread"), ("count_samples", "count_best", "count_spread")):
        if key in result:
            samples = sorted(result[key])
            result |= {best: samples[0], spread: samples[len(samples) // 2] / samples[0] - 1}
    if "ways" in result:
        result |= result.pop("ways")
    return result
