"""KEEP over random histories: every way of the core keeps what the reference keeps."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.generators.histories import FEW, random_history
from tests.property.cases import Case
from tests.property.harness import difference
from tests.property.runners import RUNNERS

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "30"))
PATTERNS = {
    "SEQ(A a, B b, C c)": "abc",
    "SEQ(A a, B b, A c) WHERE [id]": "abc",
    "SEQ(A a, ANY b, C c) WHERE [id]": "abc",
    "SEQ(A a, !D d, B b, !E e, C c) WHERE [id]": "abc",
    "SEQ(A a, !D d, B b, C c, a.id = c.id)": "abc",
    "SEQ(A a, B b, C c, a.id = b.id)": "abc",
    "SEQ(A a, B b, C c, a.id = b.id = c.id, b.x = c.x)": "abc",
    "SEQ(A a, !(D d, d.x = a.x), B b, !(E e, e.id = b.id), C c)": "abc",
    "SEQ(!D d, A a, B b) WHERE [id]": "ab",
    "SEQ(A a, B b, !D d)": "ab",
    "SEQ(A a, B b, C c, b.ts - a.ts <= 2, c.ts - b.ts >= 1)": "abc",
    "SEQ(A a, B b, a.x < b.x)": "ab",
    "AND(A a, B b, C c)": "abc",
    "SEQ(A a, AND(B b, C c), D d)": "abcd",
    "SEQ(A{1,} f, B b, C c) WHERE [id]": "bc",
    "SEQ(A a, B{2,} f, C c)": "ac",
    "OR(SEQ(A a, B b), SEQ(C c, A d))": "abcd",
    "A a": "a",
}
ONE_EACH = {
    "SEQ(A a, B b, C c, a.id = b.id) WITHIN 9 KEEP LAST PER c",
    "SEQ(A a, B b, C c, b.x = c.x) WITHIN 9 KEEP FIRST PER a",
    "SEQ(A a, !D d, B b, C c) WHERE [id] WITHIN 9 KEEP LAST PER c",
    "SEQ(A a, !D d, B b, C c) WHERE [id] WITHIN 9 KEEP FIRST PER a",
}
"""Queries that keep one match per event, which may be found without the others."""
KINDS = ("FIRST", "FIRST", "LAST", "LONGEST", "SHORTEST", "DISJOINT")


def kept(random: Random) -> str:
    """A query that keeps some matches."""
    pattern = random.choice(list(PATTERNS))
    names = PATTERNS[pattern]
    per = random.sample(names, random.randint(1, min(2, len(names))))
    per += [f"{random.choice(names)}.x"] * (random.random() < 0.2)
    every = f" EVERY {random.randint(1, 4)}" if random.random() < 0.1 else ""
    kind = random.choice(KINDS)
    every = every if kind == "FIRST" else ""
    return f"{pattern} WITHIN {random.randint(1, 12)} KEEP {kind} PER {', '.join(per)}{every}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["engine", "engine-sliced", "engine-split"])
def test_every_way_keeps_the_same_matches(way: str) -> None:
    seed = os.environ.get("ENGINE_SEED", "0")
    for number in range(EXAMPLES):
        random = Random(f"{seed}/{number}")
        text, table = kept(random), random_history(random, random.choice((FEW, 4 * FEW)), tuple("ABCDE"))
        case = Case(text, table, random.choice(("time", "arrival")), random.randrange(2**32))
        wrong = difference(case, RUNNERS[way])
        assert wrong is None, str(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["engine", "engine-sliced"])
@pytest.mark.parametrize("text", sorted(ONE_EACH))
def test_one_match_per_event_is_the_one_that_the_reference_keeps(text: str, way: str) -> None:
    for number in range(EXAMPLES // 3):
        table = random_history(Random(f"{text}/{number}"), 4 * FEW, tuple("ABCD"))
        wrong = difference(Case(text, table, "time", number), RUNNERS[way])
        assert wrong is None, str(wrong)
