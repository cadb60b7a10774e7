"""Finds the nested expressions of a block that views answer: the inner queries of the positive part.

The rest is the outer expression, which is matched first and yields the query-intervals. It must have an
event, so an expression of only nested ones borrows the events of the last of them.
"""

from __future__ import annotations

from nestream.physical.choices import OrAlternative
from nestream_papers.engine.program import Nested


def nested_parts(chosen: OrAlternative) -> tuple[Nested, ...]:
    """The nested expressions with more than one event, outermost first."""
    nested = [part for part in chosen.parts if len(part.leaves) > 1]
    if not nested or len(nested) < len(chosen.parts):
        return tuple(map(_nested, nested))
    *others, last = nested
    return (*map(_nested, others), *nested_parts(last))


def _nested(part: OrAlternative) -> Nested:
    return Nested(tuple(leaf.variable for leaf in part.leaves), nested_parts(part))
