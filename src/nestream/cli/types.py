"""The attributes of event types: from `--types`, or inferred from the events with a warning."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, cast

import typer

from nestream import Queries, Query
from nestream.cli.terminal import note

Q = TypeVar("Q", bound=Query | Queries)
TypesOption = Annotated[
    str | None,
    typer.Option(
        "--types",
        metavar="TYPES",
        help="For SASE: the attributes of the types, such as 'Shelf(id, shelf) Counter(id)'.",
    ),
]


def with_types(parsed: Q, types: str | None) -> Q:
    """The query with the types from the command line."""
    if types is None:
        return parsed
    try:
        return cast(Q, parsed.with_types(types))
    except ValueError as problem:
        raise typer.BadParameter(f"{problem}.", param_hint="--types") from None


def warn_of_undeclared(parsed: Query | Queries) -> None:
    """Warn if the types of a stream would matter: they cannot be inferred from future events."""
    members = parsed.members.values() if isinstance(parsed, Queries) else [parsed]
    for name in dict.fromkeys(name for member in members for name in member.undeclared):
        note(f"warning: every type is assumed to have the attribute `{name}`; declare others with --types")


def with_inferred_types(parsed: Q, events: Any, type: str) -> Q:
    """The query with types inferred from the events, unless they are declared; warns of each guess."""
    found, told = parsed.infer_types(events, type)
    for guess in told:
        note(f"warning: {guess.message}\n  hint: {guess.hint}, or with --types")
    return cast(Q, found)
