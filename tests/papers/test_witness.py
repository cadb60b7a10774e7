"""Witnesses: the latest events of a chain in an interval, found for whole arrays of matches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.program import Edge, Interval
from nestream.engine.windowed_events import WindowedEvents
from nestream.logical.nodes import Component, Leaf, Plan, WinAnd, WinSeq
from nestream.logical.nodes import Witness as LogicalWitness
from nestream.model.expression import Attribute, Comparison
from nestream.model.schema import Schema
from nestream.query import query
from nestream.reference import Order, evaluate
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.program import Block, BlockProgram, Witness
from nestream_papers.engine.runs import BlockRun
from nestream_papers.engine.witness import NONE, gap_attributes, gap_range, witnessed
from nestream_papers.options import Options
from nestream_papers.plan.compile import compile_plan
from tests.papers.tools import SCHEMA, events
from tests.property.meaning import events_of

several = settings(max_examples=150, deadline=None)


def leaf(kind: str, *predicates: Comparison) -> Leaf:
    return Leaf(kind.lower() * 2, (kind,), predicates)


def same_id(kind: str, outer: str) -> Comparison:
    return Comparison("=", (Attribute(kind.lower() * 2, "id"), Attribute(outer, "id")))


def less(kind: str, outer: str) -> Comparison:
    return Comparison("<", (Attribute(kind.lower() * 2, "x"), Attribute(outer, "x")))


def plan_with(witness: LogicalWitness, text: str, place: int) -> Plan:
    """The plan of a query with a witness put into it."""
    plan = query(text).plan
    assert isinstance(plan.root, WinSeq | WinAnd)
    parts: tuple[Component, ...] = plan.root.components
    return replace(plan, root=replace(plan.root, components=(*parts[:place], witness, *parts[place:])))


def _order(by_arrival: bool) -> Order:
    return Order.ARRIVAL if by_arrival else Order.TIME


def compiled(plan: Plan, by_arrival: bool = False) -> BlockProgram:
    return compile_plan(plan, Schema.of(SCHEMA, order=_order(by_arrival)), options=Options())


def evaluation_of(program: BlockProgram, table: pa.Table) -> Evaluation:
    held = EventBuffer(
        program.leaves, Schema.of(SCHEMA, order=_order(program.by_arrival)), table.column_names
    )
    held.append(table)
    held.seal()
    return Evaluation(WindowedEvents(held, program))


# -- the places of a witness -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "holds"),
    [
        ("a1 b2 c3 e4", True),
        ("a1 c2 b3 e4", False),  # the latest c has no b before it
        ("a1 b2 c3 b4 c5 e6", True),
        ("a1 b1 c3 e4", False),  # at the time of a is not after it
        ("a1 b2 c4 e4", False),
        ("b0 a1 c3 e4", False),
        ("a1 d1 b2 c3 e4", True),
        ("a1 d2 b3 c4 e5", False),  # the absent d comes before b
        ("a1 b2 d3 c4 e5", True),
        ("a1 d2 b2 c4 e5", True),  # at the time of b is not before it
        ("a1 d2 b3 b4 c5 e6", False),
    ],
)
def test_a_witness_is_found_from_the_right_with_none_of_the_absent_before_it(
    history: str, holds: bool
) -> None:
    witness = LogicalWitness((leaf("B"), leaf("C")), leaf("D"))
    plan = plan_with(witness, "SEQ(A a, E e) WITHIN 9", 1)
    table = events(history)
    program = compiled(plan)
    evaluation = evaluation_of(program, table)
    (block,) = program.blocks
    types = table.column("type").to_pylist()
    match = Bindings({"a": np.array([types.index("A")]), "e": np.array([types.index("E")])}, 1)
    assert witnessed(evaluation, block.witnesses[0], match, block, 100).tolist() == [holds]
    assert bool(evaluate(plan, events_of(table), Order.TIME)) == holds


def test_an_event_of_the_match_is_not_its_own_witness() -> None:
    plan = plan_with(LogicalWitness((leaf("A"),)), "AND(A a, B b) WITHIN 9", 2)
    program = compiled(plan)
    (block,) = program.blocks
    assert block.witnesses[0].chain[0].apart == ("a",)
    assert block.witnesses[0].interval == Interval(Edge.WINDOW_START, Edge.MATCH_END)
    for history, holds in (("a1 b2", False), ("a1 a2 b3", True)):
        evaluation = evaluation_of(program, events(history))
        count = len(evaluation.store)
        match = Bindings({"a": np.array([count - 2]), "b": np.array([count - 1])}, 1)
        assert witnessed(evaluation, block.witnesses[0], match, block, 100).tolist() == [holds]


def test_a_witness_between_neighbours_allows_a_range_of_the_left_one() -> None:
    witness = LogicalWitness((leaf("C"),), leaf("B"))
    program = compiled(plan_with(witness, "SEQ(A a, E e) WITHIN 99", 1))
    evaluation = evaluation_of(program, events("a1 b2 a3 c4 a5 e6 b7 e8 c9 e10"))
    (block,) = program.blocks
    (found,) = block.witnesses
    attributes = gap_attributes(found, "a", "e", block.key)
    assert attributes == [(), ()]
    lower, upper = gap_range(evaluation, found, attributes, evaluation.store.leaf_rows[block.leaves["e"]])
    assert (lower.tolist(), upper.tolist()) == ([1, 1, 6], [3, 3, 8])
    alone = replace(found, absent=None)
    assert gap_range(evaluation, alone, [()], np.array([0]))[0].tolist() == [NONE]


# -- against the reference ---------------------------------------------------------------------------------

QUERIES = [
    ("SEQ(A a, E e) WITHIN 5", 3),
    ("SEQ(A a, E e, a.id = e.id) WITHIN 5", 3),
    ("SEQ(A a, A a2, E e) WITHIN 6 EVENTS", 4),
    ("AND(A a, E e) WITHIN 5", 3),
    ("AND(A a, B e, a.id = e.id) WITHIN UNBOUNDED", 3),
]


@st.composite
def witnesses(draw: st.DrawFn) -> LogicalWitness:
    """Chains of one to three leaves with an absent one or none; about themselves, or related to the match."""
    kinds = draw(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True))
    leaves = []
    for kind in kinds:
        outer = draw(st.sampled_from("ae"))
        related = draw(st.sampled_from([(), (), (same_id(kind, outer),), (less(kind, outer),)]))
        both = (same_id(kind, "a"), same_id(kind, "e"))
        leaves.append(leaf(kind, *(both if draw(st.integers(0, 9)) == 0 else related)))
    absent = leaves.pop(0) if len(leaves) > 1 and draw(st.booleans()) else None
    return LogicalWitness(tuple(leaves), absent)


@st.composite
def histories(draw: st.DrawFn) -> pa.Table:
    """Events in the order of time, some at the same moment."""
    row = st.tuples(
        st.integers(0, 2), st.sampled_from("AABCDE"), st.sampled_from([1, 1, 2, None]), st.integers(0, 2)
    )
    drawn = draw(st.lists(row, max_size=14))
    times = np.cumsum([gap for gap, *_ in drawn]).tolist()
    rows = [
        {"ts": int(ts), "type": kind, "id": key, "x": x}
        for ts, (_, kind, key, x) in zip(times, drawn, strict=True)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("limit", [1, 1000])
@several
@given(witnesses(), histories(), st.sampled_from(QUERIES), st.integers(0, 3), st.booleans())
def test_the_engine_finds_the_witnesses_that_the_reference_finds(
    limit: int,
    witness: LogicalWitness,
    table: pa.Table,
    around: tuple[str, int],
    place: int,
    by_arrival: bool,
) -> None:
    plan = plan_with(witness, around[0], min(place, around[1]))
    program = compiled(plan, by_arrival)
    wanted = {
        tuple(sorted((name, event.pos) for name, event in match.events.items()))
        for match in evaluate(plan, events_of(table), _order(by_arrival))
    }
    evaluation = evaluation_of(program, table)
    if not len(evaluation.store):
        assert not wanted
        return
    assert found(evaluation, program.blocks[0], limit) == wanted


def found(evaluation: Evaluation, block: Block, limit: int) -> set[tuple[tuple[str, int], ...]]:
    """The matches of a block, by the chain or the join, and the same by the join alone."""
    length = int(evaluation.store.pos[-1]) + 1
    positions = evaluation.store.pos + evaluation.store.base  # the store counts from its first event
    ways = []
    for way in (block, replace(block, chain=None)):
        parts = list(BlockRun(evaluation, way, limit, by_last=True).run(0, length))
        ways.append(
            {
                tuple(sorted((name, int(positions[rows[n]])) for name, rows in part.rows.items()))
                for part in parts
                for n in range(part.count)
            }
        )
    assert ways[0] == ways[1]
    return ways[0]


def test_what_a_witness_needs_is_what_it_mentions() -> None:
    witness = LogicalWitness((leaf("B", less("B", "e")),), leaf("C", same_id("C", "a")))
    (block,) = compiled(plan_with(witness, "SEQ(A a, D d, E e) WITHIN 9", 1)).blocks
    (compiled_witness,) = block.witnesses
    assert isinstance(compiled_witness, Witness)
    assert compiled_witness.needs(block) == {"a", "d", "e"}
