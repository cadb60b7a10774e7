"""`nestream why`: explains what stops some events of a file from being a match."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from nestream.cli.arguments import (
    AnswerFormat,
    AnswerOption,
    DialectOption,
    InputFormatOption,
    OrderOption,
    QueryArgument,
    SetOption,
    TimeOption,
    TypeOption,
    query_text,
)
from nestream.cli.events import load_events, note_text
from nestream.cli.terminal import output, working
from nestream.cli.types import TypesOption, with_inferred_types, with_types
from nestream.query import Order


def why(
    query: QueryArgument,
    events: Annotated[
        str,
        typer.Argument(
            metavar="EVENTS", help="A CSV, JSON lines, Parquet or Avro file, or - for standard input."
        ),
    ],
    picked: Annotated[
        str,
        typer.Option(
            "--events",
            metavar="ROWS",
            help="Row numbers from 0, separated by commas, as in 12,40,77 or r=12,o=77.",
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="COLUMN", help="Read --events as values of this column, not as row numbers."
        ),
    ] = None,
    format: AnswerOption = AnswerFormat.TEXT,
    time: TimeOption = "ts",
    type: TypeOption = "type",
    order: OrderOption = Order.TIME,
    types: TypesOption = None,
    dialect: DialectOption = None,
    set: SetOption = None,
    input_format: InputFormatOption = None,
) -> None:
    """Explain why events are not a match: every condition, order, window or negation that prevents it.

    With fewer events than variables, explains why they are not part of a match.
    Exits with 0 if the events are a match or part of one, and with 1 if not.
    """
    if os.path.isdir(query):
        raise typer.BadParameter("it is a folder. Pass one query.", param_hint="QUERY")
    parsed = with_types(query_text(query).parse(dialect, set), types)
    wanted = _picked(picked, by)
    _, table = load_events([events], time, type, input_format, None)
    parsed = with_inferred_types(parsed, table, type)
    note_text(parsed.computed, table)
    with working("looking"):
        answer = parsed.why(table, wanted, by=by, time=time, type=type, order=order)
    if format is AnswerFormat.JSON:
        typer.echo(json.dumps(answer.json(), indent=2, ensure_ascii=False))
    else:
        for line in answer.text().split("\n"):
            output().print(_coloured(line), soft_wrap=True)
    if not answer.matched:
        raise typer.Exit(1)


def _picked(text: str, by: str | None) -> Sequence[Any] | Mapping[str, Any]:
    """The picked events as rows or values, with the variable of each if given."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise _wrong("it needs at least one event.")
    named = [item.partition("=") for item in items if "=" in item]
    if not named:
        return [_place(item, by) for item in items]
    if len(named) < len(items):
        raise _wrong("name a variable for every event, or for none.")
    found = {name.strip(): _place(value.strip(), by) for name, _, value in named}
    if len(found) < len(items):
        raise _wrong("it names a variable twice.")
    return found


def _place(item: str, by: str | None) -> Any:
    if by is not None:
        return item
    item = item.removeprefix("#")
    if not item.isdecimal():
        raise _wrong(f"{item!r} is not a row number. (Add --by COLUMN to use the values of a column.)")
    return int(item)


def _wrong(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--events")


def _coloured(line: str) -> Text:
    text = Text(line)
    if line.startswith(("no match", "a match", "part of a match")):
        text.stylize("bold red" if line.startswith("no") else "bold green")
    elif line.startswith("    | "):
        text.stylize("red" if line.strip(" |").strip("^") == "" else "dim")
    elif line.startswith("  ") and not line.startswith("    ") and ": " in line:
        text.stylize("bold", 2, line.index(":") + 1)
    return text
