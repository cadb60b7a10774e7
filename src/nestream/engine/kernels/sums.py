"""Sums floats over stretches of an array almost exactly: each sum is held as two floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def compensated(values: Any, first: int, end: int) -> float:
    """The sum of `values[first:end]`, rounded once at the end.

    Law: the error of every addition is itself a float (Knuth); it is summed separately. So the result has a
    relative error of about 1e-16, unless the values cancel to less than 1e-16 of their size squared.
    """
    total = 0.0
    error = 0.0
    plain = 0.0
    for place in range(first, end):
        value = values[place]
        added = total + value
        back = added - total
        error += (total - (added - back)) + (value - back)
        total = added
        plain += value
    result = total + error
    return result if np.isfinite(result) else plain


@kernel
def stretch_sums(values: Any, begin: Any) -> Any:
    """The sum of each stretch `values[begin[i]:begin[i + 1]]`."""
    found = np.empty(len(begin) - 1, np.float64)
    for i in range(len(begin) - 1):
        found[i] = compensated(values, begin[i], begin[i + 1])
    return found
