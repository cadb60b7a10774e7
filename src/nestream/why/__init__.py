"""Why events are or are not a match of a query: what stops them, and what the negations of a match saw."""

from nestream.why.answer import Alternative, Why
from nestream.why.evidence import Evidence
from nestream.why.explain import explain_why
from nestream.why.obstacle import Obstacle

__all__ = ["Alternative", "Evidence", "Obstacle", "Why", "explain_why"]
