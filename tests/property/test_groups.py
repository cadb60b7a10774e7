"""Random queries with groups and aggregates: every way of the core agrees with the reference."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.generators.histories import FEW, random_history
from tests.property.cases import Case
from tests.property.differential import report, run_cases
from tests.property.harness import difference
from tests.property.runners import RUNNERS

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "12"))
WAYS = ("engine", "engine-sliced", "engine-split", "engine-one-by-one", "set", "set-split", "native-small")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_groups_are_the_same_in_every_way_to_run(way: str) -> None:
    failures = run_cases(0, way, True, range(40)).failures
    assert not failures, report(0, way, failures[0], groups=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_groups_are_the_same_in_very_many_cases(way: str) -> None:
    failures = run_cases(1, way, True, range(4_000)).failures
    assert not failures, report(1, way, failures[0], groups=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["engine", "engine-split", "engine-one-by-one"])
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A{1,} f, A last) WHERE [id] WITHIN 5 KEEP FIRST PER last.id EVERY 3",
        "SEQ(A{1,} f, A last, !B b) WHERE [id] WITHIN 4 KEEP LAST PER last",
        "SEQ(A+ f, B b, C c) WITHIN 6 RETURN b, c, f, COUNT(f) AS n KEEP LAST PER c",
        "SEQ(B b, A* f, C c, COUNT(f) < 3) WITHIN 6 KEEP LONGEST PER c",
        "SEQ(B b, A* f) WITHIN 6 KEEP DISJOINT",
        "AND(B b, A+ f, C c) WITHIN 6 RETURN SUM(f.x) AS s, f KEEP SHORTEST PER b",
    ],
)
def test_kept_matches_have_their_groups_also_after_a_while(text: str, way: str) -> None:
    for seed in range(12):
        table = random_history(Random(seed), types=("A", "B", "C"))
        wrong = difference(Case(text, table, seed=seed), RUNNERS[way])
        assert wrong is None, str(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["engine", "engine-sliced", "engine-split", "native-small"])
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A{2,} f, A last) WHERE [id] WITHIN 6 RETURN last.ts AS t",
        "SEQ(A{1,} f, B b) WITHIN 4 EVENTS",
        "SEQ(A{2,} f, B b, !C c) WHERE [id] WITHIN 5",
        "SEQ(A{2,} f, B b, C c) WHERE [id] WITHIN 8 RETURN b, c, COUNT(f) AS n",
        "SEQ((A{2,} f : f.id = b.id), B b, C c) WITHIN 7",
        "SEQ((A{2,} f : f.x = 1), B b, C c, b.x < c.x) WITHIN 9",
        "SEQ(A{2,} f, B b, A{1,3} g, C c, b.id = c.id) WITHIN 9 RETURN b, c",
        "SEQ(A{1,2} f, B b, C{1,} g, B c) WHERE [id] WITHIN 9 RETURN c",
    ],
)
def test_members_from_the_start_of_the_window_on_are_counted_in_every_way(text: str, way: str) -> None:
    for seed in range(EXAMPLES):
        random = Random(seed)
        table = random_history(random, 4 * FEW, types=("A", "B", "C"))
        wrong = difference(Case(text, table, random.choice(("time", "arrival")), seed), RUNNERS[way])
        assert wrong is None, str(wrong)
