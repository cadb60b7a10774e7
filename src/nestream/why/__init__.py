"""Explains why events are or are not a match: what stops them, and what the negations of a match found."""

from nestream.why.answer import Alternative, Why
from nestream.why.evidence import Evidence
from nestream.why.explain import explain_why
from nestream.why.obstacle import Obstacle

__all__ = ["Alternative", "Evidence", "Obstacle", "Why", "explain_why"]
