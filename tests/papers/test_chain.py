"""Sequences without dead ends: every row that is built belongs to a match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nestream
from nestream_papers.engine.chain import Chain, is_chain
from nestream_papers.options import Options
from tests.papers.tools import SCHEMA, evaluation_over, program

QUERIES = {
    "three steps": "SEQ(A a, B b, C c) WITHIN 6",
    "by key": "SEQ(A a, B b, C c, a.id = b.id = c.id) WITHIN 6",
    "five steps": "SEQ(A a, B b, A c, B d, C e) WITHIN 9",
    "a count window": "SEQ(A a, B b, C c) WITHIN 7 EVENTS",
    "no window": "SEQ(A a, B b, C c) WITHIN UNBOUNDED",
    "a bound": "SEQ(A a, !D d, B b, C c) WITHIN 8",
    "a nested bound by key": (
        "SEQ(A a, !SEQ(D d, E e, d.id = e.id = a.id), B b, !(E f, f.id = a.id), C c, a.id = b.id = c.id) "
        "WITHIN 9"
    ),
    "a bound with a negation inside": "SEQ(A a, !SEQ(D d, !B x, E e), B b, C c) WITHIN 9",
}


@st.composite
def histories(draw: st.DrawFn) -> pa.Table:
    """Events of five types and two ids in the order of time, with ties."""
    kinds = draw(st.lists(st.sampled_from("AABBCCDE"), max_size=25))
    gaps = draw(st.lists(st.sampled_from((1, 1, 0, 2)), min_size=len(kinds), max_size=len(kinds)))
    ids = draw(st.lists(st.integers(1, 2), min_size=len(kinds), max_size=len(kinds)))
    rows: list[dict[str, Any]] = [
        {"ts": int(ts), "type": kind, "id": key, "x": 0}
        for ts, kind, key in zip(np.cumsum([0, *gaps])[1:], kinds, ids, strict=True)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


class Watched(Chain):
    """A chain that notes every partial match it builds: its level and its events."""

    built: list[tuple[int, tuple[int, ...]]]

    def _extend(self, places: Any, level: int) -> Any:
        found = self.bindings(places, level)
        columns = [found.rows[name].tolist() for name in self.names[level:]]
        self.built += [(level, row) for row in zip(*columns, strict=True)]
        return super()._extend(places, level)


def watched(text: str, table: pa.Table, **switches: Any) -> tuple[Watched, list[tuple[int, ...]]]:
    evaluation = evaluation_over(text, table, **switches)
    (block,) = evaluation.program.blocks
    chain = Watched(evaluation, block, limit=1000)
    chain.built = []
    matches = []
    for found in chain.matches(chain.triggers(0, table.num_rows)):
        columns = [found.rows[name].tolist() for name in chain.names]
        matches += list(zip(*columns, strict=True))
    return chain, matches


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=60, deadline=None)
@given(histories())
def test_every_row_that_is_built_is_part_of_a_match(name: str, table: pa.Table) -> None:
    chain, matches = watched(QUERIES[name], table)
    for level, row in chain.built:
        assert any(match[level:] == row for match in matches)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=40, deadline=None)
@given(histories())
def test_the_latest_starts_of_the_prefixes_never_go_down(name: str, table: pa.Table) -> None:
    chain, _ = watched(QUERIES[name], table)
    for step in chain.steps:
        assert (np.diff(step.start) >= 0).all()


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=40, deadline=None)
@given(histories())
def test_counting_builds_nothing_and_agrees(name: str, table: pa.Table) -> None:
    chain, matches = watched(QUERIES[name], table)
    built = len(chain.built)
    assert chain.count(chain.triggers(0, table.num_rows)) == len(matches)
    assert len(chain.built) == built


def test_without_the_technique_dead_ends_are_built() -> None:
    table = pa.Table.from_pylist(
        [{"ts": n, "type": kind, "id": 1, "x": 0} for n, kind in enumerate("AZZZZZZZBBBBC")], SCHEMA
    )
    text = "SEQ(A a, B b, C c) WITHIN 6"
    assert watched(text, table)[0].built == []
    assert len(watched(text, table, reach=False)[0].built) == 5


def test_a_sequence_whose_last_step_never_comes_costs_nothing() -> None:
    table = pa.Table.from_pylist(
        [{"ts": n, "type": "ABCD"[n % 4], "id": 1, "x": 0} for n in range(400)], SCHEMA
    )
    chain, matches = watched("SEQ(A a, B b, C c, D d, Never e) WITHIN UNBOUNDED", table)
    assert matches == []
    assert chain.built == []


def test_a_rare_leaf_narrows_the_others_to_the_windows_around_it() -> None:
    rows = [{"ts": n, "type": "AB"[n % 2], "id": 1, "x": 0} for n in range(200)]
    rows[100]["type"] = "C"
    table = pa.Table.from_pylist(rows, SCHEMA)
    text = "SEQ(A a, B b, C c) WITHIN 6"
    chain, matches = watched(text, table)
    everything, same = watched(text, table, narrowing=False)
    assert sorted(matches) == sorted(same)
    assert len(chain.steps[0].stack) <= 7
    assert len(everything.steps[0].stack) == 99


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 5", True),
        ("SEQ(A a, SEQ(B b, C c)) WITHIN 5", True),
        ("AND(A a) WITHIN 5", True),
        ("SEQ(A a, B b, a.id = b.id) WITHIN 5", True),
        ("SEQ(A a, B b, C c, a.id = b.id) WITHIN 5", False),
        ("SEQ(A a, AND(B b, C c)) WITHIN 5", False),
        ("SEQ(A a, B b, a.x < b.x) WITHIN 5", True),
    ],
)
def test_a_block_is_a_chain_where_it_is_in_order_and_only_the_key_joins_it(text: str, expected: bool) -> None:
    (block,) = program(text).blocks
    assert is_chain(block) is expected


@settings(max_examples=30, deadline=None)
@given(histories(), st.integers(1, 5))
def test_pieces_of_any_size_give_the_same_matches(table: pa.Table, memory: int) -> None:
    query = nestream.query(QUERIES["by key"])
    assert query.match(table, options=Options(memory=memory * 200)).equals(query.match(table))
