"""Plots as SVG by Matplotlib: lines over numbers, or bars over names, in panels beside each other.

The file depends on the figures and Matplotlib's version alone, so a page made again is the same to the byte.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Points = Sequence[tuple[float, float]]
STYLE: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "lines.marker": "o",
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "nestream",
}
NARROW = 30.0
"""A logarithmic axis that spans less than this factor also names the values between powers of ten."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a line for each series; with `words`, a group of bars for each word."""

    title: str
    series: Mapping[str, Points]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """Panels with the same axes and one legend."""

    name: str
    title: str
    x: str
    y: str
    panels: tuple[Panel, ...]
    log_x: bool = False
    log_y: bool = False

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.svg"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(points for panel in self.panels for points in panel.series.values())


def shown(value: float, _: object = None) -> str:
    """A value at an axis.

    >>> [shown(v) for v in (0, 0.05, 12, 2_000, 5_000_000)]
    ['0', '0.05', '12', '2k', '5M']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def svg(plot: Plot) -> str:
    """The text of the plot's file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        words = max((len(panel.words) for panel in plot.panels), default=0)
        width = 3.2 * len(plot.panels) if len(plot.panels) > 1 else max(5.5, 0.9 * words)
        figure = Figure(figsize=(width + 0.8, 3.4), layout="constrained")
        names = list(dict.fromkeys(name for panel in plot.panels for name in panel.series))
        colours = {name: f"C{place % 10}" for place, name in enumerate(names)}
        axes = figure.subplots(1, len(plot.panels), squeeze=False)[0]
        for ax, panel in zip(axes, plot.panels, strict=True):
            _draw(ax, plot, panel, colours)
        axes[0].set_ylabel(plot.y)
        figure.suptitle(plot.title, fontweight="bold", fontsize=10)
        if len(names) > 1:
            known = dict(
                pair[::-1] for ax in axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)
            )
            shown_names = [name for name in names if name in known]
            handles = [known[name] for name in shown_names]
            figure.legend(
                handles, shown_names, loc="outside lower center", ncols=min(len(names), 4), frameon=False
            )
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Creator": None, "Date": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _draw(ax: Any, plot: Plot, panel: Panel, colours: Mapping[str, str]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_title(panel.title, fontsize=9)
    ax.set_xlabel(plot.x)
    thick = 0.8 / max(len(panel.series), 1)
    for place, (name, line) in enumerate(panel.series.items()):
        if panel.words:
            shift = (place + 0.5) * thick - 0.4
            ax.bar(
                [x + shift for x, _ in line],
                [y for _, y in line],
                thick * 0.9,
                color=colours[name],
                label=name,
            )
        elif line:
            ax.plot(*zip(*sorted(line), strict=True), color=colours[name], label=name)
    if panel.words:
        ax.set_xticks(range(len(panel.words)), panel.words)
        ax.grid(False, axis="x")
    for axis, scale, log in (
        (ax.xaxis, ax.set_xscale, plot.log_x and not panel.words),
        (ax.yaxis, ax.set_yscale, plot.log_y),
    ):
        if log:
            scale("log")
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < NARROW * low else (1.0,)))
            axis.set_minor_locator(NullLocator())
        elif axis is ax.yaxis:
            ax.set_ylim(bottom=0)
        if axis is ax.yaxis or not panel.words:
            axis.set_major_formatter(shown)
