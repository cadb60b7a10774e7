"""Shared middles: rows of steps that several blocks have somewhere, extended to both sides in each of them.

They are kept between batches like those of a prefix. A block reaches them from its last events, takes the
rows that end before what it has, and continues from their first events to the left.
"""

from __future__ import annotations

from nestream_papers.sharing.prefix import PrefixRun


class MiddleRun(PrefixRun):
    """Blocks with the same consecutive steps, wherever they are in each."""
