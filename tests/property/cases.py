"""A random case: a query, a history, and how to run one over the other."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from tests.strategies.histories import compact, random_history, types_of
from tests.strategies.queries import random_query


@dataclass(frozen=True)
class Case:
    """A query and the events to run it over. `seed` decides what a runner chooses, such as its batches."""

    text: str
    table: pa.Table
    order: str = "time"
    seed: int = 0
    name: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """What `Query.prepare` takes beside the events."""
        return {"time": "ts", "type": "type", "types": None, "order": self.order, "strategy": "reference"}

    def __str__(self) -> str:
        head = [f"case {self.name}"] if self.name else []
        return "\n".join(
            [
                *head,
                f"order: {self.order}",
                "query:",
                self.text,
                "events, as they arrive:",
                compact(self.table),
            ]
        )


def random_case(seed: int, index: int) -> Case:
    """The case of that number; the same for the same numbers, whatever was made before it."""
    random = Random(f"{seed}/{index}")
    text = random_query(random)
    table = random_history(random, types=types_of(text))
    order = "arrival" if random.random() < 0.2 else "time"
    return Case(text, table, order, random.randrange(2**32), f"--seed {seed} --case {index}")
