"""Matches that are alike to a negation are looked at once, and as soon as what it needs is bound."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nestream.engine.operators.alike import alike
from nestream.query import query
from nestream_papers.engine.context import Bindings
from nestream_papers.engine.join import Join
from tests.papers.tools import SCHEMA


def history(seed: int, length: int) -> pa.Table:
    chance = random.Random(seed)
    rows = [
        {"ts": time, "type": chance.choice("ABCDE"), "id": chance.randrange(3), "x": chance.randrange(9)}
        for time in range(length)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("length", [10, 1 << 40])
def test_each_match_has_the_number_of_one_that_is_alike(length: int) -> None:
    chance = np.random.default_rng(0)
    rows = {name: chance.integers(0, 4, 200) for name in "abcd"}
    found = alike(rows, 200, "abc", length)
    assert found is not None
    kinds = set(zip(*(rows[name].tolist() for name in "abc"), strict=True))
    assert len(found.first) == len(kinds)
    for name in "abc":
        assert (rows[name][found.first][found.number] == rows[name]).all()


def test_nothing_is_alike_where_all_variables_matter_or_matches_are_few() -> None:
    rows = {name: np.zeros(100, np.int64) for name in "ab"}
    assert alike(rows, 100, "ab", 10) is None
    assert alike({"a": rows["a"][:9], "b": rows["b"][:9]}, 9, "a", 10) is None


LOOKED_AT = {
    "between the last two": ("SEQ(A a, B b, !SEQ(C c, D d, c.x > d.x), E e) WITHIN 40", "b"),
    "between the first two": ("SEQ(A a, !SEQ(C c, D d, c.x > d.x), B b, E e) WITHIN 40", "a"),
    "a test follows": ("SEQ(A a, B b, !SEQ(C c, D d, c.x > d.x), E e, a.x = e.x) WITHIN 40", "a"),
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_negation_is_looked_at_with_the_first_step_that_it_needs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, step = LOOKED_AT[name]
    seen: list[tuple[set[str], int, int]] = []
    joins = Join.joins

    def noted(self: Join, negation: Any, bindings: Bindings) -> Any:
        columns = np.stack([bindings.rows[n] for n in bindings.rows if n in ("b", "e")])
        seen.append((set(bindings.rows), bindings.count, np.unique(columns, axis=1).shape[1]))
        return joins(self, negation, bindings)

    monkeypatch.setattr(Join, "joins", noted)
    table = history(1, 400)
    once = query(text).match(table)
    assert all((step in names) and (step == "a" or "a" not in names) for names, _, _ in seen)
    if name != "between the first two":
        assert all(count == different or count < 64 for _, count, different in seen)
    seen.clear()
    each = query(text).match(table, options={"once": False})
    assert all("a" in names for names, _, _ in seen)
    assert each.equals(once)
