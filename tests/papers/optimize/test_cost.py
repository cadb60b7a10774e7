"""The cost model: its numbers of rows are those of random events, and sharing costs what it should."""

import math

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream.model.time import Window, WindowKind
from nestream_papers.optimize.cost import Model, Objective
from nestream_papers.optimize.describe import shape_of
from nestream_papers.optimize.operators import Costing, Operator
from nestream_papers.optimize.rates import Rates
from nestream_papers.optimize.shape import Step
from nestream_papers.optimize.statistics import Statistics
from tests.papers.optimize.shapes import shape, shapes, steady

EVENTS = 20_000


def trades(seed: int = 1) -> pa.Table:
    """Events of five types, three time units apart on average."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(random.integers(1, 6, EVENTS)),
            "type": [("A", "B", "C", "D", "E")[n] for n in random.integers(0, 5, EVENTS)],
            "id": random.integers(0, 7, EVENTS),
        }
    )


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b)",
        "SEQ(A a, B b, C c)",
        "SEQ(A a, B b, C c, D d)",
        "SEQ(A a, B b, C c) WHERE [id]",
        "SEQ(A a, !D d, B b)",
        "SEQ(A a, !D d, B b, C c)",
    ],
)
@pytest.mark.parametrize("window", [30, 90])
def test_estimated_matches_are_near_those_found(query: str, window: int) -> None:
    table = trades()
    chosen = nestream.query(f"{query} WITHIN {window}")
    run = chosen.prepare(table)
    known = Statistics.of(table, run.schema, ["id"])
    estimated = Model(known).matches(shape_of(run.plan, run.plan.root, "E1"))
    assert estimated == pytest.approx(chosen.count(table), rel=0.4)


def test_without_a_window_there_are_as_many_rows_as_ordered_choices() -> None:
    known = steady({"A": 0.1, "B": 0.2, "C": 0.3}, 1_000)
    three = shape("A B C", window=10**9)
    assert Model(known).rows(three, 0, 3) == pytest.approx(100 * 200 * 300 / math.factorial(3))


def test_a_window_of_events_counts_events() -> None:
    known = Statistics(0.0, 1e9, {"A": 500.0, "B": 500.0})
    rates = Rates(known, Window(WindowKind.EVENTS, 20))
    assert rates.in_window(Step(("A",))) == pytest.approx(10)


def test_a_witness_and_its_alternatives_are_all_there_is() -> None:
    """`!C`, `(!B,C)` and `(B,C)` exclude each other, and one of them always holds."""
    model = Model(steady(dict.fromkeys("ABCD", 0.25)))
    ways = shapes("A !C D", "A (!B,C) D", "A (B,C) D")
    assert sum(model.passing(way, way.constraints) for way in ways) == pytest.approx(1)


def test_marking_builds_no_more_rows_than_the_expressions_alone_and_no_fewer_than_one() -> None:
    chosen = shapes("A !X B C", "A !Y B C", "A (!X,Y) B C")
    costing = Costing(chosen, Model(steady(dict.fromkeys("ABCXY", 0.2))))
    group = costing.group(frozenset((0, 1, 2)))
    assert group is not None
    assert group.operator is Operator.MARKING
    alone = [costing.group(frozenset((n,))) for n in range(3)]
    rows = [one.cost.rows for one in alone if one is not None]
    assert max(rows) < group.cost.rows < sum(rows)


def test_what_has_to_be_made_distinct_costs_time() -> None:
    known = Model(steady(dict.fromkeys("ABCX", 0.25)))
    single = Costing(shapes("A B C"), known).group(frozenset((0,)))
    alike = Costing(shapes("A B C", "A !X B C"), known).group(frozenset((0,)))
    assert single is not None
    assert alike is not None
    assert alike.cost.rows == single.cost.rows
    matches = known.matches(shape("A B C"))
    assert alike.cost.nanoseconds - single.cost.nanoseconds == pytest.approx(
        matches * known.constants.distinct
    )


@pytest.mark.parametrize("rare", ["A", "nothing"])
def test_a_suffix_is_not_shared_where_hardly_any_of_its_rows_is_part_of_a_match(rare: str) -> None:
    chosen = shapes("A B C D", "E B C D")
    frequent = dict.fromkeys("ABCDE", 0.2)
    costing = Costing(
        chosen,
        Model(
            steady({**frequent, "A": 0.0001, "E": 0.0001} if rare == "A" else frequent),
            objective=Objective.ROWS,
        ),
    )
    gain = costing.cost(frozenset((0,))) + costing.cost(frozenset((1,))) - costing.cost(frozenset((0, 1)))
    assert (gain < 0) == (rare == "A")
