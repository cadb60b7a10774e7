"""Views at work: the paper's examples, what is computed once, what is kept and what is forgotten."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nestream.query import query
from nestream.runtime.local import LocalRun
from nestream_papers.options import Options
from nestream_papers.views.held import Facts, Results
from nestream_papers.views.view import View
from tests.papers.sharing.unions import dense_history, rows
from tests.papers.tools import at_work, events
from tests.papers.views.cases import random_case, wrong
from tests.strategies import VIEWS

# Recycle, Sharpen, Disinfect, Wash, Operate
POSITIVE = "SEQ(R r, AND(S s, D d), W w, O o) WITHIN 50"
NEGATED = "SEQ(R r, !AND(S s, D d), W w, O o) WITHIN 50"
KEYED = "SEQ(R r, AND(S s, D d, s.id = r.id, d.id = r.id), W w, O o) WITHIN 50"


class Driven:
    """A query that takes events in batches, with its views to look into."""

    def __init__(self, text: str, table: pa.Table, strategy: str, **options: Any) -> None:
        run = query(text).prepare(table.slice(0, 0), strategy=strategy, options=Options(**options))
        self.run = LocalRun(run.compiled())
        self.matches: list[pa.Table] = []

    def push(self, table: pa.Table) -> int:
        self.run.append(table)
        found = list(self.run.advance(table.column("ts")[-1].as_py()))
        self.matches += found
        return sum(part.num_rows for part in found)

    @property
    def views(self) -> list[View]:
        return [view for view_set in at_work(self.run.matcher).view_sets.values() for view in view_set.views]

    @property
    def view(self) -> View:
        (view,) = self.views
        return view

    def rows(self, view: View) -> list[tuple[int, int]]:
        """The view-intervals as rows, with those that were forgotten counted."""
        found = view.index.intervals
        left, right = (ends % view._stride + view._forgotten for ends in (found.left, found.right))
        return list(zip(left.tolist(), right.tolist(), strict=True))

    def intervals(self, view: View) -> list[tuple[int, int]]:
        """The times of the first events of each view-interval, and of the first events after it."""
        times = self.run.store.ts.tolist()
        return [(times[left], times[right]) for left, right in self.rows(view)]


def halves(text: str, before: str, after: str, strategy: str) -> tuple[Driven, int, int]:
    history = events(f"{before} {after}")
    driven = Driven(text, history, strategy)
    cut = len(before.split())
    return driven, driven.push(history.slice(0, cut)), driven.push(history.slice(cut))


# -- the paper's examples ----------------------------------------------------------------------------------


def test_example_1_an_aggressive_view_is_updated_beyond_its_right_bound() -> None:
    history = events("r1 s3 d10 w12 s13 w16 o18 o20")
    driven = Driven(POSITIVE, history, "views-aggressive")
    assert driven.push(history.take([0, 1, 2, 3, 6])) == 1
    assert driven.intervals(driven.view) == [(1, 12)]
    history = events("r1 s3 d10 w12 s13 w16 o20")
    driven = Driven(POSITIVE, history, "views-aggressive")
    driven.push(history.slice(0, 4))
    assert driven.views == [], "nothing is loaded before an outer result asks"
    assert driven.push(history.slice(4)) == 3
    assert driven.intervals(driven.view) == [(1, 16)]
    assert driven.view.counters.computed == len(driven.view.results) == 2


def test_example_2_a_negated_query_asks_whether_the_interval_is_empty() -> None:
    for strategy in VIEWS:
        driven, first, second = halves(NEGATED, "r1 s3 d10 w12 o18", "r19 s20 w21 o22", strategy)
        assert (first, second) == (0, 1)  # r19 w21 o22, between which only s20 lies
        assert isinstance(driven.view.facts, Facts)
        assert len(driven.view.results) == 0


def test_example_3_each_value_has_a_partition_with_a_bound_of_its_own() -> None:
    history = events("r1.10 r2.25 s3.10 d10.10 s11.25 d11.25 w12 o18 d19.25 w20 o21")
    for strategy in VIEWS:
        driven = Driven(KEYED, history, strategy)
        assert driven.push(history.slice(0, 8)) == 2
        view = driven.view
        assert len(view.parts) == 2
        assert len(view.index) == 2
        assert len(set(view.results.part.tolist())) == 2
        assert driven.push(history.slice(8)) == 5  # of r1 with w12 and w20 one each, of r2 one and two
        assert len(view.results) == 3


def test_example_4_an_aggressive_view_computes_what_is_never_used_and_others_do_not() -> None:
    before, after = "r1 s3 d4 w16 o17", "s17 d18 s19 d19 r20 s21 d22 w26 o30"
    unused = {}
    for strategy in VIEWS:
        driven, first, second = halves(POSITIVE.replace("50", "28"), before, after, strategy)
        assert (first, second) == (1, 1)
        unused[strategy] = driven.view.counters.unused
    assert unused["views-passive"] == unused["views-balanced"] == 0
    assert unused["views-aggressive"] > 0


def test_example_5_overlapping_view_intervals_are_looked_at_together() -> None:
    text = "SEQ(R r, AND(S s, D d), W w, O o, r.x = w.x) WITHIN 100"

    def row(ts: int, kind: str, x: int = 0) -> dict[str, Any]:
        return {"ts": ts, "type": kind, "id": 1, "x": x}

    history = pa.Table.from_pylist(
        [
            *(row(20, "R", 1), row(22, "R", 2), row(23, "S"), row(24, "D"), row(24, "W", 1), row(25, "D")),
            *(row(26, "W", 2), row(28, "R", 3), row(30, "O"), row(31, "W", 3), row(32, "O")),
        ],
        events("a1").schema,
    )
    driven = Driven(text, history, "views-passive")
    driven.push(history)
    assert driven.intervals(driven.view) == [(22, 24), (23, 26), (30, 31)]
    kept = {tuple(row) for row in np.column_stack(list(driven.view.results.rows.values())).tolist()}
    assert len(kept) == len(driven.view.results), "no result is there twice"
    reference = query(text).match(history, strategy="reference")
    assert sorted(r for part in driven.matches for r in rows(part)) == sorted(rows(reference))


def test_a_balanced_view_merges_what_overlaps_and_computes_nothing_between_disjoint_intervals() -> None:
    """R and W of one x leave two intervals, (1, 5) and (20, 25); nothing asks between them."""
    text = "SEQ(R r, SEQ(S s, D d), W w, O o, r.x = w.x) WITHIN 100"

    def row(ts: int, kind: str, x: int = 0) -> dict[str, Any]:
        return {"ts": ts, "type": kind, "id": 1, "x": x}

    between = [row(ts, kind) for ts, kind in ((6, "S"), (7, "D"), (8, "D"), (9, "D"))]
    history = pa.Table.from_pylist(
        [
            *(row(1, "R", 1), row(2, "S"), row(3, "D"), row(5, "W", 1)),
            *between,
            *(row(20, "R", 2), row(22, "S"), row(25, "W", 2), row(30, "O")),
        ],
        events("a1").schema,
    )
    computed, unused = {}, {}
    for strategy in VIEWS:
        driven = Driven(text, history, strategy)
        assert driven.push(history) == 1
        computed[strategy] = driven.view.counters.computed
        unused[strategy] = driven.view.counters.unused
    assert computed == {"views-aggressive": 7, "views-passive": 1, "views-balanced": 1}
    assert unused == {"views-aggressive": 6, "views-passive": 0, "views-balanced": 0}
    driven = Driven(text, history, "views-balanced")
    driven.push(history)
    assert driven.intervals(driven.view) == [(2, 5), (22, 25)]


def test_example_6_an_interval_that_was_empty_is_empty_when_asked_again() -> None:
    for strategy in VIEWS:
        driven, first, second = halves(NEGATED, "r20 s22 w26 o30", "o31", strategy)
        assert (first, second) == (1, 1)
        counters = driven.view.counters
        assert (counters.asked, counters.loads, counters.answered) == (2, 1, 1)
        assert len(driven.view.facts or ()) == 0


# -- what is computed, used and kept -----------------------------------------------------------------------


def test_a_result_is_computed_once_whatever_number_of_outer_results_gets_it() -> None:
    history = events("r1 r2 r3 s4 d5 w6 w7 o8 o9")
    for strategy in VIEWS:
        driven = Driven(POSITIVE, history, strategy)
        assert driven.push(history) == 3 * 2 * 2
        counters = driven.view.counters
        assert (counters.computed, counters.kept) == (1, 1)
        assert (counters.used, counters.reused, counters.unused) == (12, 11, 0)
        assert counters.asked == 12


def test_views_live_on_from_batch_to_batch() -> None:
    history = dense_history(Random(3), 400)
    text = "SEQ(A a, SEQ(B b, C c), D d) WITHIN 9"
    for strategy in VIEWS:
        whole, single = (Driven(text, history, strategy) for _ in range(2))
        whole.push(history)
        for number in range(len(history)):
            single.push(history.slice(number, 1))
        assert single.view.counters.kept <= whole.view.counters.kept
        assert single.view.counters.computed < 1.1 * whole.view.counters.computed
        assert single.view.counters.reused > 0


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many results views have stored; fails as soon as one is there twice."""
    counted: list[int] = []
    add = Results.add

    def adding(self: Results, *given: Any) -> None:
        add(self, *given)
        held = np.column_stack([self.part, *self.rows.values()])
        assert len(np.unique(held, axis=0)) == len(held)
        counted.append(len(held))

    monkeypatch.setattr(Results, "add", adding)
    return counted


@pytest.mark.parametrize("strategy", VIEWS)
def test_no_result_is_stored_twice(strategy: str, stored: list[int]) -> None:
    text = "SEQ(A a, AND(B b, C c, b.x <= c.x), D d, a.x <= d.x) WITHIN 12"
    for seed in range(6):
        random = Random(seed)
        history = dense_history(random, 120)
        driven, done = Driven(text, history, strategy), 0
        while done < len(history):
            size = random.choice((1, 7, 30))
            driven.push(history.slice(done, size))
            done += size
        assert sorted(r for part in driven.matches for r in rows(part)) == sorted(
            rows(query(text).match(history))
        )
    assert len(stored) > 20
    assert max(stored) > 3


STEADY = ["SEQ(A a, SEQ(B b, C c), D d, E e) WITHIN 12", "SEQ(A a, !AND(B b, C c), D d, E e) WITHIN 9"]


@pytest.mark.parametrize("text", STEADY)
def test_balanced_view_intervals_only_move_right(text: str) -> None:
    """The claim of the paper, for outer expressions without predicates; the engine checks it as well."""
    for seed in range(12):
        random = Random(seed)
        history = dense_history(random, 150)
        driven, done = Driven(text, history, "views-balanced"), 0
        before = (-1, -1)
        while done < len(history):
            size = random.choice((1, 1, 2, 9))
            driven.push(history.slice(done, size))
            done += size
            for view in driven.views:
                assert view.steady
                for left, right in driven.rows(view)[-1:]:
                    assert left >= before[0]
                    assert right >= before[1]
                    before = left, right
        assert driven.view.counters.moved_left == 0
        assert driven.view.counters.loads > 1


def test_with_a_predicate_between_outer_events_the_claim_fails_and_the_matches_are_right() -> None:
    text = "SEQ(A a, SEQ(B b, C c), D d, E e, a.id = e.id) WITHIN 50"
    history = events("a1.1 a3.2 b4 c5 d6 e7.2 e8.1")
    driven = Driven(text, history, "views-balanced")
    assert driven.push(history.slice(0, 6)) == 1
    assert driven.push(history.slice(6)) == 1
    assert not driven.view.steady
    assert driven.view.counters.moved_left == 1
    assert len(driven.view.results) == 1


# -- what is forgotten -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", VIEWS)
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, SEQ(B b, C c, b.id = a.id), D d) WITHIN 8",
        "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 8",
        "SEQ(A a, !SEQ(B b, C c, c.x < d.x), D d) WITHIN 8",
    ],
)
def test_the_views_of_a_long_stream_stay_small(strategy: str, text: str) -> None:
    history = dense_history(Random(1), 6_000)
    driven = Driven(text, history, strategy)
    sizes = []
    for start in range(0, len(history), 100):
        driven.push(history.slice(start, 100))
        (view,) = driven.views
        sizes.append(view.nbytes + view.parts._rows.nbytes)
        oldest = int(driven.run.store.ts[view.oldest])
        assert oldest >= history.column("ts")[start].as_py() - 2 * 8
    assert max(sizes[30:]) <= 2 * max(sizes[:30])
    assert max(sizes) < 40_000


def test_purged_results_that_nobody_got_are_counted() -> None:
    text = "SEQ(A a, SEQ(B b, C c), D d) WITHIN 5"
    history = events("b1 c2 a3 b4 c5 d6 a20 d21")
    driven = Driven(text, history, "views-aggressive")
    driven.push(history.slice(0, 6))
    driven.push(history.slice(6))
    assert len(driven.view.results) == 0
    assert driven.view.counters.unused == 2  # b1 c2 and b1 c5 lie in no query-interval
    assert driven.view.counters.bytes < driven.view.counters.peak


@pytest.mark.parametrize("strategy", VIEWS)
def test_a_view_that_would_hold_too_much_is_done_without(strategy: str) -> None:
    history = dense_history(Random(5), 40)
    for text in (
        "SEQ(A a, SEQ(B b, C c), D d) WITHIN 20",
        "SEQ(A a, !SEQ(B b, C c, c.x < a.x), D d) WITHIN 20",
        "SEQ(A a, SEQ(B b, SEQ(A a2, C c)), D d) WITHIN 20",
    ):
        driven = Driven(text, history, strategy, memory=200)
        driven.push(history)
        assert driven.views
        assert all(len(view.results) <= 200 // 56 for view in driven.views)
        assert sorted(r for part in driven.matches for r in rows(part)) == sorted(
            rows(query(text).match(history, strategy="reference"))
        )


# -- switches, explanations, random queries ----------------------------------------------------------------


def test_without_partition_equal_values_are_tested_at_each_use() -> None:
    history = events("r1.1 r2.2 s3.1 d4.1 s5.2 d6.2 w7 o8")
    for strategy in VIEWS:
        apart, together = (Driven(KEYED, history, strategy, partition=flag) for flag in (True, False))
        assert apart.push(history) == together.push(history) == 2
        assert len(apart.view.parts) == 2
        assert len(together.view.parts) == 0
        assert together.view.counters.used > apart.view.counters.used


def test_explain_tells_of_views_and_analyze_of_what_they_did() -> None:
    history = events("r1 r2 r3 s4 d5 w6 w7 o8 o9")
    chosen = query(POSITIVE)
    assert "(s, d) from passive view" in chosen.explain(strategy="views-passive")
    assert "! (s, d) after r before w: balanced view" in query(NEGATED).explain(strategy="views-balanced")
    told = chosen.explain(strategy="views-balanced", analyze=history)
    assert "view of (s, d): 1 computed, 1 kept, 12 used, 11 again, 0 never; 11 of 12 intervals known" in told
    found = chosen.explain("json", strategy="views-balanced", analyze=history)["measured"]["views"]
    assert [(view["variables"], view["computed"], view["reused"]) for view in found] == [(["s", "d"], 1, 11)]


@pytest.mark.parametrize("strategy", VIEWS)
def test_random_inner_queries_agree(strategy: str) -> None:
    for number in range(40):
        assert not (said := wrong(random_case(0, number), strategy, number)), said


@pytest.mark.slow
@pytest.mark.parametrize("strategy", VIEWS)
def test_thousands_of_random_inner_queries_agree(strategy: str) -> None:
    for number in range(3_000):
        assert not (said := wrong(random_case(1, number), strategy, number)), said
