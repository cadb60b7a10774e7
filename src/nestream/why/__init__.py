"""Why some events are not a match of a query: the predicate, order, window or negation that stops them."""

from nestream.why.answer import Alternative, Why
from nestream.why.explain import explain_why
from nestream.why.obstacles import Obstacle

__all__ = ["Alternative", "Obstacle", "Why", "explain_why"]
