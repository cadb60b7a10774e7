"""Negation without an index: every negative event is checked for every sequence.

With the index, which is the engine's stacks, the events of a negation are found by their key and by the ends
of its interval. Without, all held events are checked by time and key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.program import Edge
from nestream_papers.engine.context import Bindings
from nestream_papers.engine.stack import Stack

if TYPE_CHECKING:
    from nestream_papers.engine.join import Join


def is_scanned(join: Join) -> bool:
    """Whether the events of a join are those of a negation without an index."""
    return join.negation is not None and not join.evaluation.program.options.negation_index


def all_events(join: Join, name: str, bindings: Bindings) -> tuple[Stack, Ints, Ints]:
    """The range of a leaf for each partial match: everything."""
    stack = join.evaluation.stack(join.block.leaves[name], None)
    return stack, np.zeros(bindings.count, np.int64), np.full(bindings.count, len(stack))


def in_interval(join: Join, name: str, bindings: Bindings) -> Bindings:
    """The partial matches whose event of a variable lies in its interval and has the required values."""
    assert join.negation is not None
    store, rows = join.evaluation.store, bindings.rows
    kept = np.ones(bindings.count, bool)
    for x, y in join.order:
        if name in (x, y) and x in rows and y in rows:
            kept &= store.pos[rows[x]] < store.low[rows[y]]
    bindings = bindings.only(kept)
    interval, root = join.negation.interval, join.root
    if interval.after is Edge.WINDOW_START:
        since = store.reach(join.evaluation.last(bindings, root))
        bindings = bindings.only(store.pos[bindings.rows[name]] >= since)
    if interval.before is Edge.WINDOW_END:
        first = store.pos[join.evaluation.first(bindings, root)]
        bindings = bindings.only(store.reach(bindings.rows[name]) <= first)
    elif interval.before is Edge.MATCH_END:
        last = store.pos[join.evaluation.last(bindings, root)]
        bindings = bindings.only(store.low[bindings.rows[name]] <= last)
    for equality in join.equalities:
        terms = (equality.left[0], equality.right[0])
        if name in terms and all(term in bindings.rows for term in terms):
            bindings = join.equal_terms(bindings, equality)
    return bindings
