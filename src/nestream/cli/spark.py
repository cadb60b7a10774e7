"""`nestream run --master`: finds the same matches on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nestream import EventError, Queries, Query
from nestream.cli.arguments import EventFormat
from nestream.cli.events import load_events
from nestream.cli.terminal import working
from nestream.cli.types import with_inferred_types
from nestream.query import spark_frame, spark_problem, spark_session
from nestream.source.formats import files_below, suffix_of

PARQUET = (".parquet", ".pq")
SETTINGS = {"spark.sql.session.timeZone": "UTC"}  # times are shown as in this process


@dataclass(frozen=True)
class SparkRun:
    """A query over events on Spark: the matches are computed on first use."""

    query: Query | Queries
    events: Any
    total: int
    """How many events there are."""
    malformed: int
    options: dict[str, Any]
    empty: pa.Table | None
    """No matches, with the columns that they have in this process."""

    def plan(self) -> str:
        """The plan, with Spark's part of it."""
        return str(self.query.explain(events=self.events, **self.options))

    def matches(self, limit: int | None) -> Iterator[pa.Table]:
        """The matches by `match_end`, then by the times of their events."""
        with spark_errors(), working("matching on Spark"):
            found = self.query.match(self.events, **self.options)
            time = self.options["time"]
            moments = [
                found[name][time]
                for name in found.columns
                if found.schema[name].dataType.typeName() == "struct"
            ]
            found = found.orderBy("match_end", "match_start", *moments)
            table = (found if limit is None else found.limit(limit)).toArrow()
        yield table if self.empty is None else table.cast(self.empty.schema)


def run_on_spark(
    query: Query | Queries,
    places: list[str],
    master: str,
    format: EventFormat | None,
    dead_letter: str | None,
    **options: Any,
) -> SparkRun:
    """Read the events for Spark: Parquet by Spark itself, other files by our readers with dead letters."""
    time, type = options["time"], options["type"]
    stored = format.stored if format else None
    if all(_is_parquet(place, stored) for place in places):
        if dead_letter is not None:
            raise EventError(
                "Spark reads Parquet without dead letters\n  hint: leave --dead-letter out, or --master"
            )
        with spark_errors(), working("starting Spark"):
            # by default, Spark takes the columns of one file for all
            events = spark_session(master, SETTINGS).read.option("mergeSchema", "true").parquet(*places)
            total = events.count()
            query = with_inferred_types(query, events, type)
        return SparkRun(query, events, total, 0, options, None)
    reader, table = load_events(places, time, type, format, dead_letter)
    options = {**options, "types": reader.types}
    query = with_inferred_types(query, table, type)
    empty = query.match(table.slice(0, 0), **options)
    with spark_errors(), working("starting Spark"):
        events = spark_frame(spark_session(master, SETTINGS), table)
    return SparkRun(query, events, table.num_rows, reader.malformed, options, empty)


def _is_parquet(place: str, format: str | None) -> bool:
    """Whether Spark reads a place itself: a Parquet file, a folder of them, or an address."""
    if format is not None or place == "-":
        return format == "parquet" and place != "-"
    if Path(place).is_dir():
        files = files_below(place)
        return bool(files) and all(suffix_of(str(file)) in PARQUET for file in files)
    return suffix_of(place) in PARQUET or "://" in place


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn a failure of Spark into one that the command line reports."""
    try:
        yield
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise EventError(f"Spark failed: {spark_problem(problem)}") from None
