"""Two revisions side by side: the small set of queries in turns, and whether one is slower beyond noise."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from nestream.bench.engine import ENGINE, FIVE_COLUMNS, KEYED, KEYED_WINDOW
from nestream.bench.files import cache_folder, events_file
from nestream.bench.predicates import PREDICATES
from nestream.bench.process import Program
from nestream.bench.rewriting import REWRITING
from nestream.bench.run import BenchError
from nestream.bench.sase import SASE
from nestream.bench.spec import Benchmark, Data, Suite
from nestream.bench.views import VIEWS

WORKING = "working tree"
"""What the second revision is called where none is named: the files as they are."""
TURNS = 9
SMALL: tuple[tuple[Suite, int, tuple[str, ...]], ...] = (
    (ENGINE, 1_000_000, ("flat", "not-event", "not-seq", "not-and", "unkeyed-3", "unkeyed-6")),
    (REWRITING, 10_000, ("children/2/200", "levels/3/100", "mixed/50")),
    (VIEWS, 10_000, ("window/500", "negated/500", "accounts/50")),
    (PREDICATES, 10_000, ("type/positive", "window/500")),
    (SASE, 200_000, ("second/20/50", "length/5")),
)
"""Queries of the suites that show most of the engine, and of how many events."""
BATCHES = Benchmark(
    "stream",
    "batches of 1,000 events",
    "",
    Data("sase", parameters=FIVE_COLUMNS),
    f"{KEYED['flat']} WHERE [id]",
    KEYED_WINDOW,
    settings={"batch": 1_000},
)


@dataclass(frozen=True)
class Compared:
    """One query on both revisions: the seconds of each turn, or why there are none."""

    name: str
    base: tuple[float, ...] = ()
    head: tuple[float, ...] = ()
    problem: str = ""

    @property
    def ratios(self) -> list[float]:
        """Of each turn, the time of the second revision as a multiple of the first's; in order."""
        return sorted(b / a for a, b in zip(self.base, self.head, strict=True))

    @property
    def span(self) -> tuple[float, float]:
        """Where the middle ratio lies, in nineteen of twenty comparisons or more if there are six turns.

        The chance that the true middle lies outside the k-th least and the k-th greatest of n is twice that
        of less than k heads in n tosses of a coin.
        """
        ratios = self.ratios
        cut = 0
        while 2 * _at_most(cut + 1, len(ratios)) <= 0.05:
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
        if high < 1 and middle < 1 / (1 + threshold):
            return "faster"
        return "no difference beyond noise"


def _at_most(heads: int, tosses: int) -> float:
    """The chance of so many heads or less."""
    return sum(math.comb(tosses, number) for number in range(heads + 1)) / 2.0**tosses


def small_set(events: int | None = None) -> Iterator[tuple[str, Benchmark, int]]:
    """The queries that are run, each with its number of events."""
    for suite, whole, names in SMALL:
        for benchmark in suite.benchmarks:
            if benchmark.name in names:
                yield f"{suite.name}/{benchmark.name}", benchmark, benchmark.data.events(events or whole)
    yield "stream/batches", BATCHES, events or 1_000_000


def compare(
    root: Path,
    base: str,
    head: str = WORKING,
    *,
    turns: int = TURNS,
    only: Sequence[str] = (),
    events: int | None = None,
    folder: Path | None = None,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[Compared]:
    """Every query of the small set on both revisions, in turns."""
    chosen = [one for one in small_set(events) if not only or any(one[0].startswith(name) for name in only)]
    if not chosen:
        names = ", ".join(name for name, _, _ in small_set())
        raise BenchError(f"there is no such query in the small set. It has {names}.")
    results = []
    with checked_out(root, base) as first, checked_out(root, head) as second, ExitStack() as started:
        programs = []
        for tree in (first, second):
            programs.append(_program(tree))
            started.callback(programs[-1].end)
        for place, (name, benchmark, count) in enumerate(chosen):
            tell(name, place, len(chosen))
            path = events_file(benchmark.data, count, folder or cache_folder())
            results.append(_in_turns(programs, name, benchmark, path, turns))
    return results


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
    if _git(root, "worktree", "add", "--detach", "--quiet", str(tree), named) is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise BenchError(f"git could not check out {revision!r} in a folder of its own")
    try:
        yield tree
    finally:
        _git(root, "worktree", "remove", "--force", str(tree))
        shutil.rmtree(folder, ignore_errors=True)


def _git(root: Path, *words: str) -> str | None:
    """What git says; None where it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _program(tree: Path) -> Program:
    """A program with the nestream of a folder, and the contestant of this one."""
    script = Path(__file__).with_name("contestant.py")
    source = str(tree / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    program = Program([sys.executable, str(script)], seconds=300, environment=environment)
    ready = program.hear()
    if ready is None:
        raise BenchError(f"nestream in {tree} cannot be started: {program.status}")
    if not str(ready["from"]).startswith(source):
        program.end()
        raise BenchError(f"{source} has no nestream: {ready['from']} was taken instead")
    return program


def _in_turns(programs: list[Program], name: str, benchmark: Benchmark, path: Path, turns: int) -> Compared:
    task = {"name": name, "path": str(path), "query": benchmark.text, **benchmark.settings}
    task = {key: task[key] for key in ("name", "path", "query", "batch") if key in task}
    found: list[list[dict[str, Any]]] = [[], []]
    for turn in range(turns + 1):
        order = (0, 1) if turn % 2 else (1, 0)  # who runs first is who finds the machine as it is
        for which in order:
            programs[which].say(json.dumps(task) + "\n")
            said = programs[which].hear()
            if said is None:
                raise BenchError(f"{name}: {programs[which].status}")
            if "failed" in said:
                return Compared(name, problem=f"{('the first', 'the second')[which]} fails: {said['failed']}")
            if turn:  # what is done once in a process is not measured
                found[which].append(said)
    sums = [{(one["matches"], one["checksum"]) for one in side} for side in found]
    if sums[0] != sums[1]:
        return Compared(name, problem=f"other matches: {sorted(sums[0])} and {sorted(sums[1])}")
    base, head = (tuple(one["seconds"] for one in side) for side in found)
    return Compared(name, base, head)


def table_of(results: list[Compared], base: str, head: str, threshold: float) -> str:
    """The results as a Markdown table."""
    lines = [
        f"| query | {base} | {head} | ratio | of the turns | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in results:
        if one.problem:
            lines.append(f"| {one.name} | | | | | **{one.problem}** |")
            continue
        low, high = one.span
        verdict = one.verdict(threshold)
        lines.append(
            f"| {one.name} | {min(one.base) * 1e3:,.1f} ms | {min(one.head) * 1e3:,.1f} ms | "
            f"{median(one.ratios):.3f} | {low:.3f} to {high:.3f} | "
            f"{'**slower**' if verdict == 'slower' else verdict} |"
        )
    known = [median(one.ratios) for one in results if not one.problem]
    mean = f"\n\nThe geometric mean of the ratios is {geometric_mean(known):.3f}." if known else ""
    return "\n".join(lines) + mean


def worse(results: list[Compared], threshold: float) -> bool:
    """Whether one is slower, fails or finds other matches."""
    return any(one.problem or one.verdict(threshold) == "slower" for one in results)
