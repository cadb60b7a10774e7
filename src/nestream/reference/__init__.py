"""The meaning of a query, transcribed from docs/semantics.md: slow, obvious, and the truth of every test."""

from nestream.reference.events import Event, Order, history
from nestream.reference.matching import Match, evaluate
from nestream.reference.table import match_reference
from nestream.reference.values import value

__all__ = ["Event", "Match", "Order", "evaluate", "history", "match_reference", "value"]
