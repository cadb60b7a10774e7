"""The part of the composer that leads to Spark: DataFrames typed for a query; nothing else imports Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nestream.compose.run import Run, known_order, known_strategy
from nestream.engine.program import Program, Switches
from nestream.logical.explain import explain, explain_json
from nestream.logical.nodes import Plan
from nestream.model.columns import resolution
from nestream.model.schema import Kind, Schema
from nestream.physical.explain import explain_program, explain_program_json

Typed = Callable[[Schema], tuple[Plan, dict[str, Kind]]]
"""What types a query for the events of a schema."""


@dataclass(frozen=True)
class SparkRun:
    """A plan typed for a DataFrame, and its program; the table of the run is empty."""

    df: Any
    run: Run
    program: Program

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
        options: Switches | None,
    ) -> SparkRun:
        """The events, a DataFrame or a mapping of them by type, as one DataFrame with the plan for it."""
        known_strategy(strategy)
        if strategy == "reference":
            raise ValueError("the reference evaluator does not run on Spark")
        df, schema = dataframe_of(events, time, type, types)
        plan, kinds = typed(schema)
        empty = pa.schema(list(schema.columns.items())).empty_table()
        run = Run(plan, empty, schema, kinds, resolution(schema), known_order(order), strategy)
        return cls(df, run, run.program(options))

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
            identity=identity,
            **settings,
        )

    def explained(self, format: str, **partitioning: Any) -> Any:
        """The plan, and how the events are split, read and filtered."""
        from nestream.runtime.spark.explain import explain_dataframe, explain_dataframe_text

        run = self.run
        described = explain_dataframe(
            self.df, run.plan.output, self.program, run.schema, run.unit, **partitioning
        )
        if format == "json":
            plans = {**explain_json(run.plan), "engine": explain_program_json(self.program)}
            return {**plans, "spark": described}
        parts = [explain(run.plan), explain_program(self.program), explain_dataframe_text(described)]
        return "\n".join(parts)


def dataframe_of(
    events: Any, time: str, type: str, types: Mapping[str, Iterable[str]] | None
) -> tuple[Any, Schema]:
    """The events, a DataFrame or a mapping of them by type, as one DataFrame with its schema."""
    from nestream.runtime.spark.match import spark_schema, union_by_type

    if isinstance(events, Mapping):
        types = types or {name: frame.columns for name, frame in events.items()}
        events = union_by_type(events, type)
    return events, Schema.of(spark_schema(events), time, type, types)


def is_dataframe(events: Any) -> bool:
    """Whether the events are a Spark DataFrame or a mapping of them by type; Spark is not imported for it."""
    if isinstance(events, Mapping) and events:
        return all(is_dataframe(part) for part in events.values())
    return type(events).__module__.startswith("pyspark.")


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

    return stream(spark, match, source, sink, time=time, **options)


def spark_frame(session: Any, table: pa.Table) -> Any:
    """An Arrow table as a DataFrame of a session; times without zone stay without."""
    from nestream.runtime.spark.session import frame

    return frame(session, table)
