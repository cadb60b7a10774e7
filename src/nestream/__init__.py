"""nestream: nested complex event processing for Python on Spark.

The public names are loaded when they are first used, so that the import itself takes no time.
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
    from nestream.queries import Queries, queries
    from nestream.query import Query, StateError, matching, query
    from nestream.watched import job

__version__ = "0.1.0"

__all__ = [
    "Diagnostic",
    "EventError",
    "Queries",
    "Query",
    "QueryError",
    "Schema",
    "StateError",
    "TooManyMatchesError",
    "UnseenTypeWarning",
    "function",
    "job",
    "matching",
    "queries",
    "query",
]

_MODULES = {
    "Diagnostic": "model.diagnostics",
    "EventError": "model.schema",
    "Queries": "queries",
    "Query": "query",
    "QueryError": "model.diagnostics",
    "Schema": "model.schema",
    "StateError": "runtime.state",
    "TooManyMatchesError": "model.memory",
    "UnseenTypeWarning": "model.unseen",
    "function": "model.functions",
    "job": "watched",
    "matching": "query",
    "queries": "queries",
    "query": "query",
}
"""Where each public name is."""


class _Package(ModuleType):
    """The package, whose public names win over modules of the same name: `query` is the function."""

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"nestream.{_MODULES[name]}"), name)
        super().__setattr__(name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Importing a module sets it as an attribute of its package: not where that is a public name."""
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """The public names, so that completion shows no module of the implementation."""
        return [*__all__, "__version__"]


sys.modules[__name__].__class__ = _Package
