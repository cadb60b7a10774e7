"""The figures of the papers: our results in their form, and a sentence on whether and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.plots import Panel, Plot, Points

Result = Mapping[str, Any]
ALIKE = 1.15
"""Times within this factor of each other are alike."""
MANY = 5
"""Up to this many factors are listed one by one."""


@dataclass(frozen=True)
class Figure:
    """One figure of a paper: which results it is made of, its axes, what is reported, why ours differ."""

    number: str
    experiment: str
    y: str
    reports: str
    why: str
    x: str = ""
    """`value`, or `matches`: one panel for each benchmark then, times over the matches found so far."""
    name: str = ""
    """What the values are."""
    panel: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    ways: Sequence[str] = ()
    slower: str = ""
    faster: str = ""
    """What is compared, if anything."""
    factor: float | Sequence[float] = 0
    at: Any = None
    """The only value that the factor is about."""
    last: bool = False
    """The last value is the lightest, not the first."""
    also: str = ""
    """Another experiment in the same plot."""
    log_x: bool = False
    log_y: bool = False

    def results(self, results: Mapping[str, Result], experiment: str = "") -> list[Result]:
        """The results that it is made of."""
        where = self.where if not experiment else {"others": 20}
        wanted = {"experiment": experiment or self.experiment, **where}
        return [one for one in results.values() if wanted.items() <= one.items()]

    def ways_of(self, result: Result) -> list[str]:
        """The ways that are shown."""
        return list(self.ways or result["ways"])


def _view(name: str) -> Callable[[Result, str], float | None]:
    return lambda result, way: result["ways"][way].get("views", {}).get(name)


def _throughput(result: Result, way: str) -> float:
    return float(result["events"] / result["ways"][way]["best"])


VALUES: dict[str, Callable[[Result, str], float | None]] = {
    "milliseconds": lambda result, way: result["ways"][way]["best"] * 1e3,
    "events a second": _throughput,
    "share of the lightest": _throughput,
    "microseconds a match": lambda r, way: r["ways"][way]["best"] * 1e6 / max(r["matches"], 1),
    "results kept": _view("kept"),
    "bytes at most": _view("peak"),
}
UNITS = {"milliseconds": "milliseconds of the processor", "share of the lightest": "share of the throughput"}


def plot_of(figure: Figure, results: Mapping[str, Result], suite: str, title: str) -> Plot | None:
    """Our figure in the form of the paper's; None without results."""
    own = figure.results(results)
    x, y = figure.name, UNITS.get(figure.y, figure.y)
    if not own:
        return None
    if figure.y == "inner and whole":
        panels = [_inner(own, results)]
        x, y = "negated children", UNITS["milliseconds"]
    elif figure.y == "created in 10,000 events":
        panels = [Panel("", _created(own))]
        y = "sequences in 10,000 events"
    elif figure.x == "matches":
        panels = [Panel(figure.panel.format_map(one), _curves(figure, one)) for one in own]
        x = "matches so far"
    else:
        panels = [_over(figure, own, figure.results(results, figure.also) if figure.also else [])]
    name = f"{suite}-{figure.number.partition(',')[0].replace(' ', '-').replace('.', '-')}"
    plot = Plot(name, title, x, y, tuple(panels), figure.log_x, figure.log_y)
    return None if plot.empty else plot


def _curves(figure: Figure, result: Result) -> dict[str, Points]:
    """Times over matches: those of the first parts of the events, and of all."""
    return {
        way: [
            *((point[0], point[1] * 1e3) for point in result["ways"][way].get("curve", ())),
            (result["matches"], result["ways"][way]["best"] * 1e3),
        ]
        for way in figure.ways_of(result)
    }


def _over(figure: Figure, results: list[Result], also: list[Result]) -> Panel:
    """Values over what is varied; with another experiment beside it, the plans that both have."""
    numbers = all(isinstance(result["value"], int) for result in results) and len(results) > 2
    series: dict[str, Points] = {}
    for group, mark in ((results, ", one test" if also else ""), (also, ", two tests")):
        for way in figure.ways_of(group[0]) if group else ():
            if also and way not in ("SASE", "dynamic filtering", "our own"):
                continue
            places = [float(r["value"]) if numbers else float(place) for place, r in enumerate(group)]
            values = [VALUES[figure.y](result, way) for result in group]
            line = [(x, float(y)) for x, y in zip(places, values, strict=True) if y is not None]
            if figure.y.startswith("share"):
                lightest = line[-1 if figure.last else 0][1]
                line = [(x, y / lightest) for x, y in line]
            series[f"{'SASE' if way == 'dynamic filtering' and also else way}{mark}"] = line
    return Panel("", series, () if numbers else tuple(str(result["value"]) for result in results))


def _inner(own: list[Result], results: Mapping[str, Result]) -> Panel:
    """The time of the whole nested query, and what is left without the outer sequence alone."""
    outer = {r["trades"]: r["ways"]["nested"]["best"] for r in results.values() if r["experiment"] == "outer"}
    known = [result for result in own if result["trades"] in outer]
    whole = [(float(place), r["ways"]["nested"]["best"] * 1e3) for place, r in enumerate(known)]
    inner = [(x, max(y - outer[known[int(x)]["trades"]] * 1e3, 0.0)) for x, y in whole]
    lines = {"the whole query": whole, "inner queries": inner} if known else {}
    return Panel("", lines, tuple(str(r["value"]) for r in known))


def _created(own: list[Result]) -> dict[str, Points]:
    """What selection creates and dynamic filtering leaves, in as many events."""
    selection = [(r["value"], r["also"]["selection"] * 1e4 / r["events"]) for r in own if r.get("also")]
    filtering = [(r["value"], r["matches"] * 1e4 / r["events"]) for r in own]
    lines = {"selection": selection, "dynamic filtering": filtering}
    return {name: [point for point in line if point[1] > 0] for name, line in lines.items()}


def sentence(figure: Figure, results: Mapping[str, Result]) -> str:
    """What the paper reports, what is found here, and why it differs."""
    parts = [f"The paper, figure {figure.number}: {figure.reports}."]
    own = [r for r in figure.results(results) if figure.at is None or r["value"] == figure.at]
    if figure.faster and own:
        parts.append(_found(figure, own))
    elif figure.x == "value" and figure.y in VALUES:
        plot = plot_of(figure, results, "", "")
        parts.append(_course(figure, plot.panels[0].series) if plot else "")
    return " ".join(part for part in (*parts, figure.why) if part)


def _found(figure: Figure, own: list[Result]) -> str:
    factors = [factor for result in own if (factor := _factor(figure, result)) is not None]
    if not factors:
        return ""
    held = figure.y in ("results kept", "bytes at most")
    verb, measure = ("holds", "much") if held else ("takes", "long")
    text = f"Here {figure.slower} {verb} {_listed(factors)} times as {measure} as {figure.faster}"
    behind = sum(factor < 1 for factor in factors)
    if all(1 / ALIKE < factor < ALIKE for factor in factors):
        order = "about the same"
    else:
        order = f"less in {behind} of {len(factors)} cases" if behind else "in the paper's order"
    several = isinstance(figure.factor, Sequence)
    wanted = list(figure.factor) if isinstance(figure.factor, Sequence) else [figure.factor] * len(factors)
    if len(wanted) == len(factors) and (several or figure.factor):
        reached = sum(have >= want for have, want in zip(factors, wanted, strict=True))
        return f"{text}, {order}; {reached} of {len(factors)} reach the paper's factor."
    return f"{text}, {order}."


def _course(figure: Figure, lines: Mapping[str, Points]) -> str:
    """From where to where each line goes."""
    ends = [
        f"{name} from {_value(line[0][1])} to {_value(line[-1][1])}" for name, line in lines.items() if line
    ]
    unit = f"as a {figure.y} case" if figure.y.startswith("share") else f"in {figure.y}"
    return f"Here, {unit}, from the first case to the last: {', '.join(ends)}." if ends else ""


def _listed(factors: list[float]) -> str:
    """All of them, or where they lie if there are many."""
    shown = [_value(factor) for factor in factors]
    if len(shown) > MANY:
        return f"{_value(min(factors))} to {_value(max(factors))}"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _factor(figure: Figure, result: Result) -> float | None:
    ratio = result["ratios"].get(figure.faster)
    base = figure.slower not in result["ratios"]
    if ratio and base and figure.y in ("milliseconds", "events a second"):
        return float(ratio["middle"])
    low, high = (VALUES[figure.y](result, way) for way in (figure.faster, figure.slower))
    if not low or not high:
        return None
    return low / high if figure.y == "events a second" else high / low


def _value(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
