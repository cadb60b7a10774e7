"""Runs queries on Spark: DataFrames typed for a query. Nothing else in `compose` imports Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from nestream.compose.settings import Settings
from nestream.logical.explain import explain, explain_json
from nestream.logical.nodes import Plan, expressions
from nestream.model.columns import to_table
from nestream.model.expression import constants
from nestream.model.extras import needs
from nestream.model.lengths import length_of_time, seconds_of
from nestream.model.schema import EventError, Schema
from nestream.model.time import Duration
from nestream.runtime.arrivals import Compiler
from nestream.runtime.compiled import Compiled, CompiledQuery

AnyCompiled = TypeVar("AnyCompiled", CompiledQuery, Compiled)


def dataframe_of(events: Any, settings: Settings) -> tuple[Any, Schema]:
    """The events, a DataFrame or a mapping of types to DataFrames, as one DataFrame with its schema."""
    from nestream.runtime.spark.match import spark_schema, union_by_type

    if not is_dataframe(events):
        found = events.__class__.__name__
        raise TypeError(
            f"on Spark, pass the events as a DataFrame or a mapping of types to DataFrames, not a {found}"
        )
    if isinstance(events, Mapping):
        known = {name: frame.columns for name, frame in events.items()}
        settings = replace(settings, types=settings.types or known)
        events = union_by_type(events, settings.type)
    return events, settings.schema(spark_schema(events, settings.time, settings.type))


def collected(events: Any, options: Mapping[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
    """The events of a batch in this process, by time, in the session's zone, with the options of `why`."""
    from nestream.runtime.spark.session import in_process

    if options.get("by") is None:
        raise EventError(
            "the rows of a Spark DataFrame have no numbers\n"
            '  hint: pick the events by a column with a value for each: why(df, [17, 21], by="id")'
        )
    given = {name: options[name] for name in ("time", "type", "types") if name in options}
    settings = Settings.of(given)
    df, schema = dataframe_of(events, settings)
    if df.isStreaming:
        raise EventError(
            "why cannot read a stream\n"
            "  hint: read the events as a batch, with spark.read instead of readStream"
        )
    return in_process(df).sort_by(settings.time), {**options, "types": schema.types or None}


def in_process(matches: Any) -> pa.Table:
    """The matches of a batch in this process."""
    from nestream.runtime.spark.session import in_process

    if matches.isStreaming:
        raise TypeError(
            "the matches of a stream cannot be collected\n"
            "  hint: leave `to` out, and write the stream of matches somewhere"
        )
    return in_process(matches)


def explained_on_spark(df: Any, plan: Plan, compiled: CompiledQuery, format: str, **partitioning: Any) -> Any:
    """The plan, and how the events are split, read and filtered."""
    from nestream.runtime.spark.columns import session_zone
    from nestream.runtime.spark.explain import (
        BATCH_PLANNED,
        STREAM_PLANNED,
        explain_dataframe,
        explain_dataframe_text,
    )
    from nestream.runtime.spark.statistics import first_events

    if compiled.program.is_planned_by_statistics and not df.isStreaming:
        compiled = compiled.planned_for(first_events(df), compiled.schema)
    described = explain_dataframe(df, compiled, **partitioning)
    if compiled.program.is_planned_by_statistics:
        described["optimizer"] = STREAM_PLANNED if df.isStreaming else BATCH_PLANNED
    if any(isinstance(value, datetime) for part in expressions(plan) for value in constants(part)):
        described["zone"] = session_zone(df)
    if format == "json":
        return {**explain_json(plan), **compiled.program.explain_json(), "spark": described}
    return "\n".join([explain(plan), compiled.program.explain(), explain_dataframe_text(described)])


def planned_from(compiled: AnyCompiled, sample: Any, settings: Settings) -> AnyCompiled:
    """The compiled query, planned for a sample of events in this process, if there is one."""
    if sample is None:
        return compiled
    table = to_table(sample, settings.type, settings.time)
    planned: AnyCompiled = compiled.planned_for(table, settings.schema(table.schema))
    return planned


def counted_on_spark(df: Any, compiled: CompiledQuery) -> int:
    """Count the matches in a batch; only their times are sent to this process."""
    from nestream.runtime.spark.match import match_dataframe

    refuse_to_count(df)
    bare = replace(compiled, output=replace(compiled.output, columns=()), kinds={})
    total = int(match_dataframe(df, bare).count())
    return total if compiled.limit is None else min(total, compiled.limit)


def refuse_to_count(df: Any) -> None:
    """Raise for a streaming DataFrame."""
    if df.isStreaming:
        raise TypeError("the matches of a stream cannot be counted: write those of `match(df)` somewhere")


def zone_that_matters(plans: Callable[[Schema], Any], schema: Schema, df: Any) -> str:
    """The zone of the session, for the identity of a stream; empty if the plans do not depend on it."""
    from nestream.runtime.spark.columns import in_utc, session_zone

    utc = in_utc(schema)
    depends = utc != schema and plans(utc) != plans(schema)
    return f"\nZONE {session_zone(df)}" if depends else ""


def is_dataframe(events: Any) -> bool:
    """Whether the events are a Spark DataFrame or a mapping of types to DataFrames; does not import Spark."""
    if isinstance(events, Mapping) and events:
        return all(is_dataframe(part) for part in events.values())
    return type(events).__module__.startswith("pyspark.sql.")


def refuse_dataframe(events: Any) -> None:
    """Raise if events that are pushed in this process are a Spark DataFrame."""
    if is_dataframe(events):
        raise EventError(
            "a streaming DataFrame is matched on Spark: call `match(df)`\n"
            "  hint: `stream` takes events of this process, such as dictionaries or Arrow tables"
        )


def spark_problem(problem: BaseException) -> str:
    """Extract the reason from a Spark exception."""
    from nestream.runtime.spark.shipping import why

    return why(str(problem))


def spark_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> Any:
    """The running Spark session, or a quiet one on the master; an OSError says what is missing."""
    try:
        from nestream.runtime.spark.session import local_session
    except ModuleNotFoundError as missing:
        raise OSError(needs("Spark", missing.name or "pyspark", "spark")) from None
    return local_session(master, settings=settings)


def stream_files(
    compile: Callable[[Any, Schema, Settings], tuple[Any, str]], *args: Any, **options: Any
) -> Any:
    """Match the files of a folder, present and future, and write the matches to another folder."""
    from nestream.runtime.spark.stream_rules import FixedQueries

    def queries(settings: Settings, df: Any, *_: Any) -> FixedQueries:
        return FixedQueries(*compile(*dataframe_of(df, settings), settings))

    return _stream(queries, *args, **options)


def stream_rules(
    compiler_of: Callable[[Any, Any, Schema, Settings], Compiler], live: Any, *args: Any, **options: Any
) -> Any:
    """The same with rules that change while the stream runs."""
    from nestream.runtime.spark.stream_rules import ChangingRules

    def queries(settings: Settings, df: Any, *rest: Any) -> ChangingRules:
        events, schema = dataframe_of(df, settings)
        return ChangingRules(live, schema, lambda found: compiler_of(found, events, schema, settings), *rest)

    return _stream(queries, *args, **options)


def _stream(
    queries: Callable[..., Any],
    spark: Any,
    source: str,
    sink: str,
    *,
    time: str = "ts",
    type: str = "type",
    strategy: str = "auto",
    watermark: Any = "10 seconds",
    **options: Any,
) -> Any:
    from nestream.runtime.spark.stream_files import stream_files as stream

    settings = Settings.of({"time": time, "type": type, "strategy": strategy})
    settings.without_reference("does not run on Spark")
    if "trigger" in options:
        options["trigger"] = seconds_of(options["trigger"], "trigger")
    if options.get("future") is not None:
        options["future"] = timedelta(
            microseconds=microseconds_of(options["future"], "time ahead of the clock")
        )
    delay = microseconds_of(watermark)
    return stream(
        spark, partial(queries, settings), source, sink, time=time, type=type, watermark=delay, **options
    )


def microseconds_of(given: Any, what: str = "watermark") -> int:
    """A duration in microseconds for timestamps; it needs a unit."""
    length = length_of_time(given, what)
    if not isinstance(length, Duration):
        raise TypeError(f'the {what} is {length}, without a unit\n  hint: write "{length} seconds"')
    return length.microseconds


def spark_frame(session: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame of a session; times without a zone stay without one."""
    from nestream.runtime.spark.session import frame

    return frame(session, table)
