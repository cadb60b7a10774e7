"""The notebook magic `%%neel`, loaded by `%load_ext nestream`: a cell with a query, run on a variable.

It needs IPython, which every notebook has.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

import nestream
from nestream.model.diagnostics import render
from nestream.model.results import FORMS
from nestream.query import UnreadableError, own_parameters, read_value

_ROWS = 20
"""How many matches of a Spark DataFrame are shown."""


class CellError(Exception):
    """A mistake in a cell, shown as its message alone: where nestream looked for it helps nobody."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@magics_class
class NeelMagics(Magics):
    """The magics of nestream."""

    @magic_arguments()
    @argument("events", nargs="?", help="A variable of the notebook with the events, or the path of a file.")
    @argument("-o", "--out", metavar="NAME", help="Assign the matches to this variable.")
    @argument("--to", choices=FORMS, help="The form of the matches; an Arrow table by default.")
    @argument("--time", default="ts", help="Column with the time of an event.")
    @argument("--type", default="type", help="Column with the type of an event.")
    @argument("--order", choices=("time", "arrival"), default="time", help="What orders the events.")
    @argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="The value of $NAME; by default that of the variable NAME.",
    )
    @argument("-q", "--quiet", action="store_true", help="Show nothing.")
    @cell_magic
    def neel(self, line: str, cell: str) -> Any:
        """Run the query in the cell on events, and show its matches.

        Without events the query is checked and shown with its plan.
        """
        asked = parse_argstring(self.neel, line)
        _check_name(asked.out)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return self._answer(asked, cell)
        except nestream.QueryError as problem:
            raise CellError(str(problem)) from None
        except (nestream.EventError, nestream.TooManyMatchesError, OSError) as problem:
            raise CellError(f"error: {problem}") from None

    def _answer(self, asked: Any, text: str) -> Any:
        query = nestream.query(text, parameters=self._parameters(asked.set, text))
        for warning in query.warnings:
            print(render(warning, text), file=sys.stderr)
        if asked.events is None:
            return self._done(asked, query, query)
        events = self._events(asked.events)
        options = {"time": asked.time, "type": asked.type, "order": asked.order}
        if hasattr(events, "sparkSession"):
            found = query.match(events, to=asked.to, **options)
            shown = found if asked.to or asked.quiet else found.limit(_ROWS).toPandas()
            return self._done(asked, found, shown)
        if asked.quiet or asked.to:
            found = query.match(events, to=asked.to, **options)
            return self._done(asked, found, found)
        shown = query.show(events, **options)
        return self._done(asked, shown.table, shown)

    def _done(self, asked: Any, found: Any, shown: Any) -> Any:
        if asked.out:
            self._shell.push({asked.out: found})
        return None if asked.quiet else shown

    def _events(self, named: str) -> Any:
        """The variable of that name, and otherwise the path."""
        known = self._shell.user_ns
        if named in known:
            return known[named]
        if named.isidentifier():
            raise CellError(
                f"error: the notebook has no variable `{named}`\n"
                "  hint: run the cell that defines it, or write the path of a file, such as `events.parquet`"
            )
        return named.strip("'\"")

    def _parameters(self, given: list[str], text: str) -> Mapping[str, Any]:
        """The values of `$name`: those that are given, and otherwise variables of the notebook."""
        values: dict[str, Any] = {}
        for assignment in given:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise CellError(f"error: --set takes NAME=VALUE, not {assignment!r}")
            try:
                values[name.removeprefix("$")] = read_value(value)
            except UnreadableError as problem:
                raise CellError(f"error: --set {assignment}: {problem.message}") from None
        known = {name: value for name, value in self._shell.user_ns.items() if not name.startswith("_")}
        return {**own_parameters(text, None, known), **values}

    @property
    def _shell(self) -> InteractiveShell:
        assert self.shell is not None, "magics are registered with a shell"
        return self.shell


def _check_name(name: str | None) -> None:
    if name is not None and not name.isidentifier():
        raise UsageError(f"-o takes the name of a variable, not {name!r}")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def register(shell: InteractiveShell) -> None:
    """Add the magics to a notebook."""
    shell.register_magics(NeelMagics)
