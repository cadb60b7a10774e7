"""nestream: nested complex event processing for Python on Spark."""

from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.functions import function
from nestream.model.memory import TooManyMatchesError
from nestream.model.schema import EventError, Schema
from nestream.model.unseen import UnseenTypeWarning
from nestream.queries import Queries, queries
from nestream.query import Query, StateError, matching, query

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
    "matching",
    "queries",
    "query",
]


def __dir__() -> list[str]:
    """The public names, so that completion shows no module of the implementation."""
    return [*__all__, "__version__"]
