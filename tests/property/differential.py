"""Runs many random cases outside Hypothesis, in two processes, and shrinks what fails.

    python -m tests.property.differential --cases 20000 --seed 0 --runner reference

A case that failed is run again with `--case NUMBER` and the same seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.property.cases import random_case
from tests.property.harness import difference
from tests.property.runners import RUNNERS
from tests.property.shrink import shrink

CHUNK = 100


@dataclass(frozen=True)
class Outcome:
    """What a run of some cases found."""

    cases: int
    failures: tuple[int, ...]


def run_cases(seed: int, runner: str, groups: bool, indices: range) -> Outcome:
    """Run the cases of those numbers and name those that fail."""
    way = RUNNERS[runner]
    failures = [index for index in indices if difference(random_case(seed, index, groups=groups), way)]
    return Outcome(len(indices), tuple(failures))


def report(seed: int, runner: str, index: int, *, groups: bool = False) -> str:
    """A failing case, as small as it gets, with both results; empty where it does not fail."""
    way = RUNNERS[runner]
    case = random_case(seed, index, groups=groups)
    if difference(case, way) is None:
        return ""
    smallest = shrink(case, lambda smaller: difference(smaller, way) is not None)
    return f"runner {runner}: {difference(smallest, way)}"


def run(
    cases: int, seed: int, runner: str, processes: int = 2, most_failures: int = 3, *, groups: bool = False
) -> list[int]:
    """Run cases with progress on the error stream; the numbers of the failing ones."""
    chunks = [range(start, min(start + CHUNK, cases)) for start in range(0, cases, CHUNK)]
    failures: list[int] = []
    done = 0
    begun = shown = time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        for outcome in pool.map(partial(run_cases, seed, runner, groups), chunks):
            done += outcome.cases
            failures += outcome.failures
            now = time.monotonic()
            if now - shown > 2 or done == cases:
                shown = now
                speed = done / (now - begun)
                print(
                    f"{done:,} of {cases:,} cases, {len(failures)} failed, {speed:,.0f} a second",
                    file=sys.stderr,
                )
            if len(failures) >= most_failures:
                pool.shutdown(cancel_futures=True)
                break
    return failures


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runner", choices=sorted(RUNNERS), required=True)
    parser.add_argument("--case", type=int, help="run this case alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most-failures", type=int, default=3, help="stop after so many")
    parser.add_argument("--groups", action="store_true", help="queries with groups and aggregates")
    options = parser.parse_args()
    if options.case is not None:
        found = report(options.seed, options.runner, options.case, groups=options.groups)
        print(found or f"agrees:\n{random_case(options.seed, options.case, groups=options.groups)}")
        return bool(found)
    failures = run(
        options.cases,
        options.seed,
        options.runner,
        options.processes,
        options.most_failures,
        groups=options.groups,
    )
    for index in failures[: options.most_failures]:
        print(report(options.seed, options.runner, index, groups=options.groups), end="\n\n")
    print(f"{options.cases:,} cases, {len(failures)} failed")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
