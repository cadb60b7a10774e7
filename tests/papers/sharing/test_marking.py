"""Bit-marking: the three laws of EMap and RVI, of the map alone and of the operators that use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.engine.event_buffer import EventBuffer, Ints
from nestream.engine.program import Interval
from nestream.engine.windowed_events import WindowedEvents
from nestream.model.schema import Schema
from nestream.query import query
from nestream_papers.engine.context import Bindings, Evaluation, Mask
from nestream_papers.engine.program import BlockProgram, Group, Sharing, Witness, WitnessStep
from nestream_papers.engine.runs import BlockRun
from nestream_papers.plan import groups as groups_module
from nestream_papers.sharing.marked_chain import MarkedChain
from nestream_papers.sharing.marked_run import MarkingRun
from nestream_papers.sharing.marking import EMap, Facts, mask_of
from tests.papers.sharing.unions import dense_history, flat_program, local, rows

few = settings(max_examples=60, deadline=None)


def constraint(number: int) -> Witness:
    return Witness(Interval(("a",), ("b",)), (WitnessStep(f"w{number}", number),))


# -- the map -----------------------------------------------------------------------------------------------

expressions = st.lists(st.lists(st.integers(0, 6), unique=True, max_size=5), min_size=1, max_size=6)


@few
@given(expressions, st.lists(st.integers(0, 127), min_size=1, max_size=12))
def test_a_row_is_given_exactly_if_all_constraints_of_some_expression_hold(
    drawn: list[list[int]], facts: list[int]
) -> None:
    emap = EMap.of([[constraint(n) for n in expression] for expression in drawn])
    column = {part.chain[0].leaf: n for n, part in enumerate(emap.columns) if isinstance(part, Witness)}
    held = [{n for n in column if fact >> column[n] & 1} for fact in facts]
    wanted = [any(set(expression) <= holding for expression in drawn) for holding in held]
    assert emap.covered(np.array(facts, np.uint64)).tolist() == wanted


@few
@given(expressions, st.integers(0, 127), st.integers(0, 127))
def test_a_row_is_given_up_exactly_if_no_expression_can_still_be_satisfied(
    drawn: list[list[int]], fact: int, known: int
) -> None:
    emap = EMap.of([[constraint(n) for n in expression] for expression in drawn])
    size = len(emap.columns)
    known &= mask_of(range(size))
    fact &= known
    alive = emap.alive(np.array([fact], np.uint64), known)
    unknown = [n for n in range(size) if not known >> n & 1]
    outcomes = [
        fact | mask_of(n for place, n in enumerate(unknown) if more >> place & 1)
        for more in range(1 << len(unknown))
    ]
    possible = emap.covered(np.array(outcomes, np.uint64)).any()
    assert (True if alive is None else bool(alive[0])) == possible


def test_a_row_of_facts_has_room_for_64_constraints() -> None:
    full = EMap.of([[constraint(n)] for n in range(64)])
    last = np.array([0, 1 << 63, (1 << 63) - 1], np.uint64)
    assert full.covered(last).tolist() == [False, True, True]
    with pytest.raises(ValueError, match="room for 64"):
        EMap.of([[constraint(n)] for n in range(65)])


# -- the operators -----------------------------------------------------------------------------------------

NEGATED = ("!{0} {1}", "!SEQ({0} {1}, {2} {3})", "!SEQ({0} {1}, {2} {3}, {4} {5})", "!OR({0} {1}, {2} {3})")


def random_nested(random: Random) -> str:
    """A SEQ or AND of A, B and C with negations in its gaps and at its limits, with a key or without."""
    keyed = random.random() < 0.5
    number = 0

    def negation() -> str:
        nonlocal number
        form = random.choice(NEGATED)
        names = []
        for _ in range(3):
            names += [random.choice("ABCDE"), f"n{number}"]
            number += 1
        inner = form.format(*names)
        if keyed:
            for name in names[1::2]:
                kind = names[names.index(name) - 1]
                inner = inner.replace(f"{kind} {name}", f"({kind} {name} : {name}.id = a.id)")
        return inner

    operator = random.choice(("SEQ", "SEQ", "SEQ", "AND"))
    parts = []
    for step in ("A a", "B b", "C c"):
        if random.random() < 0.4:
            parts.append(negation())
        parts.append(step)
    if random.random() < 0.4 or len(parts) == 3:
        parts.append(negation())
    key = ", a.id = b.id = c.id" if keyed else ""
    return f"{operator}({', '.join(parts)}{key}) WITHIN {random.choice(('3', '6', '8 EVENTS'))}"


def case(random: Random, count: int = 24) -> tuple[pa.Table, BlockProgram]:
    """Events in the order of time and the program of a random query by the flat strategy."""
    table = dense_history(random, count)
    return table, flat_program(query(random_nested(random)), Schema.of(table.schema))


def evaluation_of(program: BlockProgram, table: pa.Table) -> Evaluation:
    schema = Schema.of(table.schema)
    held = EventBuffer(program.leaves, schema, table.column_names)
    held.append(table)
    held.seal()
    return Evaluation(WindowedEvents(held, program))


def some_of(random: Random, program: BlockProgram) -> Iterator[Group]:
    """The groups by marks, with some of their expressions: what is allowed then is no longer one stretch."""
    for group in program.groups:
        if group.operator is Sharing.MARKING:
            size = random.randint(1, len(group.members))
            yield replace(group, members=tuple(random.sample(group.members, size)))


def found(run: BlockRun, length: int) -> Counter[tuple[tuple[str, int], ...]]:
    """The matches of a run, each with the number of times it was given."""
    return Counter(
        tuple(sorted((name, int(column[n])) for name, column in part.rows.items()))
        for part in run.run(0, length)
        for n in range(part.count)
    )


@pytest.mark.parametrize("limit", [3, 1000])
@pytest.mark.parametrize("by_last", [True, False])
@few
@given(st.integers(0, 2**32))
def test_a_marked_group_gives_what_its_blocks_give_and_each_match_once(
    limit: int, by_last: bool, seed: int
) -> None:
    random = Random(seed)
    table, program = case(random)
    evaluation = evaluation_of(program, table)
    if not len(evaluation.store):
        return
    length = int(evaluation.store.pos[-1]) + 1
    for group in some_of(random, program):
        alone = [BlockRun(evaluation, program.blocks[m.block], limit, by_last=True) for m in group.members]
        wanted = set().union(*(found(run, length) for run in alone))
        marking = MarkingRun(evaluation, group, limit, by_last=by_last)
        given_back: Counter[tuple[tuple[str, int], ...]] = Counter()
        for first in range(0, length, 5):  # in slices, by first or last events
            given_back += found(Sliced(marking, first, min(first + 5, length)), length)
        assert given_back == Counter(wanted)


class Sliced(BlockRun):
    """A run over some positions only."""

    def __init__(self, run: BlockRun, first: int, end: int) -> None:
        self.whole, self.first, self.end = run, first, end

    def run(self, first: int, end: int) -> Iterator[Bindings]:
        """The matches of those positions, however many are asked for."""
        return self.whole.run(self.first, self.end)


def test_rows_go_on_only_while_an_expression_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = dropped = 0
    extend = MarkedChain._extend_marked

    def spying(self: MarkedChain, places: list[Ints], facts: Facts, level: int) -> Iterator[Bindings]:
        nonlocal looked_at
        gaps = list(pairwise(self.names))[level:]
        known = {n for n, part in enumerate(self.emap.columns) if self.gap(part) in gaps}
        for fact in facts.tolist():
            looked_at += 1
            left = [mask for mask in self.emap.masks if all(fact >> n & 1 for n in known if mask >> n & 1)]
            assert left
        return extend(self, places, facts, level)

    def counting(self: EMap, facts: Facts, known: int) -> Mask | None:
        nonlocal dropped
        held = alive(self, facts, known)
        dropped += 0 if held is None else int((~held).sum())
        return held

    alive = EMap.alive
    monkeypatch.setattr(MarkedChain, "_extend_marked", spying)
    monkeypatch.setattr(EMap, "alive", counting)
    for seed in range(60):
        random = Random(seed)
        table, program = case(random, 60)
        evaluation = evaluation_of(program, table)
        for group in some_of(random, program):
            found(MarkingRun(evaluation, group, 1000, by_last=True), table.num_rows)
    assert looked_at > 100
    assert dropped > 10


def test_groups_with_more_constraints_than_room_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SEQ(A a, !SEQ(B b, C c, D d), E e, !SEQ(B b2, C c2, D d2), A a2) WITHIN 20"
    chosen = query(text)
    events = dense_history(Random(4), 40)
    whole = flat_program(chosen)
    assert [len(group.members) for group in whole.groups] == [9]
    monkeypatch.setattr(groups_module, "MOST_COLUMNS", 4)
    split = flat_program(chosen)
    assert len(split.groups) > 1
    assert all(len(EMap.of_group(group).columns) <= 4 for group in split.groups)
    assert split.distinct
    assert not whole.distinct
    for program in (whole, split):
        found_in_groups = pa.concat_tables(list(local(chosen, events, program).over(events)))
        assert rows(found_in_groups) == rows(chosen.match(events, strategy="reference"))


# -- branches as they are written --------------------------------------------------------------------------

WRITTEN = [
    "OR(SEQ(A a, !B b, C c), SEQ(A x, !D d, C y)) WITHIN 9",
    "OR(SEQ(A a, !B b, C c), SEQ(A x, !B b2, C y), SEQ(A u, C v)) WITHIN 9",
    "OR(SEQ(A a, B b, !SEQ(C c, D d), E e, a.id = b.id = e.id),"
    " SEQ(A x, B y, !(D d2, d2.id = x.id), E z, x.id = y.id = z.id)) WITHIN 12",
    "OR(SEQ(A a, !(B b, b.x < c.x), C c, a.x < c.x), SEQ(A x, !D d, C y, x.x < y.x)) WITHIN 9",
    "OR(SEQ(A a, !SEQ(B b, D d), C c), SEQ(A x, !E e, C y)) WITHIN 9",
]


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.parametrize("cost_in_time", [True, False])
def test_branches_as_written_give_their_matches_by_their_own_variables(text: str, cost_in_time: bool) -> None:
    for seed in range(6):
        history = dense_history(Random(seed), 60)
        chosen = query(text)
        wanted = chosen.match(history, strategy="reference")
        options = {"cost_in_time": cost_in_time}
        assert rows(chosen.match(history, strategy="flat", options=options)) == rows(wanted)
        stream, found = chosen.stream(schema=history.schema, strategy="flat", options=options), []
        for start in range(0, 60, 7):
            found += rows(stream.push_batch(history.slice(start, 7)))
        assert sorted(found + rows(stream.finish_batch())) == sorted(rows(wanted))


@pytest.mark.parametrize("text", WRITTEN)
def test_branches_as_written_are_marked_together_whatever_their_variables(text: str) -> None:
    history = dense_history(Random(1), 60)
    run = query(text).prepare(history, strategy="flat", options={"cost_in_time": False})
    program = run.compiled().program
    assert isinstance(program, BlockProgram)
    (group,) = program.groups
    assert group.operator is Sharing.MARKING
    assert len({member.names for member in group.members}) == text.count("SEQ(A")


def test_the_same_negation_of_two_branches_is_one_column() -> None:
    history = dense_history(Random(1), 60)
    run = query(WRITTEN[1]).prepare(history, strategy="flat", options={"cost_in_time": False})
    program = run.compiled().program
    assert isinstance(program, BlockProgram)
    assert len(EMap.of_group(program.groups[0]).columns) == 1
