"""`nestream fmt`: formats queries in the one canonical layout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from nestream import QueryError
from nestream.cli.arguments import DialectOption, QueryText, query_text
from nestream.cli.terminal import messages, note, show_diagnostics, show_error
from nestream.editor.formatting import layout, loses_comments
from nestream.query import Dialect


def fmt(
    queries: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="Files with one query each, or the text of queries."),
    ],
    write: Annotated[bool, typer.Option("--write", help="Format the files in place.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a file is not formatted.")
    ] = False,
    dialect: DialectOption = None,
) -> None:
    """Format queries: print them, or rewrite their files.

    Comments before the query are kept. A file with comments inside the query is not changed, because they
    would be lost.
    """
    if write and check:
        raise typer.BadParameter("use --write or --check, not both.", param_hint="--check")
    sources = [query_text(query) for query in queries]
    if write and any(source.path is None for source in sources):
        raise typer.BadParameter("--write takes files, but this is the text of a query.", param_hint="QUERY")
    results = [_one(source, write, check, dialect) for source in sources]
    if not all(results):
        raise typer.Exit(1)


def _one(source: QueryText, write: bool, check: bool, dialect: Dialect | None) -> bool:
    """Format one query; return whether it is fine."""
    name = str(source.path or "the query")
    try:
        wanted = layout(source.text, dialect)
    except QueryError as error:
        if source.path is not None:
            note(f"{name}:")
        show_diagnostics(messages(), error.diagnostics, error.text)
        return False
    changed = source.text != wanted if source.path else source.text.strip() != wanted.strip()
    lost = loses_comments(source.text)
    if check:
        if lost:
            note(f"{name} has comments inside the query, so its format is not checked")
        elif changed:
            note(f"{name} is not formatted")
        return lost or not changed
    if write and lost:
        show_error(f"{name} has comments inside the query, which would be lost, so it was not changed")
        return False
    if write and source.path is not None:
        if changed:
            _rewrite(source.path, wanted)
            note(f"{name} formatted")
        return True
    if lost:
        note("comments inside the query were dropped")
    typer.echo(wanted, nl=False)
    return True


def _rewrite(path: Path, text: str) -> None:
    """Write through a second file, so that the query is never half written."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.chmod(path.stat().st_mode)
        os.replace(beside, path.resolve())
    except OSError:
        beside.unlink(missing_ok=True)
        raise
