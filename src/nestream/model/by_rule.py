"""Counts the matches of a query set by the names of its queries."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc


def matches_by_rule(matches: pa.Table) -> Counter[str]:
    """How many matches each query of a set has; empty for the matches of a single query."""
    if "query" not in matches.column_names or not pa.types.is_string(matches.schema.field("query").type):
        return Counter()
    counted = pc.value_counts(matches.column("query").combine_chunks()).to_pylist()
    return Counter({row["values"]: row["counts"] for row in counted})
