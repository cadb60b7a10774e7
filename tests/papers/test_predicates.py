"""Predicates early or late, and shortcuts: when each is looked at, and that the table of values is right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nestream.query import query
from nestream.strategies import switches
from nestream_papers.engine.context import Bindings, Evaluation
from nestream_papers.engine.join import Join
from nestream_papers.engine.stack import before, places
from nestream_papers.nested import shortcut
from nestream_papers.nested.shortcut import ValueCache
from nestream_papers.options import Options, options_of
from tests.papers.tools import compiled, evaluation_over, events, program
from tests.papers.tools import rows as numbers
from tests.property.harness import assert_same_matches

NESTED = "SEQ(A a, SEQ(B b, C c), D d, b.id = d.id) WITHIN 20"
DENIED = "SEQ(A a, !SEQ(B b, C c, b.id = d.id), D d) WITHIN 20"


def history(seed: int, inner: int, outer: int, length: int = 60) -> pa.Table:
    """Events of which those of type B have `inner` values of id and those of type D `outer`."""
    chance = random.Random(seed)
    words = []
    for time in range(length):
        kind = chance.choice("abcd")
        words.append(f"{kind}{time}.{chance.randrange(inner if kind == 'b' else outer)}")
    return events(" ".join(words))


def test_without_push_in_nothing_is_filtered_in_leaves_and_there_is_no_key() -> None:
    text = "SEQ(A a, B b, C c, a.id = b.id = c.id, a.x > 1) WITHIN 9"
    early, late = program(text), program(text, push_in=False)
    assert early.blocks[0].key is not None
    assert [len(leaf.filters) for leaf in early.leaves] == [1, 0, 0]
    assert late.blocks[0].key is None
    assert [len(leaf.filters) for leaf in late.leaves] == [0, 0, 0]
    assert len(late.blocks[0].predicates) == 2


@pytest.mark.parametrize("strategy", ["native", "nested", "flat"])
def test_push_in_tests_predicates_on_fewer_variables(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[int] = []
    satisfied = Evaluation.satisfied

    def counted(self: Evaluation, formula: Any, bindings: Bindings) -> Any:
        tested.append(len(bindings.rows))
        return satisfied(self, formula, bindings)

    monkeypatch.setattr(Evaluation, "satisfied", counted)
    chosen = query("SEQ(A a, B b, C c, D d, c.id < d.id) WITHIN 20")
    table = history(1, 3, 3)
    seen = {}
    for push_in in (True, False):
        tested.clear()
        found = chosen.match(table, strategy=strategy, options={"push_in": push_in})
        seen[push_in] = set(tested), found
    assert seen[True][0] == {2}
    assert seen[False][0] == {4}
    assert seen[True][1].equals(seen[False][1])


def rows_built(text: str, table: pa.Table, monkeypatch: pytest.MonkeyPatch, **switches: bool) -> int:
    """How many partial matches nested execution goes on from."""
    built = 0
    extended = Join.extended

    def counted(self: Join, bindings: Bindings, *rest: Any) -> Any:
        nonlocal built
        built += bindings.count
        return extended(self, bindings, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(Join, "extended", counted)
        query(text).match(table, strategy="nested", options=switches)
    return built


@pytest.mark.parametrize("text", [NESTED, DENIED])
@pytest.mark.parametrize("push_in", [True, False])
def test_a_shortcut_spares_rows_where_the_inner_variable_has_few_values(
    text: str, push_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = history(2, 2, 40, 200)
    on, off = (rows_built(text, table, monkeypatch, push_in=push_in, shortcut=cut) for cut in (True, False))
    assert on < 0.8 * off


def test_a_shortcut_is_not_taken_where_both_have_as_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    rule = shortcut.pays

    def noted(*given: Any) -> bool:
        looked.append(rule(*given))
        return looked[-1]

    monkeypatch.setattr(shortcut, "pays", noted)
    for inner, taken in ((2, True), (20, False)):
        looked.clear()
        query(NESTED).match(history(3, inner, 20, 400), strategy="nested")
        assert set(looked) == {taken}


def test_shortcuts_are_those_of_nested_execution_and_follow_through_equalities() -> None:
    text = "SEQ(A a, !SEQ(B b, C c, b.id = c.id = a.id), SEQ(D d, E e), a.id = e.id) WITHIN 9"
    made = compiled(query(text).plan, "nested")
    (block,) = made.blocks
    assert [(cut.outer, cut.inner) for cut in block.shortcuts] == [(("a", "id"), ("e", "id"))]
    (negation,) = block.negations
    assert {(cut.outer[0], cut.inner[0]) for cut in negation.block.shortcuts} == {("a", "b"), ("a", "c")}
    assert {cut.leaf for cut in negation.block.shortcuts} == {block.leaves["a"]}
    assert not compiled(query(text).plan, "blocks").blocks[0].shortcuts
    assert not compiled(query(text).plan, "nested", options={"shortcut": False}).blocks[0].shortcuts


@pytest.mark.parametrize("seed", range(20))
def test_the_cache_is_a_table_with_insert_update_and_purge(seed: int) -> None:
    chance = random.Random(seed)
    window = chance.randint(1, 12)
    table = history(seed, 4, 4, 50)
    text = f"SEQ(B b, D d, b.id = d.id) WITHIN {window}"
    evaluation = evaluation_over(text, table)
    (block,) = evaluation.program.blocks
    cache = ValueCache(evaluation.stack(block.leaves["b"], ("id",)))
    entries: dict[int, int] = {}
    for row, event in enumerate(table.to_pylist()):
        entries = {value: time for value, time in entries.items() if time >= event["ts"] - window}  # purge
        if event["type"] == "D":
            here = evaluation.stack(block.leaves["d"], ("id",))
            at = np.flatnonzero(evaluation.store.pos[here.rows] + evaluation.store.base == row)
            end = before(cache.stack, here.low[at])
            first = places(cache.stack.pos, here.reach[at], "left")
            assert cache.holds(here.start[at], first, end).tolist() == [event["id"] in entries]
        if event["type"] == "B":
            entries[event["id"]] = event["ts"]  # insert, or update
    assert not cache.holds(numbers(-evaluation.stride), numbers(0), numbers(5)).any()  # NULL


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("off", ["push_in", "shortcut"])
@pytest.mark.parametrize("text", [NESTED, DENIED])
def test_the_switches_change_no_match(text: str, off: str, seed: int) -> None:
    table = history(seed, 3, 12, 40).append_column("n", pa.array(range(40)))

    def run(text: str, table: pa.Table, **how: Any) -> pa.Table:
        options = {off: False}
        return query(text).match(table, order=how["order"], strategy="nested", options=options)

    assert_same_matches(text, table, run)


def test_options_are_named_and_an_unknown_name_lists_the_known() -> None:
    assert options_of({"bounds": False}) == Options(bounds=False)
    assert options_of(None) == options_of({}) == Options()
    assert {"bounds", "push_in", "shortcut"} <= set(switches())
    assert "memory" not in switches()
    chosen = query("SEQ(A a, B b) WITHIN 5")
    with pytest.raises(ValueError, match=r"unknown option 'bound': use one of bounds, .*push_in.*memory"):
        chosen.match(events("a1 b2"), options={"bound": False})
    with pytest.raises(ValueError, match="unknown option 'bound'"):
        chosen.stream(options={"bound": False})
    with pytest.raises(ValueError, match="the option bounds is True or False"):
        chosen.match(events("a1 b2"), options={"bounds": 0})
    with pytest.raises(ValueError, match="the option memory must be a number"):
        chosen.match(events("a1 b2"), options={"memory": True})
