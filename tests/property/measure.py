"""Measures the random cases: how many have a match, and in how many a negation removes one.

    python -m tests.property.measure --cases 2000

Both must be frequent, or agreement between two ways to run a query says little.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

from tests.property.cases import random_case
from tests.property.meaning import matches, without_negations


@dataclass
class Measured:
    """How many cases there were, and how many of each sort."""

    cases: int = 0
    matched: int = 0
    removed: int = 0
    matches: int = 0
    slowest: float = 0.0
    slowest_case: str = ""


def measure(cases: int, seed: int = 0) -> Measured:
    """Run cases by the reference evaluator alone."""
    measured = Measured()
    for index in range(cases):
        case = random_case(seed, index)
        started = time.perf_counter()
        found = matches(case.text, case.table, case.order)
        positive = matches(case.text, case.table, case.order, without_negations)
        taken = time.perf_counter() - started
        measured.cases += 1
        measured.matched += bool(found)
        measured.removed += len(positive) > len(found)
        measured.matches += len(found)
        if taken > measured.slowest:
            measured.slowest, measured.slowest_case = taken, case.name
    return measured


def main() -> None:
    """Print the fractions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measured = measure(options.cases, options.seed)
    print(f"slowest case           {measured.slowest:.3f} s ({measured.slowest_case})")
    print(f"with a match           {measured.matched / measured.cases:6.1%}")
    print(f"with a match removed   {measured.removed / measured.cases:6.1%}")
    print(f"matches a case         {measured.matches / measured.cases:6.1f}")


if __name__ == "__main__":
    main()
