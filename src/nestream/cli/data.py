"""`nestream data`: generates example data of any size, or lists the data sets."""

from __future__ import annotations

import json
import os
import time as clock
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text

from nestream.cli.arguments import FileFormat, output_format
from nestream.cli.terminal import count, is_terminal, measured, note, output, working
from nestream.data import GENERATORS, Generator
from nestream.data.registry import did_you_mean
from nestream.sink import write_matches

_OWN_OPTIONS = ("events", "seed")
_BATCH_ROWS = 65_536


def data(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A data set; leave it out to list them."),
    ] = None,
    events: Annotated[int, typer.Option("--events", min=0, help="Number of events.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same events.")] = 0,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write to a .csv, .jsonl or .parquet file, or - for standard output.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an option of the data set; repeat for more."),
    ] = None,
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Format; by default from the file's suffix."),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the data sets.")] = False,
) -> None:
    """Generate example data, or list the data sets.

    NAME without --out describes a data set: its columns, event types and options.
    """
    if listing or name is None:
        if out is not None:
            raise typer.BadParameter(f"name a data set: {', '.join(GENERATORS)}.", param_hint="NAME")
        _list(list(GENERATORS.values()), format)
        return
    if name not in GENERATORS:
        raise typer.BadParameter(
            f"there is no data set {name!r}{did_you_mean(name, GENERATORS)}. "
            f"The data sets are {', '.join(GENERATORS)}.",
            param_hint="NAME",
        )
    generator = GENERATORS[name]
    options = dict(_option(generator, setting) for setting in settings or [])
    if out is None:
        _describe(generator, format)
        return
    chosen = output_format(out, format, "--out")
    if chosen is FileFormat.PARQUET and out == "-" and is_terminal():
        raise typer.BadParameter(
            "parquet cannot be printed to a terminal; write to a file.", param_hint="--format"
        )
    begin = clock.perf_counter()
    try:
        with working("generating"):
            table = generator(events=events, seed=seed, **options)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--set") from None
    write_matches(_written(table), out, chosen.stored, schema=table.schema)
    if is_terminal(error=True) and out != "-":
        seconds = clock.perf_counter() - begin
        size = os.path.getsize(out)
        note(f"{count(table.num_rows, 'event')} in {out}, {size:,} bytes, {seconds:.2f} seconds")


def _written(table: pa.Table) -> Iterator[pa.RecordBatch]:
    with measured("writing") as progress:
        rows = 0
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            yield batch
            rows += batch.num_rows
            if progress is not None:
                progress(rows, rows, table.num_rows)


def _option(generator: Generator, setting: str) -> tuple[str, Any]:
    """`key=value` as a parameter of the generator."""
    key, equals, text = setting.partition("=")
    known = list(_options(generator))
    if not equals:
        raise _wrong_setting(f"{setting!r} is not KEY=VALUE.")
    if key in _OWN_OPTIONS:
        raise _wrong_setting(f"write --{key} {text} instead.")
    if key not in known:
        raise _wrong_setting(
            f"{generator.name} has no option {key!r}{did_you_mean(key, known)}. "
            f"Its options are {', '.join(known)}."
        )
    default = generator.defaults[key]
    try:
        if isinstance(default, (tuple, list)):
            kind = type(default[0]) if default else str
            return key, tuple(kind(part.strip()) for part in text.split(",") if part.strip())
        return key, type(default)(text)
    except ValueError:
        raise _wrong_setting(f"{key} takes {_kind(default)} like {_shown(default)}, not {text!r}.") from None


def _wrong_setting(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--set")


def _kind(default: Any) -> str:
    if isinstance(default, (tuple, list)):
        return "values separated by commas"
    return {int: "an integer", float: "a number"}.get(type(default), "a text")


def _shown(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, (tuple, list)) else str(default)


def _list(generators: list[Generator], format: FileFormat | None) -> None:
    if format in (FileFormat.JSON, FileFormat.JSONL):
        for generator in generators:
            typer.echo(json.dumps(_as_dict(generator), ensure_ascii=False))
        return
    _columns({generator.name: generator.description for generator in generators})


def _describe(generator: Generator, format: FileFormat | None) -> None:
    if format is not None:
        _list([generator], format)
        return
    types: dict[str, list[str]] = {}
    for name, attributes in generator.types.items():
        types.setdefault(", ".join(attributes), []).append(name)
    parts: dict[str, Mapping[str, str]] = {
        "columns": generator.columns,
        "types": {", ".join(names): attributes for attributes, names in types.items()},
        "options": {name: _shown(value) for name, value in _options(generator).items()},
    }
    output().print(Text(f"{generator.name}: {generator.description}", "bold"), soft_wrap=True)
    for heading, entries in parts.items():
        output().print(Text(f"\n{heading}", "bold"))
        _columns(entries, indent="  ")


def _columns(entries: Mapping[str, str], indent: str = "") -> None:
    """One line per entry; a long name has its second column on the next line."""
    width = max((len(name) for name in entries if len(name) < 30), default=0)
    for name, meaning in entries.items():
        line = Text(indent)
        line.append(name, "cyan")
        line.append(" " * (width - len(name)) + "  " + meaning)
        output().print(line, soft_wrap=True)


def _options(generator: Generator) -> dict[str, Any]:
    return {name: default for name, default in generator.defaults.items() if name not in _OWN_OPTIONS}


def _as_dict(generator: Generator) -> dict[str, Any]:
    return {
        "name": generator.name,
        "description": generator.description,
        "columns": dict(generator.columns),
        "types": {name: list(attributes) for name, attributes in generator.types.items()},
        "options": _options(generator),
    }
