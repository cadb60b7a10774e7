"""Plots as SVG: lines over numbers, or bars over names, in one panel or several beside each other.

What is written depends on the figures alone, so that a page made anew from the same results is the same.
Text is in whatever plain font the reader has; lines and text change with a light or a dark background.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]

PANEL_HEIGHT = 210
LEFT, RIGHT, TOP, BOTTOM = 66, 16, 54, 60
LETTER = 7.6
"""Width of a letter of the title."""
LINE = 17
"""Height of a line of the legend."""
COLOURS = 8
STYLE = """text{font:12px sans-serif;fill:#333}.t{font-size:14px;font-weight:bold}.s{font-size:11px}
.g{stroke:#ddd}.a{stroke:#888}.m{text-anchor:middle}.e{text-anchor:end}polyline{fill:none;stroke-width:2}
.c0{stroke:#1f6fb4;fill:#1f6fb4}.c1{stroke:#c9480a;fill:#c9480a}.c2{stroke:#1a8a4a;fill:#1a8a4a}
.c3{stroke:#8a4fb0;fill:#8a4fb0}.c4{stroke:#a8760b;fill:#a8760b}.c5{stroke:#0d8f96;fill:#0d8f96}
.c6{stroke:#c23a72;fill:#c23a72}.c7{stroke:#6a6a6a;fill:#6a6a6a}
@media (prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#444}
.c0{stroke:#6db3f2;fill:#6db3f2}.c1{stroke:#f79256;fill:#f79256}.c2{stroke:#5fcf8f;fill:#5fcf8f}
.c3{stroke:#c39bea;fill:#c39bea}.c4{stroke:#e3b74a;fill:#e3b74a}.c5{stroke:#5cd3d9;fill:#5cd3d9}
.c6{stroke:#f286b2;fill:#f286b2}.c7{stroke:#bdbdbd;fill:#bdbdbd}}"""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a line for each name; over words, a group of bars for each word instead."""

    title: str
    series: Mapping[str, Points]
    words: tuple[str, ...] = ()
    """What the whole numbers of the x axis stand for; bars are drawn."""


@dataclass(frozen=True)
class Plot:
    """Panels with the same axes and one legend."""

    title: str
    x: str
    y: str
    panels: tuple[Panel, ...]
    log_x: bool = False
    log_y: bool = False

    @property
    def names(self) -> list[str]:
        """Every series, in the order in which they come."""
        return list(dict.fromkeys(name for panel in self.panels for name in panel.series))

    @property
    def wide(self) -> int:
        """The width of a panel: alone it may take more."""
        return 480 if len(self.panels) == 1 else 300

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(points for panel in self.panels for points in panel.series.values())


@dataclass(frozen=True)
class Axis:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high = (_logged(v) if self.log else v for v in (self.low, self.high))
        here = _logged(value) if self.log else value
        return self.start + (self.end - self.start) * (here - low) / ((high - low) or 1)

    @property
    def ticks(self) -> list[float]:
        """Round values within."""
        return powers(self.low, self.high) if self.log else round_values(self.low, self.high)


def powers(low: float, high: float) -> list[float]:
    """Powers of ten between two values; with ones between where there are few.

    >>> powers(3, 2_000)
    [10, 100, 1000]
    """
    first, last = math.floor(_logged(low)), math.ceil(_logged(high))
    tens = [10**n if n >= 0 else 10.0**n for n in range(first, last + 1)]
    within = [v for v in tens if low <= v <= high]
    if len(within) > 2:
        return within[:: math.ceil(len(within) / 6)]
    return [v * k for v in tens for k in (1, 2, 5) if low <= v * k <= high]


def round_values(low: float, high: float) -> list[float]:
    """About five round values between two.

    >>> round_values(0, 9)
    [0, 2, 4, 6, 8]
    """
    rough = (high - low) / 5 or 1
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    values = (round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1))
    return [int(v) if v == int(v) else v for v in values]


def shown(value: float) -> str:
    """A value at an axis.

    >>> [shown(v) for v in (0, 0.05, 12, 2_000, 5_000_000)]
    ['0', '0.05', '12', '2k', '5M']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def svg(plot: Plot) -> str:
    """The plot as a file."""
    names = plot.names
    per_line = max(1, len(plot.panels) * 2)
    lines = math.ceil(len(names) / per_line) if len(names) > 1 else 0
    width = LEFT + RIGHT + len(plot.panels) * plot.wide + (len(plot.panels) - 1) * (LEFT - RIGHT)
    width = max(width, round(2 * LEFT + LETTER * len(plot.title)))
    height = TOP + PANEL_HEIGHT + BOTTOM + lines * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>{escape(plot.title)}</title>'
        f"<style>{STYLE}</style>",
        f'<text class="t" x="{LEFT}" y="20">{escape(plot.title)}</text>',
    ]
    for number, panel in enumerate(plot.panels):
        left = LEFT + number * (plot.wide + LEFT - RIGHT)
        parts += _panel(plot, panel, left, number == 0)
    for number, name in enumerate(names if lines else ()):
        x = LEFT + number % per_line * (width - LEFT) / per_line
        y = TOP + PANEL_HEIGHT + BOTTOM + number // per_line * LINE
        parts.append(f'<rect class="c{number % COLOURS}" x="{x:.0f}" y="{y - 9}" width="12" height="9"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="{y}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(plot: Plot, panel: Panel, left: float, first: bool) -> list[str]:
    top, bottom = TOP, TOP + PANEL_HEIGHT
    known = [point for points in panel.series.values() for point in points]
    own_y = [y for _, y in known] or [1.0]
    low, high = (min(own_y) / 1.3, max(own_y) * 1.3) if plot.log_y else (0.0, max(own_y) * 1.08)
    ys = Axis(low, high or 1.0, bottom, top, plot.log_y)
    parts = [f'<text class="s" x="{left}" y="{TOP - 12}">{escape(panel.title)}</text>']
    for value in ys.ticks:
        y = ys.at(value)
        parts.append(f'<path class="g" d="M{left} {y:.1f}h{plot.wide}"/>')
        parts.append(f'<text class="s e" x="{left - 6}" y="{y + 4:.1f}">{shown(value)}</text>')
    parts.append(f'<path class="a" fill="none" d="M{left} {top}V{bottom}h{plot.wide}"/>')
    middle = left + plot.wide / 2
    parts.append(f'<text class="m" x="{middle:.0f}" y="{bottom + 36}">{escape(plot.x)}</text>')
    if first:
        y = top + PANEL_HEIGHT / 2
        parts.append(f'<text class="m" transform="translate(14 {y:.0f}) rotate(-90)">{escape(plot.y)}</text>')
    if panel.words:
        return parts + _bars(plot, panel, left, ys)
    xs_known = [x for x, _ in known] or [0.0, 1.0]
    low_x = min(xs_known) if plot.log_x else min(0.0, *xs_known)
    xs = Axis(low_x, max(xs_known), left + 8, left + plot.wide - 8, plot.log_x)
    for value in xs.ticks:
        x = xs.at(value)
        parts.append(f'<path class="a" d="M{x:.1f} {bottom}v4"/>')
        parts.append(f'<text class="s m" x="{x:.1f}" y="{bottom + 17}">{shown(value)}</text>')
    for name, points in panel.series.items():
        colour = f"c{plot.names.index(name) % COLOURS}"
        places = [(xs.at(x), ys.at(y)) for x, y in sorted(points)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline class="{colour}" style="fill:none" points="{joined}"/>')
        parts += [f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
    return parts


def _bars(plot: Plot, panel: Panel, left: float, ys: Axis) -> list[str]:
    """A group for each word, a bar for each series."""
    room = plot.wide / len(panel.words)
    names = list(panel.series)
    thick = min(room * 0.8 / max(len(names), 1), 34)
    parts = []
    for place, word in enumerate(panel.words):
        middle = left + room * (place + 0.5)
        parts.append(
            f'<text class="s m" x="{middle:.1f}" y="{TOP + PANEL_HEIGHT + 17}">{escape(word)}</text>'
        )
        for number, name in enumerate(names):
            for x, value in panel.series[name]:
                if x == place:
                    at, top = middle + (number - len(names) / 2) * thick, ys.at(value)
                    parts.append(
                        f'<rect class="c{plot.names.index(name) % COLOURS}" x="{at + 1:.1f}" y="{top:.1f}" '
                        f'width="{thick - 2:.1f}" height="{TOP + PANEL_HEIGHT - top:.1f}"/>'
                    )
    return parts


def _logged(value: float) -> float:
    return math.log10(max(value, 1e-12))
