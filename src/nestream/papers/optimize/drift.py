"""Tells how far the statistics of a stream have moved since they were last planned for."""

from __future__ import annotations

import math

from nestream.papers.optimize.statistics import Statistics

DRIFTED = 1.5
"""From this factor on, in any rate, domain or selectivity, a plan is looked at again."""
_FEW = 30.0
"""A type with so few events, or a predicate with so few tests, says nothing yet."""


def drift(old: Statistics, new: Statistics) -> float:
    """The greatest factor by which a rate, a domain size or a selectivity has changed, 1 for none."""
    factors = [1.0]
    for name in {*old.counts, *new.counts}:
        counts = old.counts.get(name, 0.0), new.counts.get(name, 0.0)
        if max(counts) >= _FEW:
            factors.append(_factor((counts[0] + 1.0) / _span(old), (counts[1] + 1.0) / _span(new)))
    for name in {*old.domains} & {*new.domains}:
        factors.append(_factor(old.domain(name) or 1.0, new.domain(name) or 1.0))
    for text in {*old.shares} & {*new.shares}:
        before, after = old.shares[text], new.shares[text]
        if min(before.tested, after.tested) >= _FEW:
            factors.append(_factor(before.ratio, after.ratio))
    return max(factors)


def drifted(old: Statistics, new: Statistics) -> bool:
    """Whether a plan for the old statistics should be looked at again."""
    return drift(old, new) >= DRIFTED


def _span(statistics: Statistics) -> float:
    return max(statistics.span, 1.0)


def _factor(one: float, other: float) -> float:
    return max(one, other) / min(one, other) if min(one, other) > 0.0 else math.inf
