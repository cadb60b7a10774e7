"""Shared middles: rows of steps that several blocks have somewhere, extended to both sides in each of them.

They are kept between batches as those of a prefix are. A block comes to them from its last events, takes the
rows that end before what it has, and goes on from their first events to the left.
"""

from __future__ import annotations

from nestream.papers.sharing.prefix import PrefixRun


class MiddleRun(PrefixRun):
    """Blocks with the same steps in a row, wherever they are in each."""
