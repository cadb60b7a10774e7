"""What `explain` says of a DataFrame: how its events are split, what is read of them, what Spark filters."""

from __future__ import annotations

from typing import Any

from nestream.engine.program import Measure, Program
from nestream.model.output import Output
from nestream.model.schema import Schema
from nestream.runtime.spark.batch import columns_to_read, relevant_events
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
    unused = [name for name in schema.columns if name not in columns_to_read(output, program, schema)]
    return {
        "partitioning": str(plan),
        "partitions": most,
        "columns": list(columns_to_read(output, program, schema)),
        "unread": unused,
        "filter": _text(relevant_events(program, schema, plan)),
        "order": "position" if program.measure is Measure.EVENTS else "time",
    }


def explain_batch_text(described: dict[str, Any]) -> str:
    """The same as indented text."""
    lines = ["Spark", f"  partitions {described['partitioning']}", f"    {described['partitions']}"]
    lines.append(f"  reads {', '.join(described['columns'])}")
    if described["unread"]:
        lines.append(f"    and leaves {', '.join(described['unread'])}")
    lines.append(f"  filters {described['filter']}")
    return "\n".join(lines)


def _text(condition: object) -> str:
    """A condition as Spark writes it."""
    shown = str(condition)
    return shown.removeprefix("Column<'").removesuffix("'>")
