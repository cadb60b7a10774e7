"""Random queries with inner queries, dense histories, and runs in which views slide every few events.

python -m tests.papers.views.cases --cases 2000 --seed 0
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from random import Random
from unittest.mock import patch

import pyarrow as pa

from nestream.query import query
from tests.papers.sharing.unions import dense_history, rows
from tests.strategies import VIEWS


@dataclass(frozen=True)
class Case:
    """A query with inner queries and events to run it over."""

    text: str
    table: pa.Table
    order: str


class _Writer:
    """Writes a pattern: events `v0`, `v1`, ... in SEQs and ANDs, with some nested and some negated."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0

    def event(self, types: str = "ABC") -> tuple[str, str]:
        name = f"v{self.count}"
        self.count += 1
        return f"{self.random.choice(types)} {name}", name

    def operator(self, depth: int, visible: list[str]) -> tuple[str, list[str]]:
        """An expression and the variables that it shows to what is around it."""
        random = self.random
        kind = random.choice(("SEQ", "SEQ", "AND"))
        parts, own = [], []
        for place in range(random.choice((2, 2, 3)) if depth else random.choice((2, 3, 3))):
            if place == 0 or random.random() < 0.6 or depth == 2:
                text, name = self.event()
                parts.append(text)
                own.append(name)
        shown = list(own)
        for _ in range(random.choice((0, 1, 1, 2)) if depth else random.choice((1, 1, 2))):
            if depth == 2 or self.count > 5:
                break
            negated = random.random() < 0.5
            if negated and random.random() < 0.2:
                text, name = self.event("CDE")
                text, names = self.with_predicates(f"({text}", [name], [*visible, *own])
            else:
                text, names = self.operator(depth + 1, [*visible, *own])
            parts.insert(random.randrange(len(parts) + 1), f"!{text}" if negated else text)
            if not negated:
                shown += names
        return self.with_predicates(f"{kind}({', '.join(parts)}", shown, visible)

    def with_predicates(self, text: str, names: list[str], visible: list[str]) -> tuple[str, list[str]]:
        random, predicates = self.random, []
        if len(names) > 1 and random.random() < 0.3:
            one, other = random.sample(names, 2)
            predicates.append(f"{one}.{random.choice(('id', 'x'))} {random.choice('=<')} {other}.x")
        if visible and random.random() < 0.6:
            for name in random.sample(names, random.choice((1, min(2, len(names))))):
                other = random.choice(visible)
                predicates.append(f"{name}.id = {other}.id")
        if visible and random.random() < 0.15:
            predicates.append(f"{random.choice(names)}.x <= {random.choice(visible)}.x")
        if len(visible) > 1 and random.random() < 0.05:
            predicates.append(f"{visible[0]}.id = {visible[-1]}.id")
        return ", ".join([text, *predicates]) + ")", names


def random_case(seed: int, number: int) -> Case:
    """The case of that number."""
    random = Random(f"{seed}/{number}")
    text, _ = _Writer(random).operator(0, [])
    window = random.choice(("3", "4", "6", "6", "9", "6 EVENTS", "UNBOUNDED"))
    count = random.choice((8, 12)) if window == "UNBOUNDED" else random.choice((14, 24, 34))
    return Case(
        f"{text} WITHIN {window}", dense_history(random, count), random.choice(("time", "time", "arrival"))
    )


def wrong(case: Case, strategy: str, seed: int) -> str:
    """How a strategy differs from what is right, over the whole table and in batches; empty where not."""
    random = Random(seed)
    chosen = query(case.text)
    way = "reference" if case.text.count(" v") < 5 else "auto"  # which is compared with it elsewhere
    expected = sorted(rows(chosen.match(case.table, order=case.order, strategy=way)))
    with patch("nestream_papers.views.run.FEWEST", random.choice((1, 2, 5, 256))):
        found = sorted(rows(chosen.match(case.table, order=case.order, strategy=strategy)))
        if found != expected:
            return f"whole table: {case.text} ({case.order})\n{case.table.to_pylist()}"
        stream = chosen.stream(schema=case.table.schema, order=case.order, strategy=strategy)
        parts, done = [], 0
        while done < case.table.num_rows:
            size = random.choice((1, 1, 2, 5))
            parts.append(stream.push_batch(case.table.slice(done, size)))
            done += size
        parts.append(stream.finish_batch())
    if sorted(rows(pa.concat_tables(parts))) != expected:
        return f"in batches: {case.text} ({case.order})\n{case.table.to_pylist()}"
    return ""


def main() -> None:
    """Run many cases and tell of those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for number in range(options.cases):
        case = random_case(options.seed, number)
        for strategy in VIEWS:
            try:
                said = wrong(case, strategy, number)
            except Exception as error:
                said = f"{type(error).__name__}: {error}: {case.text} ({case.order})"
            if said:
                failed += 1
                print(number, strategy, said, flush=True)
        if failed > 5:
            break
    print(f"{number + 1:,} cases, {failed} failed")


if __name__ == "__main__":
    main()
