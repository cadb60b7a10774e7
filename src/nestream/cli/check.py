"""`nestream check` and `nestream explain`: what is wrong with a query, and what it will do."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

import nestream
from nestream import Diagnostic, Query, QueryError
from nestream.cli.arguments import (
    AnalyzeOption,
    AnswerFormat,
    AnswerOption,
    DialectOption,
    EventsOption,
    InputFormatOption,
    PlanDialectOption,
    QueriesArgument,
    QueryText,
    SetOption,
    StrategyOption,
    TimeOption,
    TypeOption,
    VerboseOption,
    WithoutOption,
    files_of,
    queries_of,
    query_text,
)
from nestream.cli.terminal import count, output, show_diagnostics
from nestream.model.lazy import lazy
from nestream.model.unseen import unseen_types
from nestream.query import Dialect

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.text import Text

    from nestream.cli.events import columns_of, load_events, note_unseen
else:  # loaded when there are events, or something to print in colour
    columns_of, load_events, note_unseen = lazy(
        "nestream.cli.events", "columns_of", "load_events", "note_unseen"
    )
    (Text,) = lazy("rich.text", "Text")


def check(
    query: QueriesArgument,
    events: EventsOption = None,
    format: AnswerOption = AnswerFormat.TEXT,
    dialect: DialectOption = None,
    set: SetOption = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    input_format: InputFormatOption = None,
) -> None:
    """Check a query and report every mistake: what is wrong, where, and what to write.

    Exits with 0 if the query is accepted, with or without warnings, and with 1 if it is rejected.
    """
    columns = None
    if events is not None:
        columns = Columns(*columns_of([events], time, type, input_format), time, type)
    if not os.path.isdir(query):
        source = query_text(query)
        answer = _checked(source, columns, dialect, set)
        if format is AnswerFormat.JSON:
            _print_json(answer.as_dict(source.text))
        else:
            _show(answer, source)
        if not answer.accepted:
            raise typer.Exit(1)
        return
    sources = {path.stem: query_text(str(path)) for path in files_of(query)}
    answers = _checked_together(sources, columns, dialect, set)
    if format is AnswerFormat.JSON:
        _print_json({name: answer.as_dict(sources[name].text) for name, answer in answers.items()})
    else:
        for name, answer in answers.items():
            output().print(Text(name, "bold"))
            _show(answer, sources[name])
    if not all(answer.accepted for answer in answers.values()):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Answer:
    """Whether a query is accepted, in which dialect, and its diagnostics."""

    accepted: bool
    dialect: Dialect | None
    diagnostics: Sequence[Diagnostic]
    notes: Sequence[str] = ()

    def as_dict(self, text: str) -> dict[str, Any]:
        """The answer for programs."""
        said = QueryError(self.diagnostics, text).as_dicts()
        answer = {"ok": self.accepted, "dialect": self.dialect, "diagnostics": said}
        return {**answer, "notes": list(self.notes)} if self.notes else answer


@dataclass(frozen=True)
class Columns:
    """The columns of a file of events."""

    schema: pa.Schema
    types: pa.ChunkedArray
    time: str
    type: str


def _checked(
    source: QueryText,
    columns: Columns | None,
    dialect: Dialect | None,
    given: list[str] | None,
    *,
    of_several: bool = False,
) -> _Answer:
    parsed: Query | None = None
    notes: list[str] = []
    try:
        parsed = source.parse(dialect, given, of_several=of_several)
        if columns is not None:
            parsed.check(columns.schema, columns.time, columns.type)
            notes = unseen_types(parsed.event_types, columns.types)
    except QueryError as error:
        return _Answer(False, parsed.dialect if parsed else dialect, error.diagnostics)
    return _Answer(True, parsed.dialect, parsed.warnings, notes)


def _checked_together(
    sources: Mapping[str, QueryText],
    columns: Columns | None,
    dialect: Dialect | None,
    given: list[str] | None,
) -> dict[str, _Answer]:
    """The answers for a folder of queries, which may read the events that others make with INTO."""
    answers = {
        name: _checked(source, None, dialect, given, of_several=True) for name, source in sources.items()
    }
    parsed = {
        name: source.parse(dialect, given, of_several=True)
        for name, source in sources.items()
        if answers[name].accepted
    }
    if not parsed:
        return answers
    try:
        chosen = nestream.queries(parsed)
        if columns is not None:
            chosen.check(columns.schema, columns.time, columns.type)
            for name, one in parsed.items():
                expected = [kind for kind in one.event_types if kind in chosen.expected_types]
                notes = unseen_types(expected, columns.types) if expected else []
                answers[name] = replace(answers[name], notes=notes)
    except QueryError as error:
        for name, own in getattr(error, "errors", {}).items():
            answers[name] = replace(answers[name], accepted=False, diagnostics=own.diagnostics)
    return answers


def explain(
    query: QueriesArgument,
    events: EventsOption = None,
    format: AnswerOption = AnswerFormat.TEXT,
    dialect: PlanDialectOption = None,
    set: SetOption = None,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    input_format: InputFormatOption = None,
    verbose: VerboseOption = False,
    strategy: StrategyOption = "auto",
    analyze: AnalyzeOption = None,
    without: WithoutOption = None,
) -> None:
    """Show the plan of a query: its operators, its conditions, and how the engine runs them."""
    as_sase = dialect is Dialect.SASE
    try:
        parsed = queries_of(query, None if as_sase else dialect, set)
        if events is not None:
            columns, _ = columns_of([events], time, type, input_format)
            for member in (parsed,) if isinstance(parsed, Query) else parsed.members.values():
                member.check(columns, time, type)
    except QueryError as error:
        if format is not AnswerFormat.JSON:
            raise
        _print_json({"ok": False, "diagnostics": error.as_dicts()})
        raise typer.Exit(1) from None
    settings: dict[str, Any] = {}
    if as_sase:
        if verbose or analyze is not None or strategy != "auto":
            raise typer.BadParameter(
                "it cannot be combined with --verbose, --analyze or --strategy.", param_hint="--dialect sase"
            )
        settings = {"dialect": "sase"}
    if analyze is not None:
        _, found = load_events([analyze], time, type, input_format, None)
        settings = {"analyze": found, "time": time, "type": type}
    if without:
        settings["options"] = dict.fromkeys(without, False)
    plan = parsed.explain(format=format.value, verbose=verbose, strategy=strategy, **settings)
    if format is AnswerFormat.JSON:
        _print_json(plan)
    else:
        typer.echo(plan)


def _show(answer: _Answer, source: QueryText) -> None:
    console = output()
    if answer.notes:
        note_unseen(answer.notes)
    accepted, dialect, diagnostics = answer.accepted, answer.dialect, answer.diagnostics
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


_SPELLING = {Dialect.NEEL: "NEEL", Dialect.NEEL_PLUS: "NEEL+", Dialect.SASE: "SASE"}


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
