"""The arguments that commands share: a query as a file or as text, a dialect, formats and columns."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import nestream
from nestream.model.formats import SUFFIXES, WRITTEN_SUFFIXES
from nestream.model.lengths import seconds_of
from nestream.model.wording import reason
from nestream.query import (
    ALIASES,
    STRATEGIES,
    Dialect,
    Order,
    UnreadableError,
    own_parameters,
    read_value,
    switches,
)

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


class AnswerFormat(StrEnum):
    """How an answer is printed: for people or for programs."""

    TEXT = "text"
    JSON = "json"


class _Format(StrEnum):
    @property
    def stored(self) -> str:
        """The name of the format in the readers and writers: json is one object per line."""
        return "jsonl" if self.value == "json" else self.value


class FileFormat(_Format):
    """The format of a written file. json is one object per line; jsonl is the same."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


class EventFormat(_Format):
    """The format of a file that is read. json is one object per line; jsonl is the same."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"
    AVRO = "avro"


QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="A file, or the text of a query.")]
QueriesArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file, the text of a query, or a folder of .neel files.")
]
RulesArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUERY",
        help="A file, the text of a query, or rules: a folder of .neel files or kafka://HOST:PORT/TOPIC.",
    ),
]
DialectOption = Annotated[
    Dialect | None,
    typer.Option("--dialect", help="Accept only this dialect; detected by default."),
]
PlanDialectOption = Annotated[
    Dialect | None,
    typer.Option("--dialect", help="Accept only this dialect; sase shows any query as SASE's operators."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="The value of $NAME in the query: 100, text, '5 minutes', '(1, 2)'; repeat for more.",
    ),
]
AnswerOption = Annotated[AnswerFormat, typer.Option("--format", help="Output for people or for programs.")]
EventsOption = Annotated[
    str | None,
    typer.Option(
        "--events", metavar="FILE", help="Also check names and types against the columns of this file."
    ),
]
TimeOption = Annotated[
    str, typer.Option("--time", metavar="COLUMN", help="Column with the time of an event.")
]
TypeOption = Annotated[
    str, typer.Option("--type", metavar="COLUMN", help="Column with the type of an event.")
]
OrderOption = Annotated[
    Order, typer.Option("--order", help="arrival: order events with equal times by arrival.")
]
InputFormatOption = Annotated[
    EventFormat | None,
    typer.Option("--input-format", help="Format of the events; by default from the file's suffix."),
]
AnalyzeOption = Annotated[
    str | None,
    typer.Option(
        "--analyze",
        metavar="EVENTS",
        help="Run the query on these events, and show matches and times beside the estimates.",
    ),
]


def _known_strategy(value: str) -> str:
    if value not in STRATEGIES and value not in ALIASES:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(STRATEGIES)}.")
    return value


StrategyOption = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        callback=_known_strategy,
        help=f"How to find the matches; all find the same: {', '.join(STRATEGIES)}.",
    ),
]


def _known_switches(values: list[str] | None) -> list[str] | None:
    known = switches() if values else ()
    for name in values or ():
        if known and name not in known:  # without nestream-papers, the query reports that it is missing
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}.")
    return values


WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME",
        callback=_known_switches,
        help="Switch off a technique of the engine; repeat for more.",
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", help="Also show costs, and how the plan is rewritten, rule by rule."),
]


@dataclass(frozen=True)
class QueryText:
    """The text of a query, and its file if it has one."""

    text: str
    path: Path | None = None

    def parse(
        self, dialect: Dialect | None, given: list[str] | None = None, *, of_several: bool = False
    ) -> nestream.Query:
        """The query, with the values of `--set`; raises QueryError.

        With `of_several`, values that it does not name are for other queries.
        """
        values = values_of(given)
        if of_several:
            values = own_parameters(self.text, dialect, values)
        return nestream.query(self.text, dialect, parameters=values)


def values_of(given: list[str] | None) -> dict[str, Any]:
    """The values of `--set`, by parameter name."""
    found: dict[str, Any] = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        name = name.strip().removeprefix("$")
        if not equals or not name:
            raise typer.BadParameter(
                f"{each!r} has no name or no value. Write --set floor=100.", param_hint="--set"
            )
        if name in found:
            raise typer.BadParameter(f"{name!r} is set twice.", param_hint="--set")
        try:
            found[name] = read_value(value)
        except UnreadableError as wrong:
            raise typer.BadParameter(f"{name}: {wrong.message}.", param_hint="--set") from None
    return found


def query_text(argument: str) -> QueryText:
    """The query of an argument: an existing path is a file; anything with a space or parentheses is text."""
    if not os.path.exists(argument):
        if re.search(r"[\s()]", argument):
            return QueryText(_checked(argument))
        raise _wrong_query(
            f"there is no file {argument!r}. (The text of a query has a space or parentheses.)"
            if argument
            else "it is empty. Pass a file or the text of a query."
        )
    if Path(argument).suffix.lower() in SUFFIXES:
        raise _wrong_query(f"{argument!r} is a file of events. The query comes first, then the events.")
    try:
        return QueryText(Path(argument).read_text(encoding="utf-8-sig"), Path(argument))
    except UnicodeDecodeError:
        raise _wrong_query(f"the file {argument!r} is not UTF-8 text.") from None
    except OSError as error:
        raise _wrong_query(f"cannot read {argument!r}: {reason(error)}.") from None


def queries_of(
    argument: str, dialect: Dialect | None, given: list[str] | None = None
) -> nestream.Query | nestream.Queries:
    """The query, or the query set if QUERY is a folder of `.neel` files."""
    if not os.path.isdir(argument):
        return query_text(argument).parse(dialect, given)
    try:
        return nestream.queries(argument, dialect, parameters=values_of(given))
    except UnicodeDecodeError:
        raise _wrong_query(f"a file in {argument!r} is not UTF-8 text.") from None
    except OSError as error:
        raise _wrong_query(f"{error}.") from None


def files_of(folder: str) -> list[Path]:
    """The files of a set of queries."""
    found = sorted(Path(folder).glob("*.neel"))
    if not found:
        raise _wrong_query(f"there is no .neel file in {folder!r}.")
    return found


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _wrong_query("the text is not UTF-8.") from None
    return text


def _wrong_query(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="QUERY")


def seconds(text: str) -> float:
    """The seconds of an option: a number, or a duration of the language."""
    try:
        return seconds_of(float(text) if _NUMBER.fullmatch(text) else text, "time")
    except (TypeError, ValueError) as wrong:
        problem = str(wrong).removeprefix("the time: ").replace("\n  hint:", ";")
        raise typer.BadParameter(f"{problem}.") from None


def output_format(path: str, wanted: FileFormat | None, option: str) -> FileFormat:
    """The format to write, checked together with the place before the work begins."""
    if path != "-" and not Path(path).absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(Path(path).parent)!r}.", param_hint=option)
    if path != "-" and Path(path).is_dir():
        raise typer.BadParameter(f"{path!r} is a folder.", param_hint=option)
    if wanted is not None:
        return wanted
    if path == "-":
        return FileFormat.JSON
    suffix = Path(path).suffix.lower()
    if suffix not in WRITTEN_SUFFIXES:
        raise typer.BadParameter(
            f"{path!r} has no known suffix. Use {', '.join(WRITTEN_SUFFIXES)}, or add --format.",
            param_hint=option,
        )
    return FileFormat(WRITTEN_SUFFIXES[suffix])
