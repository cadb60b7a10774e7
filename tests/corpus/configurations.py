"""The ways to run a query: every case of the corpus is run in each of them and must give the same matches.

A new way to run is one more entry: a name and a callable from the query, the table of events and the options
`order` and `types` to the table of matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from nestream.query import Query

Run = Callable[..., pa.Table]


def reference(query: Query, table: pa.Table, **options: Any) -> pa.Table:
    """The reference evaluator: expectations are regenerated with it."""
    return query.match(table, strategy="reference", **options)


CONFIGURATIONS: Mapping[str, Run] = {
    "reference": reference,
}
