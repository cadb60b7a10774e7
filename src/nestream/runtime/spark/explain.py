"""What `explain` reports about a DataFrame: how its events are split, what is read, what Spark filters.

For a streaming DataFrame also the allowed lateness, the state, and when matches are emitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from nestream.engine.program import Decided, Measure, Scope
from nestream.model.lengths import Length
from nestream.model.time import Duration
from nestream.runtime.compiled import Compiled
from nestream.runtime.spark.columns import by_code_point, in_utc, pushed_text
from nestream.runtime.spark.statistics import planned
from nestream.runtime.spark.stream import stream_partitioning
from nestream.runtime.spark.stream_checks import buckets_of, watermark_delay

BATCH_PLANNED = "each partition is planned for its first events"
STREAM_PLANNED = "each bucket is replanned at a micro-batch once the share of a type has doubled or halved"
_MOST_PARTITIONS = "as many as Spark finds useful, at most spark.sql.shuffle.partitions"


def explain_dataframe(
    df: DataFrame,
    compiled: Compiled,
    *,
    partition_by: str | None = None,
    partitions: int | None = None,
    slice_length: Length | None = None,
    statistics: bool = True,
) -> dict[str, Any]:
    """The plan on Spark, as plain data; only a large batch is sampled for it, as it is for matching."""
    df, compiled = by_code_point(df), compiled.over(in_utc(compiled.schema))
    columns = compiled.read
    pushed = pushed_text(compiled.scope, compiled.schema)
    if compiled.scope.measure is Measure.EVENTS:
        pushed = "no events, because all of them count"
    read = {
        "columns": list(columns),
        "unread": [name for name in compiled.schema.columns if name not in columns],
        "filter": pushed,
    }
    if df.isStreaming:
        return _stream(df, compiled, partition_by, partitions, slice_length) | read
    plan = planned(df, compiled, partition_by, partitions, slice_length, statistics)
    most = 1 if plan.kind == "single" else partitions or _MOST_PARTITIONS
    told = {"statistics": plan.statistics} if plan.statistics else {}
    return {"streaming": False, "partitioning": str(plan), **told, "partitions": most, **read}


def _stream(
    df: DataFrame,
    compiled: Compiled,
    partition_by: str | None,
    partitions: int | None,
    slice_length: Length | None,
) -> dict[str, Any]:
    program, schema = compiled.scope, compiled.schema
    plan = stream_partitioning(program, partition_by, slice_length)
    delay = Duration(1000 * watermark_delay(df, schema.time))
    window = Duration(program.window // schema.per_microsecond)
    return {
        "streaming": True,
        "partitioning": str(plan),
        "buckets": len(buckets_of(df, plan, partitions)),
        "watermark": f"{delay} behind the greatest `{schema.time}` of earlier micro-batches; "
        "an event before it is late",
        "state": _held(program, window),
        "emits": list(dict.fromkeys(_emitted(program, window))),
    }


def _held(program: Scope, window: Duration) -> str:
    """What the state store holds of the events."""
    waiting = Decided.WINDOW in program.decided
    windows = 2 if waiting and program.looks_back else 1
    match program.measure:
        case Measure.NONE:
            held = "every event, forever, because the query has no window"
        case Measure.EVENTS:
            held = f"the events of the last {windows * (program.window - 1)} positions"
        case Measure.TIME:
            held = f"the events of the last {Duration(windows * window.microseconds)} before the watermark"
    given = ", the matches emitted from them" if program.distinct else ""
    return f"{held}{given}, and those waiting for the watermark; Arrow in RocksDB"


def _emitted(program: Scope, window: Duration) -> Iterator[str]:
    """When a match is emitted, for each way to be decided."""
    for decided in program.decided:
        match decided:
            case Decided.LAST:
                yield "a match once the watermark has reached its last event"
            case Decided.CLOSED:
                yield "a match once the watermark has passed its last event"
            case Decided.WINDOW if program.measure is Measure.NONE:
                yield "no match: without a window, its last negation is never decided"
            case Decided.WINDOW if program.measure is Measure.EVENTS:
                yield f"a match once {program.window - 1} events have followed its first one"
            case Decided.WINDOW:
                yield f"a match once the watermark is {window} after its first event, by a timer"


def explain_dataframe_text(described: dict[str, Any]) -> str:
    """The same as indented text."""
    streaming = described["streaming"]
    lines = ["Spark stream" if streaming else "Spark", f"  {described['partitioning']}"]
    if "statistics" in described:
        lines.append(f"  statistics: {described['statistics']}")
    number = "buckets" if streaming else "partitions"
    lines.append(f"  {number}: {described[number]}")
    if streaming:
        lines.append(f"  watermark: {described['watermark']}")
    lines.append(f"  reads: {', '.join(described['columns'])}")
    if described["unread"]:
        lines[-1] += f" (not {', '.join(described['unread'])})"
    lines.append(f"  filters: {described['filter']}")
    if "optimizer" in described:
        lines.append(f"  optimizer: {described['optimizer']}")
    if "zone" in described:
        lines.append(f"  zone: {described['zone']}, the session's, for times without a zone")
    if streaming:
        lines.append(f"  state: {described['state']}")
        lines += [f"  emits: {when}" for when in described["emits"]]
    return "\n".join(lines)
