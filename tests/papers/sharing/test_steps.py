"""Prefix caching, suffix clustering and shared middles give what each block gives alone, in any batches."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.query import query
from nestream_papers.engine.program import Sharing
from nestream_papers.sharing.prefix import PreCache
from nestream_papers.sharing.steps import SharingChain
from tests.papers.sharing.unions import Chosen, compiled, flat_program, local, random_union, rows
from tests.papers.tools import at_work, events

OPERATORS = [Sharing.PREFIX, Sharing.SUFFIX, Sharing.MIDDLE]
several = settings(max_examples=60, deadline=None)


@pytest.mark.parametrize("operator", OPERATORS)
@several
@given(st.integers(0, 2**32))
def test_a_group_gives_the_matches_of_the_reference(operator: Sharing, seed: int) -> None:
    union = random_union(Random(seed), operator)
    chosen = query(union.text)
    program = compiled(chosen, union.table, union.order, [union.group])
    assert [group.operator for group in program.groups] == [operator]
    run = local(chosen, union.table, program)
    found = pa.concat_tables([run.wanted.empty_table(), *run.over(union.table)])
    assert rows(found) == rows(chosen.match(union.table, order=union.order, strategy="reference"))


@pytest.mark.parametrize("operator", OPERATORS)
@several
@given(st.integers(0, 2**32))
def test_a_group_gives_the_same_in_any_batches(operator: Sharing, seed: int) -> None:
    random = Random(seed)
    union = random_union(random, operator)
    chosen = query(union.text)
    program = compiled(chosen, union.table, union.order, [union.group])
    ordered = union.table.take(pa.array(np.argsort(union.table.column("ts").to_numpy(), kind="stable")))
    times = ordered.column("ts").to_pylist()
    run = local(chosen, union.table, program)
    parts, done = [run.wanted.empty_table()], 0
    while done < len(times):
        size = random.choice((1, 2, 5))
        run.append(ordered.slice(done, size))
        done += size
        parts += run.advance(times[min(done, len(times)) - 1])
    parts += run.finish()
    wanted = chosen.match(union.table, order=union.order, strategy="reference")
    assert rows(pa.concat_tables(parts)) == rows(wanted)


def test_rows_do_come_from_what_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    onwards = SharingChain._onwards

    def counting(self: SharingChain, places: list[np.typing.NDArray[np.int64]]) -> object:
        nonlocal taken
        for found in onwards(self, places):
            taken += found.count
            yield found

    monkeypatch.setattr(SharingChain, "_onwards", counting)
    for operator in OPERATORS:
        taken = 0
        matches = 0
        for seed in range(60):
            union = random_union(Random(seed), operator)
            chosen = query(union.text)
            run = local(chosen, union.table, compiled(chosen, union.table, union.order, [union.group]))
            matches += sum(part.num_rows for part in run.over(union.table))
        assert taken >= matches / 2 > 10


TWO = "OR(SEQ(A a, B b, C c), SEQ(A a2, B b2, D d)) WITHIN 4"
BOTH = Chosen((0, 1), "prefix caching", 2, (0, 0))


def test_a_cached_prefix_is_built_once_and_kept_until_its_window_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []
    add = PreCache._add

    def counting(self: PreCache, evaluation: object, begin: int, end: int, limit: int) -> bool:
        before = len(self)
        room = add(self, evaluation, begin, end, limit)  # type: ignore[arg-type]
        built.append(len(self) - before)
        return room

    monkeypatch.setattr(PreCache, "_add", counting)
    chosen = query(TWO)
    history = events("a1 b2 c3 d4 b5 c5 d6 c7 a20 b21 d22")
    run = local(chosen, history, compiled(chosen, history, "time", [BOTH]))
    held: list[int | None] = []
    parts: list[pa.Table] = []
    for row, time in enumerate(history.column("ts").to_pylist()):
        run.append(history.slice(row, 1))
        parts += run.advance(time)
        (cache,) = at_work(run.matcher).caches.values() or (None,)
        held.append(None if cache is None else len(cache))
    parts += run.finish()
    assert rows(pa.concat_tables(parts)) == rows(chosen.match(history, strategy="reference"))
    assert held == [None, None, 1, 1, 1, 2, 0, 0, 0, 0, 1]
    assert sum(built) == 3


def test_a_cache_that_would_be_too_large_is_left_out() -> None:
    chosen = query(TWO.replace("WITHIN 4", "WITHIN 100"))
    history = events(" ".join([*(f"a{n}" for n in range(9)), *(f"b{n}" for n in range(10, 19)), "c20 d21"]))
    run = local(chosen, history, compiled(chosen, history, "time", [BOTH]))
    at_work(run.matcher).limit = run.matcher.limit = 4
    found = pa.concat_tables([run.wanted.empty_table(), *run.over(history)])
    assert found.num_rows == 2 * 81
    assert [len(cache) for cache in at_work(run.matcher).caches.values()] == [0]


def test_default_groups_are_equal_positives_then_the_longest_common_prefix_or_suffix() -> None:
    text = (
        "OR(SEQ(A a, B b, C c, !D d, E e), SEQ(A a2, B b2, C c2, !D d2, E e2, D d3),"
        " SEQ(B b4, E e4, D d4), SEQ(C c5, E e5, D d5)) WITHIN 9"
    )
    chosen = query(text)
    history = events("a1")
    program = compiled(chosen, history, "time", None)
    assert not program.groups
    flat = flat_program(chosen)
    named = [(group.operator, [member.block for member in group.members]) for group in flat.groups]
    assert named == [(Sharing.PREFIX, [0, 1]), (Sharing.SUFFIX, [2, 3])]
    assert [len(group.core.negations) for group in flat.groups] == [1, 0]
