"""What a query means, transcribed from docs/reference/semantics.md: slow, obvious, the reference of tests."""

from nestream.model.schema import Order
from nestream.reference.events import Event, history
from nestream.reference.matching import Binding, Interval, Limit, Match, Meaning, Part, evaluate
from nestream.reference.table import match_reference
from nestream.reference.values import Members, holds, value

__all__ = [
    "Binding",
    "Event",
    "Interval",
    "Limit",
    "Match",
    "Meaning",
    "Members",
    "Order",
    "Part",
    "evaluate",
    "history",
    "holds",
    "match_reference",
    "value",
]
