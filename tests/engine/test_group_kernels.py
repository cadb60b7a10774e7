"""The kernels of aggregates, interpreted and compiled, and tables over ranges do what slow versions do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.kernels import ranges, sums
from nestream.engine.range_aggregates import ANSWERS, Asked, Table
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


@FORMS
@few
@given(st.lists(st.sampled_from([0.0, 1e-5, 0.1, 0.2, -0.3, 1.0, 1e100, -1e100, 1e300, -1e300])), st.data())
def test_the_sum_of_a_range_of_floats_does_not_depend_on_what_comes_before(
    form: str, values: list[float], data: st.DataObject
) -> None:
    table = Table(Vector(np.array(values, np.float64)), len(values))
    first = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(first, len(values)))
    places = np.array([first], np.int32), np.array([end], np.int32)
    (found,) = in_form(ranges.float_differences, form)(table.values, *table.floats, *places)
    (alone,) = sums.stretch_sums(np.array(values[first:end], np.float64), np.array([0, end - first]))
    assert math.isclose(found, alone, rel_tol=1e-9)


def deviation(values: list[int]) -> float:
    """The sample standard deviation."""
    count, total = len(values), sum(values)
    return math.sqrt((count * sum(value * value for value in values) - total * total) / (count * (count - 1)))


_functions: dict[str, Callable[[list[int]], Any]] = {
    "count": len,
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "stddev": lambda values: deviation(values) if len(values) > 1 else None,
    "different": lambda values: len(set(values)),
}


@pytest.mark.parametrize("lowest", [-9, -(2**63)])
@few
@given(
    st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=200),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=10),
)
def test_tables_answer_for_every_range(
    lowest: int, values: list[int | None], asked: list[tuple[int, int]]
) -> None:
    values = [lowest if value == -9 else value for value in [*values, 0]]
    table = Table(Vector.from_items(values), len(values))
    first, end = np.array([sorted((min(a, len(values)), min(b, len(values)))) for a, b in asked], np.int32).T
    ranges_asked = Asked(table, first, end)
    known = [[one for one in values[a:b] if one is not None] for a, b in zip(first, end, strict=True)]
    for function, slow in _functions.items():
        answer = ANSWERS[function](ranges_asked)
        if answer is None:  # too large for this way
            assert lowest != -9
            continue
        counts = function in ("count", "different")
        wanted = [slow(one) if one or counts else None for one in known]
        if function == "sum":
            wanted = [one if one is None or abs(one) < 2**63 or one == -(2**63) else None for one in wanted]
        assert answer.items(len(known)) == pytest.approx(wanted, rel=1e-12)


@FORMS
@few
@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=10),
)
def test_different_values_are_counted_in_every_range(
    form: str, values: list[int], asked: list[tuple[int, int]]
) -> None:
    numbers = np.array([value if value >= 0 else -2 for value in values])
    earlier = in_form(ranges.same_before, form)(numbers, 5)
    first, end = np.array([sorted((min(a, len(values)), min(b, len(values)))) for a, b in asked], np.int32).T
    order = np.argsort(end, kind="stable").astype(np.int32)
    found = in_form(ranges.different, form)(earlier, first, end, order)
    assert found.tolist() == [len(set(values[a:b]) - {-1}) for a, b in zip(first, end, strict=True)]


@pytest.mark.parametrize("text", ["SUM(b.x)", "AVG(b.x)", "STDDEV(b.x)", "COUNT(DISTINCT b.x)", "MAX(b.x)"])
def test_the_aggregates_of_a_large_group_are_those_of_the_reference(text: str) -> None:
    import nestream

    rows = [{"ts": 0, "type": "A", "x": 0}]
    rows += [{"ts": n, "type": "B", "x": 2**62 if n % 2 else -(2**62)} for n in range(1, 60)]
    rows += [{"ts": 60, "type": "C", "x": 0}]
    query = nestream.query(f"SEQ(A a, B+ b, C c) WITHIN 100 RETURN {text} AS v")
    assert query.match(rows).to_pylist() == query.match(rows, strategy="reference").to_pylist()


@pytest.mark.parametrize("text", ["SUM(b.x)", "AVG(b.x)"])
def test_a_group_of_small_floats_after_large_ones_is_summed_as_it_is_alone(text: str) -> None:
    import nestream

    rows = [
        {"ts": 100 * number + place, "type": kind, "x": x}
        for number, x in enumerate((1e300, 1e100, 1e-5))
        for place, kind in enumerate("ABC")
    ]
    query = nestream.query(f"SEQ(A a, B+ b, C c) WITHIN 10 RETURN {text} AS v")
    assert query.match(rows)["v"].to_pylist() == [1e300, 1e100, 1e-5]
