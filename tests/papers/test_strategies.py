"""The strategies: what nested execution builds, which names are known, and states that pass between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nestream import StateError
from nestream.query import query
from nestream.runtime.spark.partitioning import common_key
from nestream.strategies import STRATEGIES
from nestream_papers.engine.context import Bindings, Mask, Ranges
from nestream_papers.engine.join import Join
from tests.papers.sharing.unions import dense_history, rows
from tests.papers.tools import compiled, events, program

NESTED = "SEQ(A a, !SEQ(B b, C c), SEQ(D d, E e), A a2) WITHIN 50"


@pytest.fixture
def extended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], int]]:
    """What the joins of a run extend: the variables bound in that order, and how many partial matches."""
    seen: list[tuple[tuple[str, ...], int]] = []
    extend = Join.extended

    def spying(self: Join, bindings: Bindings, ranges: Ranges, found: Mask | None) -> Iterator[Bindings]:
        seen.append((tuple(bindings.rows), bindings.count))
        return extend(self, bindings, ranges, found)

    monkeypatch.setattr(Join, "extended", spying)
    return seen


def test_nested_execution_binds_the_outer_events_first_and_negations_last(
    extended: list[tuple[tuple[str, ...], int]],
) -> None:
    history = events("a1 b2 d3 e4 a5")
    assert query(NESTED).match(history, strategy="nested").num_rows == 1
    assert [names for names, _ in extended] == [
        ("a2",),
        ("a2", "a"),
        ("a2", "a", "e"),
        ("a2", "a", "e", "d"),  # the negation begins with the whole match
        ("a2", "a", "e", "d", "c"),
        ("a2", "a", "e", "d"),  # and what it leaves is given
    ]


def test_nested_execution_builds_all_inner_results_for_each_outer_one(
    extended: list[tuple[tuple[str, ...], int]],
) -> None:
    text = "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 50"
    history = events("a1 a2 b3 b4 c5 c6 d7")
    built = {}
    for strategy in ("auto", "nested"):
        extended.clear()
        assert query(text).match(history, strategy=strategy).num_rows == 0
        built[strategy] = sum(count for names, count in extended if {"b", "c"} <= set(names))
    assert built == {"auto": 0, "nested": 8}


def test_an_inner_expression_looks_only_into_the_window_that_the_outer_result_leaves(
    extended: list[tuple[tuple[str, ...], int]],
) -> None:
    history = events("d1 e2 a3 d4 e5 a6 d7 e8")
    assert query(NESTED).match(history, strategy="nested").num_rows == 1
    widest = dict(extended)
    assert widest["a2", "a", "e"] == 1  # e2 and e8 are not between the two events of A


@pytest.mark.parametrize("strategy", ["nested", "flat"])
def test_each_part_of_a_rare_combination_agrees_with_the_reference(strategy: str) -> None:
    chosen = query(
        "SEQ(!SEQ(D d, E e), A a, !AND(B b, !SEQ(C c, D d2), E e2), OR(B b2, SEQ(C c2, !E e3, D d3)), "
        "!SEQ(A a3, B b3, C c3)) WITHIN 8"
    )
    for seed in range(5):
        history = dense_history(Random(seed), 24)
        assert rows(chosen.match(history, strategy=strategy)) == rows(
            chosen.match(history, strategy="reference")
        )


# -- names and states --------------------------------------------------------------------------------------


def test_an_unknown_strategy_is_an_error_that_lists_the_known_ones() -> None:
    chosen, history = query("SEQ(A a, B b) WITHIN 5"), events("a1 b2")
    ways: dict[str, Callable[..., Any]] = {
        "match": lambda strategy: chosen.match(history, strategy=strategy),
        "batches": lambda strategy: next(chosen.batches(history, strategy=strategy)),
        "count": lambda strategy: chosen.count(history, strategy=strategy),
        "stream": lambda strategy: chosen.stream(strategy=strategy),
        "explain": lambda strategy: chosen.explain(strategy=strategy),
    }
    for way in ways.values():
        way("nested")
        with pytest.raises(ValueError, match=f"unknown strategy 'falt': use one of {', '.join(STRATEGIES)}"):
            way("falt")
    assert {"auto", "reference", "nested", "flat", "native"} <= set(STRATEGIES)


def test_the_reference_has_no_streams() -> None:
    with pytest.raises(
        ValueError, match="the reference evaluator cannot run on a stream: it needs all events at once"
    ):
        query("SEQ(A a, B b) WITHIN 5").stream(strategy="reference")


def test_a_state_passes_between_strategies_with_the_same_blocks_and_is_refused_by_others() -> None:
    chosen = query("SEQ(A a, !SEQ(B b, C c), D d) WITHIN 9")
    history = events("a1 b2 d3 c4 d5")

    def started(strategy: str) -> Any:
        return chosen.stream(schema=history.schema, strategy=strategy)

    for saved_by, restored_by in (("auto", "nested"), ("nested", "auto"), ("flat", "flat")):
        stream = started(saved_by)
        parts = [stream.push_batch(history.slice(0, 3))]
        stream = started(restored_by).restore(stream.save())
        parts += [stream.push_batch(history.slice(3)), stream.finish_batch()]
        assert rows(pa.concat_tables(parts)) == rows(chosen.match(history, strategy="reference"))
    state = started("auto").save()
    with pytest.raises(StateError, match="STRATEGY flat"):
        started("flat").restore(state)


def test_nested_programs_have_levels_and_no_chains() -> None:
    chosen = query("SEQ(A a, SEQ(B b, AND(C c, D d)), E e) WITHIN 5")
    (block,) = program(str(chosen)).blocks
    assert block.levels is None
    (nested,) = compiled(chosen.plan, "nested").blocks
    assert nested.chain is None
    assert nested.levels == {"a": 0, "b": 1, "c": 2, "d": 2, "e": 0}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SEQ(A a, !SEQ(B b, C c, b.id = c.id = a.id), D d, a.id = d.id) WITHIN 9", "id"),
        ("SEQ(A a, !SEQ(B b, C c, c.id = a.id), D d, a.id = d.id) WITHIN 9", None),
        ("SEQ(A a, !SEQ(B b, C c, b.id = c.id = a.id)) WITHIN 9", "id"),
        ("SEQ(A a, !SEQ(B b, C c)) WITHIN 9", None),
    ],
)
def test_events_are_split_by_key_only_if_witnesses_have_it_too(text: str, key: str | None) -> None:
    for strategy in ("blocks", "nested", "flat"):
        made = compiled(query(text).plan, strategy)
        assert any(block.witnesses for block in made.blocks) == (strategy == "flat")
        assert common_key(made) == key
