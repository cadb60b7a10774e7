"""The order of the rows, and so LIMIT, are those of the semantics whatever the memory budget is.

Everything here goes through the public names: events with many equal times, budgets of a few matches.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.strategies import STRATEGIES
from tests.generators.histories import random_history, types_of
from tests.generators.queries import random_query

WAYS = [strategy for strategy in STRATEGIES if strategy != "reference"]
BUDGETS = (1, 200, 500, 1500, 4000)
CASES = 25


def tied(seed: int) -> tuple[str, pa.Table, str, Random]:
    """A random query, often with a LIMIT, over a history in which many events have the same time."""
    random = Random(f"ties/{seed}")
    text = random_query(random)
    table = random_history(random, types=types_of(text))
    coarse = random.choice((1, 2, 4, 8))
    times = pa.array(
        [time // coarse for time in table.column("ts").to_pylist()], table.schema.field("ts").type
    )
    table = table.set_column(table.schema.get_field_index("ts"), "ts", times)
    if random.random() < 0.5 and "LIMIT" not in text:
        text += f" LIMIT {random.randint(1, 4)}"
    return text, table, random.choice(("time", "arrival")), random


def pushed(stream: Any, batches: list[pa.Table]) -> list[list[str]]:
    """The matches that each batch decides."""
    return [*(rows(stream.push_batch(batch)) for batch in batches), rows(stream.finish_batch())]


def rows(table: pa.Table) -> list[str]:
    """A text for each match; NaN equals itself."""
    return [repr(row) for row in table.to_pylist()]


@pytest.mark.parametrize("strategy", WAYS)
def test_a_query_has_the_rows_of_the_reference_in_their_order_at_any_budget(strategy: str) -> None:
    for seed in range(CASES):
        text, table, order, random = tied(seed)
        query, options = nestream.query(text), {"memory": random.choice(BUDGETS)}
        expected = query.match(table, order=order, strategy="reference")
        found = query.match(table, order=order, strategy=strategy, options=options)
        assert rows(found) == rows(expected), (seed, text, options)
        assert query.count(table, order=order, strategy=strategy, options=options) == len(expected), (
            seed,
            text,
        )
        batches = [*query.batches(table, order=order, strategy=strategy, options=options)]
        assert rows(pa.concat_tables(batches)) == rows(expected), (seed, text, options)


def test_a_set_has_the_rows_of_each_query_in_their_order_at_any_budget() -> None:
    for seed in range(CASES):
        text, table, order, random = tied(seed)
        query, options = nestream.query(text), {"memory": random.choice(BUDGETS)}
        expected = query.match(table, order=order, strategy="reference")
        both = nestream.queries({"one": text, "other": text})
        each = both.match_each(table, order=order, options=options)
        assert rows(each["one"]) == rows(each["other"]) == rows(expected), (seed, text, options)
        if query.plan.limit is None:
            together = both.match(table, order=order, options=options).to_pylist()
            ends = [row["match_end"] for row in together if row["query"] == "other"]
            assert ends == expected.column("match_end").to_pylist(), (seed, text, options)


@pytest.mark.parametrize("strategy", WAYS)
def test_a_stream_has_the_same_rows_in_the_same_order_at_any_budget(strategy: str) -> None:
    for seed in range(CASES):
        text, table, order, random = tied(seed)
        table = table.sort_by("ts")
        query, memory = nestream.query(text), random.choice(BUDGETS)
        cuts = sorted({0, table.num_rows, *(random.randrange(table.num_rows + 1) for _ in range(2))})

        batches = [table.slice(first, end - first) for first, end in pairwise(cuts)]
        settings = {"schema": table.schema, "order": order, "strategy": strategy}
        found = pushed(query.stream(options={"memory": memory}, **settings), batches)
        assert found == pushed(query.stream(**settings), batches), (seed, text, memory)


def test_the_matches_that_one_push_decides_are_in_the_order_of_the_output() -> None:
    query = nestream.query("SEQ(A a, B b, !(C c, c.id = a.id)) WITHIN 10")
    events = [{"ts": 1, "type": "A", "id": 1}, {"ts": 2, "type": "A", "id": 2}]
    events += [{"ts": time, "type": "B", "id": 0} for time in (3, 4, 5)]
    for memory in (1, 10**9):
        stream = query.stream(options={"memory": memory})
        stream.push_batch(events)
        found = stream.finish_batch().to_pylist()
        assert [(row["b"]["ts"], row["a"]["ts"]) for row in found] == [
            (3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2),
        ]  # fmt: skip


def test_a_projection_that_is_decided_late_stands_at_its_own_end_in_a_set_too() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 RETURN a LIMIT 1"
    kinds = [("A", 1), ("A", 2), ("B", 2), ("B", 1)]
    events = [{"ts": time, "type": kind, "id": id} for time, (kind, id) in enumerate(kinds)]
    alone = nestream.query(text).match(events).to_pylist()
    assert [row["a"]["id"] for row in alone] == [1]
    assert nestream.queries([text]).match_each(events)["q1"].to_pylist() == alone


@pytest.mark.parametrize("memory", [1, 10_000, 1_000_000])
@pytest.mark.parametrize(
    "pattern", ["AND(A a, B b, C c)", "SEQ(AND(A a, B b), C c)", "OR(AND(A a, B b), SEQ(B d, C c))"]
)
def test_limit_takes_the_first_rows_of_a_moment_that_exceeds_the_budget(pattern: str, memory: int) -> None:
    events = [{"ts": 1 if kind != "C" else 2, "type": kind, "n": n} for n in range(30) for kind in "CBA"]
    options = {"memory": memory}
    expected = nestream.query(f"{pattern} WITHIN 5").match(events).to_pylist()
    for limit in (1, 7, 1000):
        found = nestream.query(f"{pattern} WITHIN 5 LIMIT {limit}").match(events, options=options)
        assert found.to_pylist() == expected[:limit]


@pytest.mark.parametrize("after", ["", "zz", "zzzzzzzzd", "dzzzzzzzzz"])
def test_neighbouring_moments_are_cut_apart_whatever_comes_after_them(after: str) -> None:
    kinds = ("abdad" + after).upper()
    events = [{"ts": ts, "type": kind} for ts, kind in enumerate(kinds)]
    found = nestream.query("OR(A a, D d) WITHIN 1").match(events, options={"memory": 1})
    assert found.column("match_end").to_pylist() == [ts for ts, kind in enumerate(kinds) if kind in "AD"]


def test_limit_of_far_more_matches_than_there_is_memory_for_ends_soon() -> None:
    events = [{"ts": 1, "type": kind, "n": n} for n in range(3000) for kind in "ABC"]
    found = nestream.query("AND(A a, B b, C c) WITHIN 5 LIMIT 3").match(events).to_pylist()
    assert [(row["a"]["n"], row["b"]["n"], row["c"]["n"]) for row in found] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, 2),
    ]
