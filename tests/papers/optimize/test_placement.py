"""Placing expressions one by one: a new query of a thousand is planned in milliseconds."""

import time
from random import Random

import pytest

from nestream_papers.optimize.cost import Model, Objective
from nestream_papers.optimize.operators import Costing, Operator
from nestream_papers.optimize.placement import Placement
from nestream_papers.optimize.plan_finder import find_plan
from nestream_papers.optimize.shape import Shape
from tests.papers.optimize.shapes import MIXED, random_set, shape, shapes, steady

TYPES = [f"T{number}" for number in range(40)]


def rules(random: Random, number: int) -> list[Shape]:
    """Queries of their own, with shared beginnings and ends."""
    beginnings, ends = ([[random.choice(TYPES) for _ in range(3)] for _ in range(30)] for _ in range(2))
    found = []
    for name in range(number):
        few = [random.choice(TYPES) for _ in range(random.randint(1, 2))]
        words = random.choice(beginnings) + few if random.random() < 0.5 else few + random.choice(ends)
        found.append(shape(" ".join(words), owner=str(name)))
    return found


def test_placing_finds_the_groups_of_the_mixed_workload() -> None:
    placement = Placement.of(Costing(shapes(*MIXED), Model(objective=Objective.ROWS)))
    assert set(placement.groups.values()) == {frozenset((0, 1, 2)), frozenset((3, 4)), frozenset((5, 6))}


def test_adding_an_expression_to_a_thousand_takes_milliseconds() -> None:
    chosen = rules(Random(5), 1_050)
    known = steady(dict.fromkeys(TYPES, 1 / 40), 1_000_000)
    placement = Placement.of(Costing(chosen[:1_000], Model(known, objective=Objective.ROWS)))
    spent = []
    for one in chosen[1_000:]:
        begin = time.process_time()
        placement.add(one)
        spent.append(time.process_time() - begin)
    assert sorted(spent)[25] < 0.01
    assert placement.partition.size == 1_050
    assert max(map(len, placement.groups.values())) > 10


def test_each_placement_is_the_cheapest_of_the_groups_it_could_join() -> None:
    chosen = random_set(Random(8), 12)
    costing = Costing(chosen, Model())
    placement = Placement(costing)
    for member in range(len(chosen)):
        before = dict(placement.groups)
        alone = costing.cost(frozenset((member,)))
        joined = [costing.cost(group | {member}) - costing.cost(group) for group in before.values()]
        group = placement.place(member)
        old = sum(map(costing.cost, before.values()))
        new = sum(map(costing.cost, placement.groups.values()))
        assert member in group.members
        assert new - old == pytest.approx(min([alone, *joined]))


def test_an_expression_that_leaves_lets_the_others_stay_together() -> None:
    placement = Placement.of(Costing(shapes("A B !X C", "A B !Y C", "A B !Z C", "K L"), Model()))
    placement.remove(1)
    assert set(placement.groups.values()) == {frozenset((0, 2)), frozenset((3,))}
    group = placement.place(1)
    assert (group.members, group.operator) == ((0, 1, 2), Operator.MARKING)


def test_a_plan_can_be_gone_on_from() -> None:
    chosen = shapes(*MIXED)
    costing = Costing(chosen, Model())
    placement = Placement.from_groups(costing, find_plan(chosen).members)
    group = placement.add(shape("MSFT !AMAT ORCL INTC", name="E8"))
    assert group.members == (0, 1, 2, 7)
