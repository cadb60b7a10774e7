"""Sums of floats over stretches of an array, nearly exact: each is held as two floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from nestream.engine.kernels import kernel


@kernel
def stretch_sums(values: Any, begin: Any) -> Any:
    """The sum of each stretch `values[begin[i]:begin[i + 1]]`, rounded once at the end.

    Law: the error of every addition is itself a float (Knuth); it is added up beside the sum. So the result
    has a relative error of about 1e-16, unless the values cancel to less than 1e-16 of their size squared.
    """
    found = np.empty(len(begin) - 1, np.float64)
    for i in range(len(begin) - 1):
        total = 0.0
        error = 0.0
        plain = 0.0
        for place in range(begin[i], begin[i + 1]):
            value = values[place]
            added = total + value
            back = added - total
            error += (total - (added - back)) + (value - back)
            total = added
            plain += value
        result = total + error
        found[i] = result if np.isfinite(result) else plain
    return found
