"""Parts of a query in different ways: each mix finds what the reference finds, and the planner mixes them."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import product

import pyarrow as pa
import pytest

from nestream.compose import choosing
from nestream.compose.choosing import MIXED, Chosen, Seen, rewritten
from nestream.compose.run import Run
from nestream.papers.engine.program import Program
from nestream.papers.optimize.parts import NESTED, OWN, VIEWS, Answered, Part
from nestream.papers.plan.mixing import How, Way, compile_mixed
from nestream.query import Query, query
from nestream.runtime.local import LocalRun
from tests.optimize.test_choosing import prepared, trades

QUERIES = {
    "two branches": "OR(SEQ(A a, !SEQ(D d, E e, d.amount > e.amount), B b), "
    "SEQ(A f, !SEQ(E g, F h, g.id = i.id), B i)) WITHIN 900",
    "two negations in one gap": "SEQ(A a, !SEQ(D d, E e, d.amount > e.amount), "
    "!SEQ(E f, F g, f.amount > b.amount), B b) WITHIN 900",
    "a bound, a view, a join": "SEQ(A a, !SEQ(G g, H h), B b, !SEQ(D d, E e, d.amount > e.amount), C c, "
    "!SEQ(E f, F i, f.amount < a.amount)) WITHIN 1200",
    "nested and negated": "SEQ(A a, SEQ(D d, E e, d.amount > e.amount), !SEQ(F f, G g, f.amount > g.amount), "
    "B b, !SEQ(F h, G i, h.id > b.id)) WITHIN 1500",
    "a negation in a negation": "SEQ(A a, !SEQ(D d, !SEQ(F f, G g, f.amount > g.amount), E e, d.id > e.id), "
    "B b, !SEQ(H h, I i, h.amount > b.amount)) WITHIN 1500",
    "a conjunction": "AND(A a, B b, !SEQ(D d, E e, d.amount > e.amount), !SEQ(F f, G g, f.id < b.id)) "
    "WITHIN 900",
    "in counts": "SEQ(A a, !SEQ(D d, E e, d.amount > e.amount), B b, !SEQ(F f, G g, f.id < b.id)) "
    "WITHIN 20 EVENTS",
}


def found_by(run: Run, program: Program) -> list[str]:
    local = LocalRun(run.plan.output, program, run.schema, run.kinds, run.unit)
    return sorted(map(str, pa.concat_tables(local.over(run.table)).to_pylist()))


@pytest.mark.parametrize("name", QUERIES)
def test_every_mix_finds_what_the_reference_finds(name: str) -> None:
    chosen, table = query(QUERIES[name]), trades(260, seed=5)
    run = prepared(chosen, table)
    own = replace(run, strategy="bounds").program()
    expected = sorted(map(str, chosen.match(table, strategy="reference").to_pylist()))
    assert expected
    for hows in product(How, repeat=len(own.blocks)):
        for joined in product((False, True), repeat=max(len(block.negations) for block in own.blocks)):
            ways = [
                Way(how, frozenset(n for n, _ in enumerate(block.negations) if joined[n]))
                if how is How.VIEWS
                else Way(how)
                for how, block in zip(hows, own.blocks, strict=True)
            ]
            program = compile_mixed(run.plan, run.schema, 1, False, own.options, ways)
            assert found_by(run, program) == expected, ways


def test_bounds_stay_bounds_beside_views() -> None:
    run = prepared(query(QUERIES["a bound, a view, a join"]), trades(50))
    options = replace(run, strategy="bounds").program().options
    program = compile_mixed(run.plan, run.schema, 1, False, options, [Way(How.VIEWS, frozenset({2}))])
    (block,) = program.blocks
    assert [part.stair is not None for part in block.negations] == [True, False, False]
    assert [part.viewed for part in block.negations] == [False, True, False]
    assert block.negations[2].block.levels is None


def test_one_branch_of_two_is_rewritten() -> None:
    chosen, table = query(QUERIES["two branches"]), trades(400, seed=6)
    run = prepared(chosen, table)
    own = replace(run, strategy="bounds").program()
    expected = sorted(map(str, chosen.match(table, strategy="reference").to_pylist()))
    assert rewritten(run.plan, own, frozenset({0})) is None  # nothing makes its comparison flat
    for some in ({1}, {0, 1}):
        found = rewritten(run.plan, own, frozenset(some))
        assert found is not None
        plan, flat = found
        assert len(flat.blocks) > len(own.blocks)
        ways = [Way(How.VIEWS) if block.negations else Way() for block in flat.blocks]
        program = compile_mixed(plan, run.schema, 1, False, own.options, ways)
        assert any(block.viewed for block in program.blocks)
        assert any(block.witnesses for block in program.blocks)
        assert found_by(run, program) == expected


BIG = {
    "branches": (
        "OR(SEQ(A a, B b, !SEQ(D d, E e, F f, d.amount > f.amount), C c), "
        "SEQ(A g, B h, !SEQ(D i, E j, i.amount > k.amount), C k)) WITHIN 40000",
        [VIEWS, OWN],
        [],
    ),
    "negations": (
        "SEQ(A a, !SEQ(D d, E e, F f, d.amount > f.amount), B b, !SEQ(G g, H h, g.amount > c.amount), C c) "
        "WITHIN 40000",
        [VIEWS],
        ["view", "join"],
    ),
}


@pytest.mark.parametrize("name", BIG)
def test_the_planner_chooses_for_each_part(name: str) -> None:
    text, ways, answered = BIG[name]
    found = prepared(query(text), trades()).chosen()
    assert found.strategy == MIXED
    assert [part.way for part in found.parts] == ways
    if answered:
        assert [one.by for one in found.parts[0].inner] == answered
    costs = {one.strategy: one.cost.nanoseconds for one in found.alternatives}
    assert costs[MIXED] == min(costs.values())


def test_the_plan_says_what_was_chosen_for_each_part_and_what_else_it_would_cost() -> None:
    chosen, table = query(BIG["negations"][0]), trades()
    told = chosen.explain(analyze=table)
    assert "Strategy mixed: it is clearly cheaper" in told
    assert "  (a, b, c) by views-balanced: bounds " in told
    assert "    ! (d, e, f) by a view: view " in told
    assert "    ! (g, h) by a join: view " in told
    assert "lateral join" in told
    assert "balanced view" in told
    (part,) = chosen.explain("json", analyze=table)["chosen"]["parts"]
    assert part["by"] == "views-balanced"
    assert [one["by"] for one in part["negations"]] == ["view", "join"]
    assert set(part["alternatives"]) == {OWN, NESTED, VIEWS}


@pytest.mark.parametrize("seed", range(12))
def test_any_choice_for_any_part_gives_the_same_matches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(choosing, "CHEAP", -1.0)
    monkeypatch.setattr(choosing, "cheapest", lambda ways: chance.choice(list(ways)))
    monkeypatch.setattr(choosing, "_REMEMBERED", {})
    table = trades(260, seed=seed)
    for text in QUERIES.values():
        chosen = query(text)
        assert chosen.match(table).equals(chosen.match(table, strategy="reference")), text


def test_a_part_costs_what_its_way_costs() -> None:
    chosen: Query = query(BIG["branches"][0])
    found: Chosen = prepared(chosen, trades()).chosen()
    for part in found.parts:
        assert isinstance(part, Part)
        assert part.cost in [one.cost for one in part.alternatives]
        assert all(isinstance(one, Answered) and one.cost.nanoseconds > 0 for one in part.inner)
    run = prepared(chosen, trades())
    own = replace(run, strategy="bounds").program()
    seen = Seen(run.schema, run.table)
    again = choosing.chosen_for(own, run.plan, seen, partial(rewritten, run.plan, own), running=OWN)
    assert again.ways == found.ways
