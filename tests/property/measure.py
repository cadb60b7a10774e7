"""Measures the random cases: how many have a match, and in how many a negation removes one.

    python -m tests.property.measure --cases 2000

Both must be frequent, or agreement between two ways to run a query says little.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from nestream.logical.nodes import Component, Leaf, Negation, Node, Plan, WinOr, target_variables
from nestream.query import Query, query
from nestream.runtime.reference import match_reference
from tests.property.cases import Case, random_case


def without_negations(plan: Plan) -> Plan:
    """The plan with all its negations taken out."""
    return replace(plan, root=_without(plan.root))


def _without(node: Node) -> Node:
    if isinstance(node, Leaf):
        return node
    if isinstance(node, WinOr):
        return replace(node, components=tuple(map(_without, node.components)))
    kept: list[Component] = [_without(part) for part in node.components if not isinstance(part, Negation)]
    return replace(node, components=tuple(kept))


def complete(plan: Plan) -> Plan:
    """The plan with every variable in its output, and all its matches."""
    kept = tuple(name for name in plan.variables if name in target_variables(plan.root))
    return replace(plan, output=replace(plan.output, kept=kept, distinct=False, columns=()), limit=None)


def count(read: Query, plan: Plan, case: Case) -> int:
    """How many matches a variant of the query's plan has."""
    run = read.prepare(case.table, **case.arguments)
    return match_reference(plan, run.table, run.schema, {}, run.unit, run.order).num_rows


def main() -> None:
    """Print the fractions."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cases", type=int, default=2000)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    matched = removed = negated = total = 0
    slowest = (0.0, "")
    begun = time.perf_counter()
    for index in range(options.cases):
        case = random_case(options.seed, index)
        read = query(case.text)
        started = time.perf_counter()
        plan = complete(read.prepare(case.table, **case.arguments).plan)
        rows, positive = count(read, plan, case), count(read, without_negations(plan), case)
        slowest = max(slowest, (time.perf_counter() - started, case.name))
        matched += rows > 0
        removed += positive > rows
        negated += plan != without_negations(plan)
        total += rows
    print(
        f"{options.cases} cases in {time.perf_counter() - begun:.1f} s, slowest {slowest[0]:.2f} s: {slowest[1]}"
    )
    print(f"with a match             {matched / options.cases:6.1%}")
    print(f"with a negation          {negated / options.cases:6.1%}")
    print(f"with a match removed     {removed / options.cases:6.1%}")
    print(f"matches a case           {total / options.cases:6.1f}")


if __name__ == "__main__":
    main()
