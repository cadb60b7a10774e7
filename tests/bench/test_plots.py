"""Plots: what is written is well-formed, depends on the figures alone, and has every point in its place."""

import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

from nestream.bench.plots import Panel, Plot, powers, round_values, shown, svg

LINES = Plot(
    "A & B", "x <1>", "y", (Panel("", {"a": [(1, 1), (10, 10), (100, 100)], "b": [(1, 5)]}),), True, True
)


def circles(text: str) -> list[tuple[float, float]]:
    found = ET.fromstring(text).iter("{http://www.w3.org/2000/svg}circle")
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in found]


def test_text_is_escaped_and_every_name_stands_in_the_legend() -> None:
    words = [element.text for element in ET.fromstring(svg(LINES)).iter() if element.text]
    assert {"A & B", "x <1>", "y", "a", "b"} <= set(words)


def test_the_same_figures_give_the_same_file() -> None:
    assert svg(LINES) == svg(LINES)


def test_powers_lie_on_a_line_with_both_axes_logarithmic() -> None:
    (x1, y1), (x2, y2), (x3, y3), _ = circles(svg(LINES))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)


def test_a_greater_value_has_a_higher_bar() -> None:
    plot = Plot("t", "x", "y", (Panel("", {"a": [(0, 1), (1, 2)]}, ("one", "two")),))
    bars = ET.fromstring(svg(plot)).iter("{http://www.w3.org/2000/svg}rect")
    low, high = (float(bar.attrib["height"]) for bar in bars)
    assert high == pytest.approx(2 * low, abs=0.2)


def test_a_single_value_and_a_zero_can_be_drawn() -> None:
    assert len(circles(svg(Plot("t", "x", "y", (Panel("", {"a": [(3, 0)]}),))))) == 1


def test_axes_have_few_round_values() -> None:
    assert powers(1, 10**6) == [1, 100, 10_000, 1_000_000]
    assert powers(2, 8) == [2, 5]
    assert round_values(0, 0.07) == [0, 0.02, 0.04, 0.06]
    assert shown(1_500) == "1.5k"


def test_a_plot_without_points_is_empty() -> None:
    assert Plot("t", "x", "y", (Panel("", {"a": []}),)).empty
    assert not LINES.empty
