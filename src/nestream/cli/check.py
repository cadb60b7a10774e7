"""`nestream check` and `nestream explain`: what is wrong with a query, and what it will do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer
from rich.text import Text

from nestream import Diagnostic, Query, QueryError
from nestream.cli.arguments import (
    AnalyzeOption,
    AnswerFormat,
    AnswerOption,
    Dialect,
    DialectOption,
    EventsOption,
    InputFormatOption,
    QueryArgument,
    QueryText,
    StrategyOption,
    TimeOption,
    TypeOption,
    VerboseOption,
    query_text,
)
from nestream.cli.console import count, output, show_diagnostics
from nestream.cli.events import load_events, schema_of


def check(
    query: QueryArgument,
    events: EventsOption = None,
    format: AnswerOption = AnswerFormat.TEXT,
    dialect: DialectOption = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    input_format: InputFormatOption = None,
) -> None:
    """Tell whether a query is accepted, and if not, why, where, and what to write instead.

    Exits with 0 if it is (warnings do not matter) and with 1 if it is not.
    """
    source = query_text(query)
    schema = schema_of(events, time, type, input_format) if events is not None else None
    parsed: Query | None = None
    diagnostics: Sequence[Diagnostic]
    try:
        parsed = source.parse(dialect)
        if schema is not None:
            parsed.typed(schema)
        accepted, diagnostics = True, parsed.warnings
    except QueryError as error:
        accepted, diagnostics = False, error.diagnostics
    known = parsed.dialect.value if parsed else dialect.value if dialect else None
    if format is AnswerFormat.JSON:
        _print_json(
            {"ok": accepted, "dialect": known, "diagnostics": QueryError(diagnostics, source.text).as_dicts()}
        )
    else:
        _show(accepted, known, diagnostics, source)
    if not accepted:
        raise typer.Exit(1)


def explain(
    query: QueryArgument,
    events: EventsOption = None,
    format: AnswerOption = AnswerFormat.TEXT,
    dialect: DialectOption = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    input_format: InputFormatOption = None,
    verbose: VerboseOption = False,
    strategy: StrategyOption = "auto",
    analyze: AnalyzeOption = None,
) -> None:
    """Show the plan of a query: its operators, and where each predicate is evaluated."""
    try:
        parsed = query_text(query).parse(dialect)
        if events is not None:
            parsed.typed(schema_of(events, time, type, input_format))
    except QueryError as error:
        if format is not AnswerFormat.JSON:
            raise
        _print_json({"ok": False, "diagnostics": error.as_dicts()})
        raise typer.Exit(1) from None
    settings = {}
    if analyze is not None:
        _, found = load_events(analyze, time, type, input_format, None)
        settings = {"analyze": found, "time": time, "type": type}
    plan = parsed.explain(format=format.value, verbose=verbose, strategy=strategy, **settings)
    if format is AnswerFormat.JSON:
        _print_json(plan)
    else:
        typer.echo(plan)


def _show(accepted: bool, dialect: str | None, diagnostics: Sequence[Diagnostic], source: QueryText) -> None:
    console = output()
    show_diagnostics(console, diagnostics, source.text)
    if diagnostics:
        console.print()
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    warnings = len(diagnostics) - errors
    verdict = [
        f"accepted as {_SPELLING[dialect]}" if accepted and dialect else f"rejected: {count(errors, 'error')}"
    ]
    if warnings:
        verdict.append(count(warnings, "warning"))
    console.print(Text(", ".join(verdict), "bold green" if accepted else "bold red"), soft_wrap=True)


_SPELLING = {Dialect.NEEL.value: "NEEL", Dialect.NEEL_PLUS.value: "NEEL+", Dialect.SASE.value: "SASE"}


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
