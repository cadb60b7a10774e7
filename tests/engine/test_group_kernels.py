"""The kernels of aggregates, interpreted and compiled, and tables over ranges do what slow versions do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.kernels import ranges, sums
from nestream.engine.range_aggregates import Table
from nestream.model.vector import Vector
from tests.engine.test_kernels import FORMS, in_form

few = settings(max_examples=60, deadline=None)
floats = st.floats(-1e15, 1e15)


def is_near(found: float, values: list[float]) -> bool:
    """Whether a sum has a relative error of at most 1e-9, but for the rounding of much larger values."""
    exact = math.fsum(values)
    return math.isclose(found, exact, rel_tol=1e-9, abs_tol=1e-20 * sum(map(abs, values)))


@FORMS
@few
@given(st.lists(st.lists(floats, max_size=8), min_size=1, max_size=5))
def test_stretches_are_summed_to_the_last_digits(form: str, stretches: list[list[float]]) -> None:
    values = np.array([value for stretch in stretches for value in stretch], np.float64)
    begin = np.cumsum([0, *map(len, stretches)])
    found = in_form(sums.stretch_sums, form)(values, begin)
    assert all(is_near(total, stretch) for total, stretch in zip(found, stretches, strict=True))


@FORMS
@few
@given(st.lists(floats, max_size=30), st.data())
def test_differences_of_prefix_sums_keep_small_values_beside_large_ones(
    form: str, values: list[float], data: st.DataObject
) -> None:
    total, error = in_form(ranges.prefix_sums, form)(np.array(values, np.float64))
    first = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(first, len(values)))
    found = (total[end] - total[first]) + (error[end] - error[first])
    exact = math.fsum(values[first:end])
    assert math.isclose(found, exact, rel_tol=1e-9, abs_tol=1e-25 * sum(map(abs, values)))


@few
@given(
    st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=200),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=10),
)
def test_tables_answer_for_every_range(values: list[int | None], asked: list[tuple[int, int]]) -> None:
    table = Table(Vector.from_items([*values, 0]), len(values) + 1)
    limit = len(values) + 1
    first, end = np.array([sorted((min(a, limit), min(b, limit))) for a, b in asked], np.int64).T
    known = [[one for one in [*values, 0][a:b] if one is not None] for a, b in zip(first, end, strict=True)]
    some = np.array([bool(one) for one in known])
    for sign, best in ((1, min), (-1, max)):
        found: Any = table.extremes(sign, first, end)
        assert found[some].tolist() == [best(one) for one in known if one]
    assert (table.counts[end] - table.counts[first]).tolist() == list(map(len, known))
    totals, fits = table.sums(first, end)
    assert fits.all()
    assert totals.tolist() == list(map(sum, known))


@pytest.mark.parametrize("text", ["SUM(b.x)", "AVG(b.x)"])
def test_the_aggregates_of_a_large_group_are_those_of_the_reference(text: str) -> None:
    import nestream

    rows = [{"ts": 0, "type": "A", "x": 0}]
    rows += [{"ts": n, "type": "B", "x": 2**62 if n % 2 else -(2**62)} for n in range(1, 60)]
    rows += [{"ts": 60, "type": "C", "x": 0}]
    query = nestream.query(f"SEQ(A a, B+ b, C c) WITHIN 100 RETURN {text} AS v")
    assert query.match(rows).to_pylist() == query.match(rows, strategy="reference").to_pylist()
