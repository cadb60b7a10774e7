"""The papers' experiments: every way finds what the reference finds, and figures say what the results say."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from benchmarks.events import folded
from benchmarks.experiments import papers
from benchmarks.figures import Figure, plot_of, sentence
from benchmarks.page import section
from benchmarks.run import run
from benchmarks.spec import Run
from benchmarks.strategies import FIXED, STRATEGIES, slower
from benchmarks.suites import SUITES
from nestream.data import generate
from nestream.logical.nodes import Negation, leaves, walk
from nestream.model.expression import variables
from nestream.strategies import PLANNERS
from nestream_papers.options import Options
from nestream_papers.sase import plan

FIGURE = Figure("7", "window", "milliseconds", "it is faster", "No reason.", slower="nested", faster="views")
ONE_OF_EACH = {
    (name, one.told["experiment"]): one
    for name in ("rewriting", "views", "predicates", "sase")
    for one in SUITES[name].benchmarks
}


def test_the_papers_plan_is_what_the_engine_calls_so() -> None:
    ways = papers()["sase"].ways({"ways": "plans"})
    assert Options(**ways["SASE"]["options"]) == plan.PAPER


def test_every_strategy_is_compared_on_every_workload() -> None:
    assert set(FIXED) == {name for name, planner in PLANNERS.items() if planner != PLANNERS["auto"]}
    compared = {one.name for one in STRATEGIES.benchmarks}
    for paper in ("rewriting", "views", "predicates", "sase"):
        assert compared.issuperset(f"{paper}/{one.name}" for one in SUITES[paper].benchmarks)
    queries = {one.query for one in STRATEGIES.benchmarks}
    others = (one for name in ("engine", "peers") for one in SUITES[name].benchmarks if one.shape)
    assert queries.issuperset(one.query for one in others)
    ways = {name: {"best": 3.0} for name in FIXED} | {"flat": {"best": 2.0}, "auto": {"best": 2.1}}
    assert slower({"ways": ways}) == pytest.approx(1.05)


@pytest.mark.parametrize("name", ONE_OF_EACH, ids="/".join)
def test_every_way_finds_what_the_reference_finds(name: tuple[str, str]) -> None:
    one = ONE_OF_EACH[name]
    given = {key: value for key, value in one.data.parameters.items() if key != "amounts_of"}
    if one.data.generator == "sase":
        given |= {"types": 20, "domains": [2] * given["attributes"]}
        query, window, events = (
            one.query.replace("T795 x1, T2199 x2, T7438 x3", "A x1, B x2, C x3"),
            "60 EVENTS",
            300,
        )
    else:
        query, events = one.query, 80
        window = f"{20_000 / given['rate']:.0f} ms"
    table = generate(one.data.generator, events=events, seed=2, **given)
    chosen = nestream.query(f"{query} WITHIN {window}")
    expected = chosen.match(table, strategy="reference")
    for way, how in one.ways.items():
        assert chosen.match(table, **how).equals(expected), way


@pytest.mark.parametrize(
    ("suite", "only", "shown"),
    [
        pytest.param("rewriting", "mixed/30", "### The mixed workload", marks=pytest.mark.slow),
        pytest.param("views", "memory/100", "### The same views in numbers", marks=pytest.mark.slow),
        ("sase", "second/20/10", "### Three ways to make a second equivalence test"),
        pytest.param("predicates", "domain/10", "| auto |", marks=pytest.mark.slow),
        pytest.param("strategies", "predicates/type/negative", "| auto |", marks=pytest.mark.slow),
    ],
)
def test_a_run_compares_the_ways_and_shows_them(suite: str, only: str, shown: str, tmp_path: Path) -> None:
    found = run(SUITES[suite], Run(events=600, repeats=1, only=(only,), folder=tmp_path, limit=120))
    (result,) = found["results"].values()
    assert all(way["matches"] == result["matches"] for way in result["ways"].values())
    text = section(SUITES[suite], found)
    assert shown in text
    assert f"{result['matches']:,}" in text
    if suite == "sase":
        assert result["also"]["selection"] >= result["matches"]
    if suite == "rewriting":
        curve = result["ways"]["nested"]["curve"]
        assert curve[0][0] <= curve[-1][0] <= result["matches"]


def test_some_tickers_have_fewer_amounts() -> None:
    table = pa.table({"type": ["A", "B", "A", "B"], "amount": [10, 10, 40, 40]})
    assert folded(table, {"B": 2}).column("amount").to_pylist() == [10, 10, 40, 20]
    assert folded(table, {}).equals(table)


def result(value: int, nested: float, views: float, **more: Any) -> dict[str, Any]:
    ways = {"nested": {"best": nested}, "views": {"best": views}}
    known = {"experiment": "window", "value": value, "matches": 5, "events": 100}
    return {**known, "ways": ways, "ratios": {"views": {"middle": nested / views}}, **more}


def said(*results: dict[str, Any], **settings: Any) -> str:
    figure = Figure(**{**vars(FIGURE), **settings})
    return sentence(figure, {str(number): one for number, one in enumerate(results)})


def test_a_figure_tells_the_order_and_the_factors_of_the_results() -> None:
    assert said(result(1, 6.0, 2.0), result(2, 8.0, 2.0), factor=(2, 5)) == (
        "The paper, figure 7: it is faster. Here nested takes 3.0 and 4.0 times as long as views, in the "
        "paper's order; 1 of 2 reach the paper's factor. No reason."
    )
    assert "0.50 times as long as views, less in 1 of 1 cases." in said(result(1, 1.0, 2.0))
    assert "about the same" in said(result(1, 1.0, 1.05), result(2, 1.05, 1.0))
    assert "nested takes 4.0 times" in said(result(1, 6.0, 2.0), result(2, 8.0, 2.0), at=2, factor=18.0)


def test_a_figure_without_a_comparison_tells_where_its_lines_go() -> None:
    results = {str(n): result(n, n / 1e3, n / 2e3) for n in (1, 2, 30)}
    figure = Figure(**{**vars(FIGURE), "faster": "", "x": "value", "name": "n"})
    assert "nested from 1.0 to 30, views from 0.50 to 15.0." in sentence(figure, results)


def test_times_over_matches_have_a_panel_for_each_benchmark() -> None:
    figure = Figure(**{**vars(FIGURE), "x": "matches", "panel": "window {value}"})
    one = result(3, 0.004, 0.002)
    one["ways"]["nested"]["curve"] = [[1, 0.001], [3, 0.002]]
    plot = plot_of(figure, {"one": one}, "views", "title")
    assert plot is not None
    assert plot.panels[0].title == "window 3"
    assert plot.panels[0].series["nested"] == [(1, 1.0), (3, 2.0), (5, 4.0)]
    assert plot_of(figure, {}, "views", "title") is None


def test_the_predicate_of_each_query_of_figure_6_7_can_be_pushed_in() -> None:
    """A predicate over both events of a two-event child is tested on complete results, pushed in or not."""
    (experiment,) = (e for e in papers()["predicates"].declared["experiment"] if e["name"] == "type")
    for case in experiment["cases"]:
        root = nestream.query(f"{case['query']} WITHIN 1 s").plan.root
        for negation in (node for node in walk(root) if isinstance(node, Negation)):
            inner = {leaf.variable for leaf in leaves(negation)}
            about = [variables(p) for node in walk(negation) for p in getattr(node, "predicates", ())]
            assert about
            assert all(names & inner != inner for names in about), case["name"]
