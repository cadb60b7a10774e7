"""nestream: nested complex event processing for Python on Spark.

Public names are loaded on first use, so that the import itself takes no time.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nestream.model.diagnostics import Diagnostic, QueryError
    from nestream.model.functions import function
    from nestream.model.memory import TooManyMatchesError
    from nestream.model.schema import EventError, Schema
    from nestream.model.unseen import UnseenTypeWarning
    from nestream.objects.build import all_of, any_of, event, exists, not_, pattern, seq
    from nestream.objects.expressions import Expr
    from nestream.objects.functions import fn
    from nestream.objects.patterns import Event, Pattern
    from nestream.objects.terms import col, equal, expr, lit, param, same, when
    from nestream.queries import Queries, queries
    from nestream.query import Query, StateError, matching, query
    from nestream.watched import job

__version__ = "0.2.0"

__all__ = [
    "Diagnostic",
    "Event",
    "EventError",
    "Expr",
    "Pattern",
    "Queries",
    "Query",
    "QueryError",
    "Schema",
    "StateError",
    "TooManyMatchesError",
    "UnseenTypeWarning",
    "all_of",
    "any_of",
    "col",
    "equal",
    "event",
    "exists",
    "expr",
    "fn",
    "function",
    "job",
    "lit",
    "matching",
    "not_",
    "param",
    "pattern",
    "queries",
    "query",
    "same",
    "seq",
    "when",
]

_MODULES = {
    "Diagnostic": "model.diagnostics",
    "Event": "objects.patterns",
    "EventError": "model.schema",
    "Expr": "objects.expressions",
    "Pattern": "objects.patterns",
    "Queries": "queries",
    "Query": "query",
    "QueryError": "model.diagnostics",
    "Schema": "model.schema",
    "StateError": "runtime.state",
    "TooManyMatchesError": "model.memory",
    "UnseenTypeWarning": "model.unseen",
    "all_of": "objects.build",
    "any_of": "objects.build",
    "col": "objects.terms",
    "equal": "objects.terms",
    "event": "objects.build",
    "exists": "objects.build",
    "expr": "objects.terms",
    "fn": "objects.functions",
    "function": "model.functions",
    "job": "watched",
    "lit": "objects.terms",
    "matching": "query",
    "not_": "objects.build",
    "param": "objects.terms",
    "pattern": "objects.build",
    "queries": "queries",
    "query": "query",
    "same": "objects.terms",
    "seq": "objects.build",
    "when": "objects.terms",
}
"""The module of each public name."""


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext nestream` calls in a notebook: adds the magic `%%neel`."""
    from nestream.magic import register

    register(shell)


class _Package(ModuleType):
    """The package; its public names win over modules of the same name: `query` is the function."""

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"nestream.{_MODULES[name]}"), name)
        super().__setattr__(name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore imported modules with the name of a public name, which Python would set as attributes."""
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """The public names only, so that completion shows no internal modules."""
        return [*__all__, "__version__"]


sys.modules[__name__].__class__ = _Package
