"""Plots: every series is drawn and named, and the same figures give the same file."""

import xml.etree.ElementTree as ET

import pytest

from benchmarks.plots import Panel, Plot, shown, svg

LINES = Plot(
    "lines",
    "A & B",
    "x <1>",
    "y",
    (Panel("", {"a": [(1, 1), (10, 10), (100, 100)], "b": [(1, 5)]}),),
    True,
    True,
)
BARS = Plot("bars", "t", "x", "y", (Panel("", {"a": [(0, 1), (1, 2)]}, ("one", "two")),))


@pytest.mark.parametrize(
    ("plot", "names"), [(LINES, {"A & B", "x <1>", "y", "a", "b"}), (BARS, {"one", "two"})]
)
def test_every_name_is_written_and_the_file_depends_on_the_figures_alone(plot: Plot, names: set[str]) -> None:
    pytest.importorskip("matplotlib")
    words = {(element.text or "").strip() for element in ET.fromstring(svg(plot)).iter()}
    assert names <= words
    assert svg(plot) == svg(plot)


def test_a_plot_without_points_is_empty() -> None:
    assert Plot("e", "t", "x", "y", (Panel("", {"a": []}),)).empty
    assert not LINES.empty


def test_values_at_an_axis_are_short() -> None:
    assert [shown(value) for value in (0, 0.05, 1_500, 5e6)] == ["0", "0.05", "1.5k", "5M"]
