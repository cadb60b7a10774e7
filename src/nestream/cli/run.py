"""`nestream run`: finds the matches of a query in files of events."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from nestream import Queries, Query
from nestream.cli.arguments import (
    DialectOption,
    FileFormat,
    InputFormatOption,
    OrderOption,
    QueriesArgument,
    SetOption,
    StrategyOption,
    TimeOption,
    TypeOption,
    WithoutOption,
    output_format,
    queries_of,
)
from nestream.cli.events import load_events, note_text, note_unseen, open_events, read_all
from nestream.cli.failures import fail_if_all_malformed
from nestream.cli.run_large import LargeRun
from nestream.cli.spark import run_on_spark
from nestream.cli.table import matches_table, with_numbers
from nestream.cli.terminal import count, is_terminal, note, output, showing_matches, working
from nestream.cli.types import TypesOption, with_inferred_types, with_types
from nestream.query import Order
from nestream.sink import write_matches

FIRST_MATCHES = 20
COUNTED_AS_FOUND = 1_000_000
"""Up to this number, matches are counted as they are found."""


class MatchFormat(StrEnum):
    """How matches are written. json is one object per line; jsonl is the same."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def run(
    query: QueriesArgument,
    events: Annotated[
        list[str],
        typer.Argument(
            metavar="EVENTS...",
            help="CSV, JSON lines, Parquet or Avro files, also compressed, folders or patterns of them, "
            "TYPE=FILE for a file with events of one type, or - for standard input.",
        ),
    ],
    time: TimeOption = "ts",
    type: TypeOption = "type",
    order: OrderOption = Order.TIME,
    strategy: StrategyOption = "auto",
    without: WithoutOption = None,
    destination: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FILE", help="Write the matches to this file, or - for standard output."
        ),
    ] = None,
    format: Annotated[
        MatchFormat | None,
        typer.Option("--format", help="Output format; by default a table on a terminal, and json elsewhere."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=0, help=f"Emit only the first matches; a table shows {FIRST_MATCHES} by default."
        ),
    ] = None,
    dead_letter: Annotated[
        str | None,
        typer.Option("--dead-letter", metavar="FILE", help="Save malformed rows here, with line and reason."),
    ] = None,
    types: TypesOption = None,
    dialect: DialectOption = None,
    set: SetOption = None,
    input_format: InputFormatOption = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="MASTER",
            help="Run on Spark: local[*] for embedded Spark, or a URL such as spark://host:7077.",
        ),
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(
            "--each",
            metavar="DIR",
            help="Write one Parquet file for each query of a folder into this folder.",
        ),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="Treat the events as complete up to this time; matches still pending then are not emitted.",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Also print the plan and a summary to standard error.")
    ] = False,
) -> None:
    """Find the matches of a query, or of a folder of queries in one pass, in files of events.

    Prints a table on a terminal, and one JSON object per line in a pipe.
    Matches are ordered by query, then by match_end, then by the positions of their events.

    Exits with 0, with 1 for a query or events that cannot be read, with 2 for wrong arguments, and with 3 if
    every row is malformed.
    """
    begin = clock.perf_counter()
    chosen = _format(destination, format, events)
    parsed = _complete_up_to(with_types(queries_of(query, dialect, set), types), as_of)
    options = dict.fromkeys(without or (), False)
    how: dict[str, Any] = {"time": time, "type": type, "order": order, "strategy": strategy}
    how["options"] = options
    if each is not None:
        if master is not None or destination is not None:
            raise typer.BadParameter("it cannot be combined with --master or --output.", param_hint="--each")
        reader, table = load_events(events, time, type, input_format, dead_letter)
        parsed = with_inferred_types(parsed, table, type)
        how["types"] = reader.types
        note_text(parsed.computed, table)
        note_unseen(parsed.unseen(table, type))
        total = _write_each(parsed, table, Path(each), **how)
        note(_summary(table.num_rows, total, total, reader.malformed, clock.perf_counter() - begin))
        fail_if_all_malformed(table.num_rows, reader.malformed)
        return
    large = None
    if master is None:
        reader = open_events(events, time, type, input_format, dead_letter)
        large = None if chosen is None else LargeRun.of(parsed, reader, **how)
    if large is not None:
        number, malformed, where = 0, reader.malformed, ""
        explained = parsed.explain(strategy=strategy, options=options) if plan else ""
        found = large.matches()
    elif master is None:
        table = read_all(reader)
        parsed = with_inferred_types(parsed, table, type)
        number, malformed, where = table.num_rows, reader.malformed, ""
        how["types"] = reader.types
        note_text(parsed.computed, table)
        note_unseen(parsed.unseen(table, type))
        explained = parsed.explain(strategy=strategy, options=options) if plan else ""
        numbered = chosen is None and len(events) == 1  # as `nestream why` counts them
        found = parsed.batches(with_numbers(table) if numbered else table, **how)
    else:
        if strategy == "reference":
            raise typer.BadParameter(
                "the reference evaluator does not run on Spark.", param_hint="--strategy"
            )
        job = run_on_spark(parsed, events, master, input_format, dead_letter, **how)
        number, malformed, where = job.total, job.malformed, f" on Spark {master}"
        explained = job.plan() if plan else ""
        found = job.matches(limit if chosen is not None else None)
    if plan:
        note(f"{explained}\n")
    if chosen is None:
        shown, total = _show(found, limit, time, type)
        if total > COUNTED_AS_FOUND and master is None:  # counting need not build the matches
            counted = parsed.count(table, **how)
            total = sum(counted.values()) if isinstance(counted, dict) else counted
    else:
        shown = total = write_matches(_first(found, limit), destination or "-", chosen.stored)
    if large is not None:
        number = reader.rows
        note_unseen(large.unseen())
    if plan or chosen is None or is_terminal(error=True):
        seconds = clock.perf_counter() - begin
        note(_summary(number, total, shown, malformed, seconds) + where)
    fail_if_all_malformed(number, malformed)


def _complete_up_to(parsed: Query | Queries, as_of: str | None) -> Query | Queries:
    """The query over events that are complete up to a time."""
    if as_of is None:
        return parsed
    try:
        return parsed.as_of(int(as_of) if as_of.lstrip("-").isdigit() else as_of)
    except ValueError as problem:
        said = str(problem).replace("\n  hint:", ";")
        raise typer.BadParameter(f"{said}.", param_hint="--as-of") from None


def _write_each(parsed: Query | Queries, table: pa.Table, folder: Path, **options: Any) -> int:
    """Write the matches of each query of a set to a file of its name; return how many there are."""
    if not isinstance(parsed, Queries):
        raise typer.BadParameter("it needs a folder of queries, but QUERY is one query.", param_hint="--each")
    folder.mkdir(parents=True, exist_ok=True)
    with working("matching"):
        found = parsed.match_each(table, **options)
    return sum(
        write_matches(matches, str(folder / f"{name}.parquet"), "parquet") for name, matches in found.items()
    )


def _show(found: Iterator[pa.Table], limit: int | None, time: str, type: str) -> tuple[int, int]:
    """Show the first matches as a table; return how many are shown, and how many there are at least."""
    most = FIRST_MATCHES if limit is None else limit
    first: list[pa.Table] = []
    total = held = 0
    with working("matching"):
        for matches in found:
            if held < most or not first:
                first.append(matches.slice(0, most - held))
                held += first[-1].num_rows
            total += matches.num_rows
            if total > COUNTED_AS_FOUND:
                break
    if held:
        output().print(matches_table(pa.concat_tables(first), time, type))
    return held, total


def _first(found: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The matches up to a limit; the search stops there."""
    left = limit
    for matches in found:
        yield matches if left is None else matches.slice(0, left)
        left = None if left is None else left - matches.num_rows
        if left is not None and left <= 0:
            return


def _format(destination: str | None, wanted: MatchFormat | None, events: list[str]) -> FileFormat | None:
    """The format to write; None for a table."""
    to_screen = destination in (None, "-") and is_terminal()
    if wanted is MatchFormat.TABLE or (wanted is None and destination is None and to_screen):
        if destination not in (None, "-"):
            raise typer.BadParameter(
                "a table cannot be written to a file; use json, csv or parquet.", param_hint="--format"
            )
        return None
    if wanted is MatchFormat.PARQUET and to_screen:
        raise typer.BadParameter(
            "parquet cannot be printed to a terminal; add --output FILE.", param_hint="--format"
        )
    if destination not in (None, "-") and any(_same(str(destination), place) for place in events):
        raise typer.BadParameter("this file holds the events.", param_hint="--output")
    return output_format(destination or "-", FileFormat(wanted.value) if wanted else None, "--output")


def _same(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _summary(events: int, matches: int, shown: int, malformed: int, seconds: float) -> str:
    parts = [
        count(events, "event"),
        showing_matches(shown, matches),
        count(malformed, "dead letter"),
        f"{seconds:.2f} seconds",
    ]
    return ", ".join(parts)
