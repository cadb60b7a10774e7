"""A random case: a query, a history, and how to run one over the other."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from textwrap import indent

import pyarrow as pa

from tests.generators.histories import FEW, compact, random_history, types_of
from tests.generators.queries import COUNTED, GROUPS, random_query


@dataclass(frozen=True)
class Case:
    """A query and the events to run it over. `seed` decides what a runner chooses, such as its batches."""

    text: str
    table: pa.Table
    order: str = "time"
    seed: int = 0
    name: str = ""

    def __str__(self) -> str:
        """The case in the notation of the corpus, up to what is expected."""
        lines = [f"== {self.name or 'a random case'}"]
        if self.order != "time":
            lines.append(f"order: {self.order}")
        lines += ["query:", indent(self.text, "    "), f"events: {compact(self.table, self.text)}"]
        return "\n".join(lines)


def random_case(seed: int, index: int, *, groups: bool = False) -> Case:
    """The case of that number, with groups if asked; the same for the same numbers, whatever came before."""
    random = Random(f"{seed}/{index}")
    counted = groups and random.random() < 0.25
    text = random_query(random, (COUNTED if counted else GROUPS) if groups else None)
    table = random_history(random, 2 * FEW if counted else FEW, types_of(text))
    order = "arrival" if random.random() < 0.2 else "time"
    name = f"{'--groups ' * groups}--seed {seed} --case {index}"
    return Case(text, table, order, random.randrange(2**32), name)
