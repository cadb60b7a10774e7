"""The figures of the papers: what is said of ours follows from the results."""

from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

from nestream.bench.figures import Figure, papers, plot_of, sentence

FIGURE = Figure("7", "window", "milliseconds", "it is faster", "No reason.", slower="nested", faster="views")


def result(value: int, nested: float, views: float, **more: Any) -> dict[str, Any]:
    ways = {"nested": {"best": nested}, "views": {"best": views}}
    ratios = {"views": {"middle": nested / views}}
    known = {"experiment": "window", "value": value, "matches": 5, "events": 100}
    return {**known, "ways": ways, "ratios": ratios, **more}


def said(*results: dict[str, Any], **settings: Any) -> str:
    figure = Figure(**{**vars(FIGURE), **settings})
    return sentence(figure, {str(number): one for number, one in enumerate(results)})


def test_the_order_and_the_factors_are_those_of_the_results() -> None:
    text = said(result(1, 6.0, 2.0), result(2, 8.0, 2.0), factors=(2, 5))
    assert text == (
        "The paper, figure 7: it is faster. Here nested takes 3.0 and 4.0 times as much as views, so "
        "that the order is the paper's; 1 of 2 reach its factor. No reason."
    )


def test_the_other_order_is_told() -> None:
    assert "0.50 times as much as views, in 1 of 1 cases less." in said(result(1, 1.0, 2.0))


def test_times_that_are_close_are_alike() -> None:
    assert "so that they are alike" in said(result(1, 1.0, 1.05), result(2, 1.05, 1.0))


def test_a_factor_can_be_about_one_value_alone() -> None:
    assert "nested takes 4.0 times" in said(result(1, 6.0, 2.0), result(2, 8.0, 2.0), at=2, factor=18.0)


def test_a_course_is_told_where_nothing_is_compared() -> None:
    results = {str(n): result(n, n / 1e3, n / 2e3) for n in (1, 2, 30)}
    figure = Figure(**{**vars(FIGURE), "slower": "", "x": "value", "name": "n"})
    assert "nested from 1.0 to 30, views from 0.50 to 15.0." in sentence(figure, results)


def test_times_over_matches_have_a_panel_for_each_benchmark() -> None:
    figure = Figure(**{**vars(FIGURE), "x": "matches", "panel": "window {value}"})
    one = result(3, 0.004, 0.002)
    one["ways"]["nested"]["curve"] = [[1, 0.001], [3, 0.002]]
    plot = plot_of(figure, {"a": one})
    assert plot is not None
    assert plot.panels[0].title == "window 3"
    assert plot.panels[0].series["nested"] == [(1, 1.0), (3, 2.0), (5, 4.0)]


def test_a_figure_without_results_is_not_drawn() -> None:
    assert plot_of(FIGURE, {}) is None


def test_the_five_papers_are_there_and_what_is_not_rebuilt_is_told() -> None:
    known = papers()
    assert len(known) == 5
    assert sum(len(paper.figures) for paper in known) >= 25
    assert all(one["why"] for paper in known for one in paper.missing)
    assert all(paper.missing for paper in known)
