"""nestream: nested complex event processing for Python on Spark."""

from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.functions import function
from nestream.model.schema import EventError, Schema
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
    "function",
    "matching",
    "queries",
    "query",
]
