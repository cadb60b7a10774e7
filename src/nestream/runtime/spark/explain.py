"""What `explain` says of a DataFrame: how its events are split, what is read of them, what Spark filters."""

from __future__ import annotations

from typing import Any

from nestream.engine.program import Measure, Program
from nestream.model.output import Output
from nestream.model.schema import Schema
from nestream.runtime.spark.batch import columns_to_read
from nestream.runtime.spark.columns import pushed_text
from nestream.runtime.spark.partitioning import choose

_MOST_PARTITIONS = "as many as Spark finds useful, at most spark.sql.shuffle.partitions"


def explain_batch(
    output: Output,
    program: Program,
    schema: Schema,
    *,
    partition_by: str | None = None,
    partitions: int | None = None,
    slice_length: int | None = None,
) -> dict[str, Any]:
    """The plan on Spark, as plain data; nothing is run for it."""
    plan = choose(program, partition_by, slice_length)
    most = 1 if plan.kind == "single" else partitions or _MOST_PARTITIONS
    pushed = pushed_text(program, schema)
    if program.measure is Measure.EVENTS:
        pushed = "no events, as all of them count"
    unused = [name for name in schema.columns if name not in columns_to_read(output, program, schema)]
    return {
        "partitioning": str(plan),
        "partitions": most,
        "columns": list(columns_to_read(output, program, schema)),
        "unread": unused,
        "filter": pushed,
    }


def explain_batch_text(described: dict[str, Any]) -> str:
    """The same as indented text."""
    lines = ["Spark", f"  {described['partitioning']}", f"  partitions: {described['partitions']}"]
    lines.append(f"  reads: {', '.join(described['columns'])}")
    if described["unread"]:
        lines[-1] += f" (not {', '.join(described['unread'])})"
    lines.append(f"  filters: {described['filter']}")
    return "\n".join(lines)
