"""The ways to run a query that are compared with the reference, by name.

A runner takes the query's text, the events, the order and a seed, from which it draws whatever it may choose
freely, such as how the input is split. To add one, write the function and name it in `RUNNERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from nestream.query import query


class Run(Protocol):
    """Runs a query over events."""

    def __call__(self, text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        """The table of matches."""


@dataclass(frozen=True)
class Runner:
    """A way to run a query.

    `ordered` says that it promises the order of the rows: by `match_end`, then by the events' positions, so
    that LIMIT takes the first of them. Without the promise LIMIT may take any.
    """

    run: Run
    ordered: bool = False


def reference(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The reference evaluator itself."""
    return query(text).match(table, order=order, strategy="reference")


def engine(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The columnar engine over the whole table."""
    return query(text).match(table, order=order)


RUNNERS: dict[str, Runner] = {
    "reference": Runner(reference, ordered=True),
    "engine": Runner(engine, ordered=True),
}
