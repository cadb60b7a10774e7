"""The Plan-Finder: its partitions are partitions, and its plans are as cheap as the cheapest there are."""

from random import Random

import pytest

from nestream_papers.optimize.cost import Model, Objective
from nestream_papers.optimize.operators import Costing, Operator
from nestream_papers.optimize.partition import Partition, PartitionError, neighbours, splits
from nestream_papers.optimize.plan_finder import Finder, Search, SharedPlan, find_plan
from nestream_papers.optimize.statistics import Statistics
from tests.papers.optimize.exhaustive import bell, best_partition, partitions
from tests.papers.optimize.shapes import MIXED, random_set, shape, shapes, steady

TICKERS = ("DELL", "MSFT", "ORCL", "INTC", "IPIX", "RIMM", "AMAT", "YHOO", "CSCO", "QQQ")


def grouped(plan: SharedPlan) -> list[tuple[tuple[int, ...], Operator]]:
    return [(group.members, group.operator) for group in plan.groups]


@pytest.mark.parametrize("events", [0, 10_000, 1_000_000])
def test_the_mixed_workload_has_the_three_groups_of_the_paper(events: int) -> None:
    known = steady(dict.fromkeys(TICKERS, 0.1), events) if events else Statistics()
    plan = find_plan(shapes(*MIXED), Model(known, objective=Objective.ROWS))
    assert grouped(plan) == [
        ((0, 1, 2), Operator.MARKING),
        ((3, 4), Operator.SUFFIX),
        ((5, 6), Operator.MARKING),
    ]
    assert plan.groups[1].length == 4
    assert plan.cost.rows < plan.alone.rows


@pytest.mark.parametrize("events", [0, 10_000, 1_000_000])
def test_no_plan_is_estimated_to_take_longer_than_each_expression_alone(events: int) -> None:
    """Even a search that has no effort to spend does not share what costs more than it saves."""
    known = steady(dict.fromkeys(TICKERS, 0.1), events) if events else Statistics()
    for chosen in (shapes(*MIXED), *(random_set(Random(seed), 6) for seed in range(30))):
        for search in (Search(), Search(effort=0.0)):
            plan = find_plan(chosen, Model(known), search)
            assert plan.cost.nanoseconds <= plan.alone.nanoseconds


@pytest.mark.parametrize(("objective", "better"), [(Objective.ROWS, 10), (Objective.TIME, 0)])
def test_the_search_is_as_good_as_looking_at_all_partitions_of_up_to_seven(
    objective: Objective, better: int
) -> None:
    worst, improved = 1.0, 0
    for seed in range(60):
        random = Random(seed)
        known = steady({kind: random.choice((0.02, 0.1, 0.3)) for kind in "ABCDEFXYZ"}, 10 ** (seed % 3 + 3))
        model = Model(known, objective=objective)
        costing = Costing(random_set(random, random.randint(3, 7)), model)
        _, least = best_partition(costing)
        plan = Finder(costing, Search(seed=seed)).run()
        assert model.weight(plan.cost) >= least * (1 - 1e-9)
        worst = max(worst, model.weight(plan.cost) / least)
        improved += model.weight(plan.cost) < model.weight(plan.start) * 0.999
    assert worst <= 1.001
    assert improved >= better, "the start is rarely the end, or there is nothing to test"


def test_the_same_seed_finds_the_same_plan() -> None:
    chosen = random_set(Random(4), 12)
    plans = [find_plan(chosen, search=Search(seed=3, seconds=60)) for _ in range(2)]
    assert plans[0] == plans[1]


def test_the_search_stops_at_its_limits() -> None:
    chosen = random_set(Random(4), 30)
    assert find_plan(chosen, search=Search(iterations=5)).stopped == "iterations"
    assert find_plan(chosen, search=Search(seconds=0)).stopped == "time"
    assert find_plan(chosen[:6], search=Search(seconds=60)).stopped == "plateau"


def test_a_limit_of_time_still_gives_a_plan_of_all_expressions() -> None:
    plan = find_plan(random_set(Random(1), 200), search=Search(seconds=0.01))
    assert sorted(member for group in plan.groups for member in group.members) == list(range(200))


@pytest.mark.parametrize(
    ("texts", "operator", "length"),
    [
        (("A B !X C", "A B !Y C"), Operator.MARKING, 3),
        (("A B C D", "A B C E"), Operator.PREFIX, 3),
        (("A B C", "A B C E"), Operator.PREFIX, 3),
        (("A B C D", "E B C D"), Operator.SUFFIX, 3),
        (("A !X B C D", "E B C D"), Operator.SUFFIX, 3),
        (("A B C D", "E B C F"), Operator.MIDDLE, 2),
    ],
)
def test_a_group_is_mapped_to_the_operator_of_what_it_shares(
    texts: tuple[str, ...], operator: Operator, length: int
) -> None:
    group = Costing(shapes(*texts), Model()).group(frozenset((0, 1)))
    assert group is not None
    assert (group.operator, group.length) == (operator, length)


@pytest.mark.parametrize("texts", [("A B", "C D"), ("A B", "B A"), ("A B C", "A D C"), ("A !X B D", "A B E")])
def test_what_shares_no_two_steps_is_no_group(texts: tuple[str, ...]) -> None:
    assert Costing(shapes(*texts), Model()).group(frozenset((0, 1))) is None


def test_expressions_with_different_windows_share_nothing() -> None:
    both = [shape("A B C", window=10), shape("A B C", window=20)]
    assert Costing(both, Model()).group(frozenset((0, 1))) is None


def test_expressions_of_two_queries_are_not_marked_together() -> None:
    both = [shape("A !X B C", owner="one"), shape("A !Y B C", owner="two")]
    group = Costing(both, Model()).group(frozenset((0, 1)))
    assert group is not None
    assert group.operator is Operator.SUFFIX


def test_an_expression_is_in_no_two_groups() -> None:
    with pytest.raises(PartitionError, match="several"):
        Partition(frozenset((frozenset((0, 1)), frozenset((1,)))), 2)


def test_every_expression_is_in_a_group() -> None:
    with pytest.raises(PartitionError, match=r"no group holds the expressions \[1\]"):
        Partition(frozenset((frozenset((0,)),)), 2)
    with pytest.raises(PartitionError, match="without"):
        Partition(frozenset((frozenset((0,)), frozenset[int]())), 1)


def test_every_neighbour_is_a_partition_and_they_reach_all_of_them() -> None:
    seen = {Partition.of([[0], [1], [2], [3]])}
    front = list(seen)
    while front:
        partition = front.pop()
        for change in neighbours(partition):
            near = partition.replaced(change.old, change.new)
            if near not in seen:
                seen.add(near)
                front.append(near)
    assert len(seen) == bell(4)


def test_a_group_has_as_many_splits_as_there_are_pairs_of_parts() -> None:
    assert len(list(splits(frozenset(range(5))))) == 2**4 - 1
    assert len(list(splits(frozenset(range(20))))) == 20
    assert not list(splits(frozenset((3,))))


@pytest.mark.parametrize("size", range(7))
def test_all_partitions_are_enumerated_once(size: int) -> None:
    found = [frozenset(map(frozenset, groups)) for groups in partitions(range(size))]
    assert len(found) == len(set(found)) == bell(size)


def test_too_many_partitions_are_not_enumerated() -> None:
    with pytest.raises(ValueError, match="partitions"):
        best_partition(Costing(random_set(Random(1), 11), Model()))
