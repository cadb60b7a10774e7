"""The part of the composer that leads to Spark: DataFrames typed for a query; nothing else imports Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from nestream.compose.run import Run, known_order
from nestream.engine.program import Program
from nestream.logical.explain import explain, explain_json
from nestream.logical.nodes import Plan, expressions
from nestream.model.columns import resolution
from nestream.model.expression import constants
from nestream.model.lengths import length_of_time, seconds_of
from nestream.model.plain import empty_table
from nestream.model.schema import EventError, Kind, Schema
from nestream.model.time import Duration, DurationError
from nestream.strategies import Options, known_strategy

Typed = Callable[[Schema], tuple[Plan, dict[str, Kind]]]
"""What types a query for the events of a schema."""


@dataclass(frozen=True)
class SparkRun:
    """A plan typed for a DataFrame, and its program; the table of the run is empty."""

    df: Any
    run: Run
    program: Program
    zone: str = ""
    """What a checkpoint must agree with beside the query: the zone of the session, where it has a meaning."""

    @classmethod
    def of(
        cls,
        typed: Typed,
        events: Any,
        time: str,
        type: str,
        types: Mapping[str, Iterable[str]] | None,
        order: str,
        strategy: str,
        options: Options | None,
    ) -> SparkRun:
        """The events, a DataFrame or a mapping of them by type, as one DataFrame with the plan for it."""
        known_strategy(strategy)
        if strategy == "reference":
            raise ValueError("the reference evaluator does not run on Spark")
        df, schema = dataframe_of(events, time, type, types)
        plan, kinds = typed(schema)
        empty = empty_table(pa.schema(list(schema.columns.items())))
        run = Run(plan, empty, schema, kinds, resolution(schema), known_order(order), strategy)
        return cls(df, run, run.program(options), zone_that_matters([typed], schema, df))

    def matches(self, identity: str, **settings: Any) -> Any:
        """The matches as a DataFrame, batch or streaming."""
        from nestream.runtime.spark.match import match_dataframe

        run = self.run
        return match_dataframe(
            self.df,
            run.plan.output,
            self.program,
            run.schema,
            run.kinds,
            run.unit,
            identity=identity + self.zone,
            **settings,
        )

    def explained(self, format: str, **partitioning: Any) -> Any:
        """The plan, and how the events are split, read and filtered."""
        from nestream.runtime.spark.columns import session_zone
        from nestream.runtime.spark.explain import explain_dataframe, explain_dataframe_text

        run = self.run
        described = explain_dataframe(
            self.df, run.plan.output, self.program, run.schema, run.unit, **partitioning
        )
        if any(isinstance(value, datetime) for part in expressions(run.plan) for value in constants(part)):
            described["zone"] = session_zone(self.df)
        if format == "json":
            return {**explain_json(run.plan), **self.program.explain_json(), "spark": described}
        parts = [explain(run.plan), self.program.explain(), explain_dataframe_text(described)]
        return "\n".join(parts)

    def count(self, limit: int | None) -> int:
        """How many matches there are in a batch; they cross with nothing but their times."""
        from nestream.runtime.spark.match import match_dataframe

        if self.df.isStreaming:
            raise TypeError("a stream has no number of matches: write the matches of `match(df)` somewhere")
        run = self.run
        bare = replace(run.plan.output, columns=())
        found = match_dataframe(self.df, bare, self.program, run.schema, {}, run.unit)
        total = int(found.count())
        return total if limit is None else min(total, limit)


def dataframe_of(
    events: Any, time: str, type: str, types: Mapping[str, Iterable[str]] | None
) -> tuple[Any, Schema]:
    """The events, a DataFrame or a mapping of them by type, as one DataFrame with its schema."""
    from nestream.runtime.spark.match import spark_schema, union_by_type

    if not is_dataframe(events):
        found = events.__class__.__name__
        raise TypeError(f"on Spark the events are a DataFrame or a mapping of them by type, not a {found}")
    if isinstance(events, Mapping):
        types = types or {name: frame.columns for name, frame in events.items()}
        events = union_by_type(events, type)
    return events, Schema.of(spark_schema(events, time, type), time, type, types)


def collected(events: Any, options: Mapping[str, Any]) -> tuple[pa.Table, dict[str, Any]]:
    """The events of a batch in this process, by time and in the zone of the session, with `why`'s options."""
    from nestream.runtime.spark.session import in_process

    if options.get("by") is None:
        raise EventError(
            "the rows of a Spark DataFrame have no numbers\n"
            '  hint: pick the events by a column with a value for each: why(df, [17, 21], by="id")'
        )
    time, type = options.get("time", "ts"), options.get("type", "type")
    df, schema = dataframe_of(events, time, type, options.get("types"))
    if df.isStreaming:
        raise EventError(
            "why cannot read a stream\n"
            "  hint: read the events as a batch, with spark.read instead of readStream"
        )
    return in_process(df).sort_by(time), {**options, "types": schema.types or None}


def zone_that_matters(queries: Iterable[Typed], schema: Schema, df: Any) -> str:
    """The zone of the session for the identity of a stream; nothing where no query depends on it."""
    from nestream.runtime.spark.columns import in_utc, session_zone

    utc = in_utc(schema)
    depends = utc != schema and any(typed(utc)[0] != typed(schema)[0] for typed in queries)
    return f"\nZONE {session_zone(df)}" if depends else ""


def is_dataframe(events: Any) -> bool:
    """Whether the events are a Spark DataFrame or a mapping of them by type; Spark is not imported for it."""
    if isinstance(events, Mapping) and events:
        return all(is_dataframe(part) for part in events.values())
    return type(events).__module__.startswith("pyspark.sql.")


def refuse_dataframe(events: Any) -> None:
    """Raise where events that are pushed in this process are a DataFrame of Spark."""
    if is_dataframe(events):
        raise EventError(
            "a streaming DataFrame is matched on Spark: call `match(df)`\n"
            "  hint: `stream` takes events of this process, such as dictionaries or Arrow tables"
        )


def spark_problem(problem: BaseException) -> str:
    """What is wrong, out of all that an exception of Spark says."""
    from nestream.runtime.spark.shipping import why

    return why(str(problem))


def spark_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> Any:
    """The running Spark session, or a quiet one on the master; an OSError says what is missing for it."""
    try:
        from nestream.runtime.spark.session import local_session
    except ModuleNotFoundError as missing:
        raise OSError(
            f"Spark needs the package {missing.name}, which is not installed\n"
            "  hint: run ./scripts/setup, or pip install '.[spark]' in the checkout"
        ) from None
    return local_session(master, settings=settings)


def stream_files(
    on_spark: Callable[..., Any],
    spark: Any,
    source: str,
    sink: str,
    *,
    time: str,
    type: str,
    **options: Any,
) -> Any:
    """Match the files of a folder, those there and those to come, into files of another."""
    from nestream.runtime.spark.stream_files import stream_files as stream

    def match(events: Any) -> Any:
        return on_spark(events, time=time, type=type)

    if "trigger" in options:
        options["trigger"] = seconds_of(options["trigger"], "trigger")
    if "watermark" in options:
        options["watermark"] = in_words_of_spark(options["watermark"])
    return stream(spark, match, source, sink, time=time, type=type, **options)


def in_words_of_spark(duration: Any) -> str:
    """A duration as Spark reads it; a text that is none of the language is left to Spark."""
    if isinstance(duration, str):
        try:
            length: int | Duration = Duration.read(duration)
        except DurationError:
            return duration
    else:
        length = length_of_time(duration, "watermark")
    if not isinstance(length, Duration):
        raise TypeError(f'the watermark is {duration}, without a unit\n  hint: write "{duration} seconds"')
    seconds, rest = divmod(length.microseconds, 10**6)
    return f"{length.microseconds} microseconds" if rest else f"{seconds} seconds"


def spark_frame(session: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame of a session; times without zone stay without."""
    from nestream.runtime.spark.session import frame

    return frame(session, table)
