"""Two revisions side by side: a small set of queries in turns, and whether one is slower beyond noise."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks.engine import ENGINE
from benchmarks.events import ROOT, events_file
from benchmarks.experiments import papers
from benchmarks.measures import WORKER
from benchmarks.parts import rows
from benchmarks.process import Program
from benchmarks.spec import BenchError, Benchmark, Progress, Suite
from benchmarks.turns import Contestant, in_turns

WORKING = "working tree"
"""What the second revision is called if none is named: the files as they are."""
TURNS = 9
SMALL = {
    "engine": (1_000_000, "flat not-event not-seq not-and unkeyed-3 unkeyed-6 stream/batches"),
    "rewriting": (10_000, "children/2/200 levels/3/100 mixed/50"),
    "views": (10_000, "window/500 negated/500 accounts/50"),
    "predicates": (10_000, "type/positive window/500"),
    "sase": (200_000, "second/20/50 length/5"),
}
"""Queries that show most of the engine, and on how many events."""


@dataclass(frozen=True)
class Compared:
    """One query on both revisions: the seconds of each turn, or why there are none."""

    name: str
    base: Sequence[float] = ()
    head: Sequence[float] = ()
    problem: str = ""

    @property
    def ratios(self) -> list[float]:
        """The time of the second revision as a multiple of the first's in each turn; in order."""
        return sorted(b / a for a, b in zip(self.base, self.head, strict=True))

    @property
    def span(self) -> tuple[float, float]:
        """Where the true median lies, in nineteen of twenty comparisons or more if there are six turns.

        The chance that it lies outside the k-th least and the k-th greatest of n is twice that of fewer than
        k heads in n tosses of a coin.
        """
        ratios = self.ratios
        cut = 0
        while 2 * sum(math.comb(len(ratios), n) for n in range(cut + 2)) / 2.0 ** len(ratios) <= 0.05:
            cut += 1
        return ratios[cut], ratios[-1 - cut]

    def verdict(self, threshold: float) -> str:
        """Faster, slower, or neither beyond noise and a threshold."""
        if self.problem:
            return self.problem
        low, high = self.span
        middle = median(self.ratios)
        if low > 1 and middle > 1 + threshold:
            return "slower"
        return "faster" if high < 1 and middle < 1 / (1 + threshold) else "no difference beyond noise"


def small_set(events: int | None = None) -> Iterator[tuple[Benchmark, int]]:
    """The queries that are run, each with its number of events."""
    for name, (whole, chosen) in SMALL.items():
        suite: Suite = ENGINE if name == "engine" else papers()[name].suite()
        for one in suite.benchmarks:
            if one.name in chosen.split():
                count = (events or whole) if name == "engine" else one.data.events(events or whole)
                yield replace(one, name=f"{name}/{one.name}"), count


def compare(
    base: str,
    head: str = WORKING,
    *,
    root: Path = ROOT,
    turns: int = TURNS,
    only: Sequence[str] = (),
    events: int | None = None,
    folder: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> list[Compared]:
    """Every query of the small set on both revisions, in turns."""
    known = list(small_set(events))
    chosen = [one for one in known if not only or any(one[0].name.startswith(name) for name in only)]
    if not chosen:
        names = ", ".join(one.name for one, _ in known)
        raise BenchError(f"the small set has no such query. It has {names}.")
    results = []
    with ExitStack() as stack:
        trees = [stack.enter_context(checked_out(root, revision)) for revision in (base, head)]
        programs = [stack.enter_context(_program(tree)) for tree in trees]
        for place, (benchmark, count) in enumerate(chosen):
            progress(benchmark.name, place, len(chosen))
            path = events_file(benchmark.data, count, folder)
            task = {"path": str(path), "query": benchmark.text, "clock": "processor"}
            task |= {key: benchmark.task[key] for key in ("by", "size") if key in benchmark.task}
            results.append(_compared(benchmark.name, programs, task, turns))
    return results


def _compared(name: str, programs: list[Program], task: dict[str, Any], turns: int) -> Compared:
    sides = [
        Contestant(which, program, task) for which, program in zip(("base", "head"), programs, strict=True)
    ]
    base, head = in_turns(sides, turns).values()
    for which, found in (("the first", base), ("the second", head)):
        if "samples" not in found:
            return Compared(name, problem=f"{which} {found['status']}")
    here, there = ((found["matches"], found.get("checksum")) for found in (base, head))
    if here != there:
        return Compared(name, problem=f"different matches: {here} and {there}")
    pairs = min(len(base["samples"]), len(head["samples"]))
    return Compared(name, base["samples"][:pairs], head["samples"][:pairs])


@contextmanager
def checked_out(root: Path, revision: str) -> Iterator[Path]:
    """A folder with the revision; the repository itself for the files as they are."""
    if revision == WORKING:
        yield root
        return
    named = _git(root, "rev-parse", "--verify", f"{revision}^{{commit}}")
    if named is None:
        raise BenchError(f"there is no revision {revision!r} in {root}")
    folder = Path(tempfile.mkdtemp(prefix="nestream-compare-"))
    tree = folder / "tree"
    try:
        if _git(root, "worktree", "add", "--detach", "--quiet", str(tree), named) is None:
            raise BenchError(f"git could not check out {revision!r} in a folder of its own")
        yield tree
    finally:
        _git(root, "worktree", "remove", "--force", str(tree))
        shutil.rmtree(folder, ignore_errors=True)


def _git(root: Path, *words: str) -> str | None:
    """The output of git; None if it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _program(tree: Path) -> Program:
    """These benchmarks with the nestream of a folder."""
    source = str(tree / "src")
    program = Program(WORKER, seconds=300, environment={"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"})
    if program.ready is None:
        raise BenchError(f"nestream in {tree} cannot be started: {program.status}")
    if not str(program.ready["from"]).startswith(source):
        program.end()
        raise BenchError(f"{source} has no nestream: {program.ready['from']} was taken instead")
    return program


def table_of(results: list[Compared], base: str, head: str, threshold: float) -> str:
    """The results as a Markdown table."""
    cells = []
    for one in results:
        if one.problem:
            cells.append([one.name, "", "", "", "", f"**{one.problem}**"])
            continue
        low, high = one.span
        verdict = one.verdict(threshold).replace("slower", "**slower**")
        times = (f"{min(side) * 1e3:,.1f} ms" for side in (one.base, one.head))
        cells.append([one.name, *times, f"{median(one.ratios):.3f}", f"{low:.3f} to {high:.3f}", verdict])
    known = [median(one.ratios) for one in results if not one.problem]
    mean = f"\n\nThe geometric mean of the ratios is {geometric_mean(known):.3f}." if known else ""
    return rows(("query", base, head, "ratio", "of the turns", ""), cells) + mean


def worse(results: list[Compared], threshold: float) -> bool:
    """Whether one is slower, fails or finds different matches."""
    return any(one.problem or one.verdict(threshold) == "slower" for one in results)
