"""The strategy that auto is: what is chosen for which events, at next to no cost, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nestream.compose import choosing
from nestream.compose.gathering import statistics_of
from nestream.compose.outlining import outlines_of, shapes_in
from nestream.compose.run import STRATEGIES, Run
from nestream.papers.engine.context import Bindings
from nestream.papers.engine.join import Join
from nestream.papers.engine.program import Options
from nestream.papers.optimize.cost import Model
from nestream.papers.optimize.strategies import Strategies
from nestream.query import Query, query

KINDS = ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J")
CHOSEN = {
    "an inner sequence of three whose ends are compared": (
        "SEQ(A a, B b, !SEQ(D d, E e, F f, d.amount > f.amount), C c) WITHIN 40000",
        "views-balanced",
    ),
    "a trailing one": ("SEQ(A a, B b, !SEQ(D d, E e, d.amount > e.amount)) WITHIN 40000", "views-balanced"),
    "one that an equality hangs on the match": (
        "SEQ(A a, B b, !SEQ(D d, E e, F f, d.id = c.id), C c) WITHIN 40000",
        "flat",
    ),
    "one that a comparison hangs on the match": (
        "SEQ(A a, B b, !SEQ(D d, E e, d.amount > c.amount), C c) WITHIN 40000",
        "bounds",
    ),
    "a single event": ("SEQ(A a, B b, !(D d, d.amount > c.amount), C c) WITHIN 40000", "bounds"),
    "a small window": ("SEQ(A a, B b, !SEQ(D d, E e, d.amount > e.amount), C c) WITHIN 4000", "bounds"),
    "a bound": ("SEQ(A a, B b, !SEQ(D d, E e), C c) WITHIN 40000", "bounds"),
}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    choosing._REMEMBERED.clear()


def trades(count: int = 10_000, seed: int = 1) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.cumsum(chance.integers(1, 200, count)),
            "type": np.array(KINDS)[chance.integers(0, len(KINDS), count)],
            "amount": chance.integers(0, 1_000, count),
            "id": chance.integers(0, 20, count),
        }
    )


def prepared(chosen: Query, table: pa.Table) -> Run:
    return chosen.prepare(table, time="ts", type="type", types=None, order="time", strategy="auto")


@pytest.mark.parametrize("name", CHOSEN)
def test_the_strategy_that_is_chosen(name: str) -> None:
    text, strategy = CHOSEN[name]
    assert prepared(query(text), trades()).chosen().strategy == strategy


@pytest.mark.parametrize("name", ["an inner sequence of three whose ends are compared", "a trailing one"])
def test_the_chosen_strategy_gives_the_same_matches(name: str) -> None:
    chosen, table = query(CHOSEN[name][0]), trades(2_500)
    assert prepared(chosen, table).chosen().strategy in STRATEGIES
    assert chosen.match(table).equals(chosen.match(table, strategy="bounds"))


FOUND = {
    "nothing stands around what is nested": "SEQ(SEQ(A a, B b, b.amount > a.amount)) WITHIN 900",
    "all that is in it is nested": "SEQ(SEQ(A a, B b, b.id < a.id), SEQ(C c, D d, d.id > c.id)) WITHIN 900",
    "nested in an unbounded window": "SEQ(SEQ(A a, B b, a.id + b.id = 3)) WITHIN UNBOUNDED",
    "a window of one event": "SEQ(SEQ(A a, B b, a.id < b.id OR a.amount < 2)) WITHIN 1 EVENTS",
}


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("place", range(3))
def test_cases_that_random_ones_found(name: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alternative is taken once, however cheap the query."""
    monkeypatch.setattr(choosing, "CHEAP", -1.0)
    monkeypatch.setattr(choosing, "cheapest", lambda alternatives: alternatives[place])
    chosen, table = query(FOUND[name]), trades(60)
    assert len(prepared(chosen, table).chosen().alternatives) == 3
    assert chosen.match(table).equals(chosen.match(table, strategy="reference"))


def test_nothing_is_looked_at_where_all_negations_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any, **options: Any) -> Any:
        raise AssertionError("statistics were gathered")

    monkeypatch.setattr(choosing, "statistics_of", refused)
    monkeypatch.setattr(choosing, "Statistics", refused)
    table = trades(500)
    for text in ("SEQ(A a, B b) WITHIN 900", "SEQ(A a, !SEQ(B b, !C c, D d), E e) WITHIN 900"):
        chosen = prepared(query(text), table).chosen()
        assert (chosen.strategy, chosen.alternatives) == ("bounds", ())
        query(text).match(table)


def test_a_cheap_query_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "statistics_of", None)
    chosen = prepared(query(CHOSEN["a small window"][0]), trades()).chosen()
    assert chosen.reason == "it is cheap anyway"
    assert chosen.estimate is not None
    assert chosen.estimate < choosing.CHEAP


def test_a_choice_is_remembered_until_the_events_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered: list[int] = []
    gather = statistics_of

    def noted(shapes: Any, schema: Any, events: pa.Table, **options: Any) -> Any:
        gathered.append(events.num_rows)
        return gather(shapes, schema, events, **options)

    monkeypatch.setattr(choosing, "statistics_of", noted)
    chosen = query(CHOSEN["a trailing one"][0])
    for table in (trades(), trades(seed=2), trades(9_000)):
        assert prepared(chosen, table).chosen().strategy == "views-balanced"
    assert gathered == [10_000]
    rare = pa.concat_tables([trades(5_000), trades(5_000).set_column(1, "type", pa.array(["Z"] * 5_000))])
    order = pa.array(np.argsort(rare.column("ts").to_numpy(), kind="stable"))
    prepared(chosen, rare.take(order)).chosen()
    assert len(gathered) == 2


def test_with_a_switch_off_the_engine_goes_its_own_way() -> None:
    run = prepared(query(CHOSEN["a trailing one"][0]), trades())
    chosen = run.chosen({"reach": False, "narrowing": False})
    assert chosen.strategy == "bounds"
    assert chosen.reason == "reach, narrowing off: switches are about the engine's own way"
    assert run.chosen(Options(memory=1 << 28)).strategy == "views-balanced"


def test_explain_shows_what_was_considered_and_what_a_run_took() -> None:
    chosen, table = query(CHOSEN["a trailing one"][0]), trades()
    assert "Strategy" not in chosen.explain()
    assert ", for assumed events\n  bounds: " in chosen.explain(verbose=True)
    bound = query(CHOSEN["a bound"][0]).explain(verbose=True)
    assert "Strategy bounds: every negation is a bound\n" in bound
    told = chosen.explain(analyze=table)
    assert "Strategy views-balanced: it is clearly cheaper" in told
    for strategy in ("  bounds: ", "  nested: ", "  views-balanced: "):
        assert strategy in told
    assert " ms (chosen)" in told
    assert "Measured over 10,000 events" in told
    data = chosen.explain(format="json", analyze=table)
    assert data["chosen"]["strategy"] == "views-balanced"
    assert set(data["chosen"]["alternatives"]) == {"bounds", "nested", "views-balanced"}
    assert data["measured"]["blocks"][0]["nanoseconds"] > 0
    assert "bounds" in chosen.explain(format="json", verbose=True)["chosen"]["alternatives"]
    assert prepared(chosen, table.slice(0, 0)).chosen().reason == "nothing is known of the events"


@pytest.mark.parametrize("name", ["a trailing one", "a single event", "a small window"])
def test_rows_of_a_lateral_join_are_estimated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All candidates at once and without an end at the first: then rows can be counted."""
    chosen, table = query(CHOSEN[name][0]), trades(3_000)
    run = prepared(chosen, table)
    own = run.program({"once": False})
    (one,) = outlines_of(own, run.plan)
    known = statistics_of(list(shapes_in(one)), run.schema, table)
    strategies = Strategies(Model(known))
    (inner,) = one.inner
    outer = strategies.model.rows(one.shape, 0, len(one.shape))
    expected = strategies.joined(inner, outer, len(one.shape), len(one.shape), once=False).rows
    built = 0
    extended = Join.filtered

    def counted(self: Join, bindings: Bindings, *rest: Any) -> Any:
        nonlocal built
        built += bindings.count if self.negation is not None else 0
        return extended(self, bindings, *rest)

    monkeypatch.setattr(Join, "filtered", counted)
    chosen.match(table, strategy="nested", options={"once": False, "bounds": False, "shortcut": False})
    assert 0.4 * built < expected < 2.5 * built
