"""The figures of the papers: plots of ours in their form, and a sentence on whether and why ours differ."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from nestream.bench.plots import Panel, Plot, Points
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
ALIKE = 1.15
"""Times within this factor of each other are alike."""
MANY = 5
"""So many factors are told one by one."""


@dataclass(frozen=True)
class Figure:
    """One figure of a paper: which results it is made of, its axes, what is reported, why ours differ."""

    number: str
    experiment: str
    y: str
    reports: str
    why: str
    x: str = ""
    """`value`, or `matches`: one panel for each benchmark then, times over the matches found until then."""
    name: str = ""
    """What the values are."""
    panel: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    ways: tuple[str, ...] = ()
    slower: str = ""
    faster: str = ""
    factor: float = 0.0
    factors: tuple[float, ...] = ()
    at: Any = None
    """The only value that the factor is about."""
    last: bool = False
    """The last value is the lightest, not the first."""
    also: str = ""
    """Another experiment in the same plot."""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper: its figures, what had to be assumed, and what cannot be rebuilt."""

    paper: str
    suite: str
    about: str
    assumed: tuple[str, ...]
    figures: tuple[Figure, ...]
    missing: tuple[Mapping[str, str], ...]


def papers() -> list[Paper]:
    """Every paper."""
    found = files("nestream.bench.papers")
    return [_paper(found / f"{name}.toml") for name in ORDER]


ORDER = ("rewriting", "analytics", "views", "predicates", "sase")


def _paper(path: Any) -> Paper:
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    figures: list[dict[str, Any]] = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in one.items()}
        for one in read.pop("figure", [])
    ]
    return Paper(
        figures=tuple(Figure(**one) for one in figures),
        missing=tuple(read.pop("missing", [])),
        assumed=tuple(read.pop("assumed")),
        **read,
    )


# -- what is plotted ---------------------------------------------------------------------------------------


def _view(name: str) -> Callable[[Result, str], float | None]:
    return lambda result, way: result["ways"][way].get("views", {}).get(name)


VALUES: dict[str, Callable[[Result, str], float | None]] = {
    "milliseconds": lambda result, way: result["ways"][way]["best"] * 1e3,
    "events a second": lambda result, way: result["events"] / result["ways"][way]["best"],
    "share of the lightest": lambda result, way: result["events"] / result["ways"][way]["best"],
    "microseconds a match": lambda r, way: r["ways"][way]["best"] * 1e6 / max(r["matches"], 1),
    "results kept": _view("kept"),
    "bytes at most": _view("peak"),
}
UNITS = {"milliseconds": "milliseconds of the processor", "share of the lightest": "share of the throughput"}


def chosen(figure: Figure, results: Figures, experiment: str = "") -> list[Result]:
    """The results that a figure is made of."""
    where = figure.where if not experiment else {"others": 20}
    return [
        result
        for result in results.values()
        if result["experiment"] == (experiment or figure.experiment)
        and all(result.get(key) == value for key, value in where.items())
    ]


def plot_of(figure: Figure, results: Figures) -> Plot | None:
    """Our figure in the form of the paper's; None without results."""
    own = chosen(figure, results)
    if not own:
        return None
    title = f"As figure {figure.number}"
    if figure.y == "inner and whole":
        panels: tuple[Panel, ...] = (_inner(own, results),)
        plot = Plot(title, "negated children", "milliseconds of the processor", panels)
    elif figure.y == "created in 10,000 events":
        panels = (Panel("", _created(own)),)
        plot = Plot(title, figure.name, "sequences in 10,000 events", panels, figure.log_x, figure.log_y)
    elif figure.x == "matches":
        panels = tuple(Panel(figure.panel.format(**one), _curves(figure, one)) for one in own)
        plot = Plot(title, "matches so far", UNITS[figure.y], panels, False, figure.log_y)
    else:
        panels = (_over(figure, own, chosen(figure, results, figure.also) if figure.also else []),)
        plot = Plot(title, figure.name, UNITS.get(figure.y, figure.y), panels, figure.log_x, figure.log_y)
    return None if plot.empty else plot


def _ways(figure: Figure, result: Result) -> Iterable[str]:
    return figure.ways or result["ways"]


def _curves(figure: Figure, result: Result) -> dict[str, Points]:
    """Times over matches: those of the first parts of the events, and of all."""
    return {
        way: [
            *((point[0], point[1] * 1e3) for point in result["ways"][way].get("curve", ())),
            (result["matches"], result["ways"][way]["best"] * 1e3),
        ]
        for way in _ways(figure, result)
        if "best" in result["ways"][way]
    }


def _over(figure: Figure, results: list[Result], also: list[Result]) -> Panel:
    words = tuple(str(result["value"]) for result in results)
    numbers = all(isinstance(result["value"], int) for result in results) and len(results) > 2
    series: dict[str, Points] = {}
    for group, mark in ((results, ", one test" if also else ""), (also, ", two tests")):
        for way in _ways(figure, group[0]) if group else ():
            if also and way not in ("SASE", "dynamic filtering", "our own"):
                continue
            name = f"{'SASE' if way == 'dynamic filtering' and also else way}{mark}"
            points = []
            for place, result in enumerate(group):
                value = VALUES[figure.y](result, way)
                if value is not None:
                    points.append((float(result["value"]) if numbers else float(place), float(value)))
            series[name] = _shares(points, figure.last) if figure.y.startswith("share") else points
    return Panel("", series, () if numbers else words)


def _shares(points: list[tuple[float, float]], last: bool) -> Points:
    whole = points[-1 if last else 0][1]
    return [(x, y / whole) for x, y in points]


def _inner(own: list[Result], results: Figures) -> Panel:
    """The time of the whole nested query, and what is left without the outer sequence alone."""
    outer = {r["trades"]: r["ways"]["nested"]["best"] for r in results.values() if r["experiment"] == "outer"}
    known = [result for result in own if result["trades"] in outer]
    whole = [(float(place), r["ways"]["nested"]["best"] * 1e3) for place, r in enumerate(known)]
    inner = [(x, max(y - outer[known[int(x)]["trades"]] * 1e3, 0.0)) for x, y in whole]
    return Panel(
        "",
        {"the whole query": whole, "inner queries": inner} if known else {},
        tuple(str(r["value"]) for r in known),
    )


def _created(own: list[Result]) -> dict[str, Points]:
    found: dict[str, list[tuple[float, float]]] = {"selection": [], "dynamic filtering": []}
    for result in own:
        each = 10_000 / result["events"]
        if "selection" in result.get("also", {}):
            found["selection"].append((result["value"], result["also"]["selection"] * each))
        found["dynamic filtering"].append((result["value"], result["matches"] * each))
    return {name: [point for point in points if point[1] > 0] for name, points in found.items() if points}


# -- what is said ------------------------------------------------------------------------------------------


def sentence(figure: Figure, results: Figures) -> str:
    """What the paper reports, what is found here, and why it differs."""
    parts = [f"The paper, figure {figure.number}: {figure.reports}."]
    own = [r for r in chosen(figure, results) if figure.at is None or r["value"] == figure.at]
    if figure.slower and own:
        parts.append(_found(figure, own))
    elif figure.x == "value" and figure.y in VALUES:
        plot = plot_of(figure, results)
        parts.append(_course(figure, plot.panels[0].series) if plot else "")
    return " ".join(part for part in (*parts, figure.why) if part)


def _found(figure: Figure, own: list[Result]) -> str:
    factors = [factor for result in own if (factor := _factor(figure, result)) is not None]
    if not factors:
        return ""
    verb = "holds" if figure.y in ("results kept", "bytes at most") else "takes"
    text = f"Here {figure.slower} {verb} {_listed(factors)} times as much as {figure.faster}"
    behind = sum(factor < 1 for factor in factors)
    if all(1 / ALIKE < factor < ALIKE for factor in factors):
        order = "so that they are alike"
    else:
        order = f"in {behind} of {len(factors)} cases less" if behind else "so that the order is the paper's"
    wanted = figure.factors or (figure.factor,) * len(factors) if figure.factor or figure.factors else ()
    if wanted and len(wanted) == len(factors):
        reached = sum(have >= want for have, want in zip(factors, wanted, strict=True))
        return f"{text}, {order}; {reached} of {len(factors)} reach its factor."
    return f"{text}, {order}."


def _course(figure: Figure, lines: Mapping[str, Points]) -> str:
    """From where to where each line goes."""
    ends = [
        f"{name} from {_value(line[0][1])} to {_value(line[-1][1])}" for name, line in lines.items() if line
    ]
    return f"Here, {figure.y}, from the least to the greatest: {', '.join(ends)}." if ends else ""


def _listed(factors: list[float]) -> str:
    """All of them, or where they lie where they are many."""
    told = [_value(factor) for factor in factors]
    if len(told) > MANY:
        return f"{_value(min(factors))} to {_value(max(factors))}"
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def _factor(figure: Figure, result: Result) -> float | None:
    ratio = result["ratios"].get(figure.faster)
    base = figure.slower in ("nested", "basic") or figure.slower == next(iter(result["ways"]))
    if ratio and base and figure.y in ("milliseconds", "events a second"):
        return float(ratio["middle"])
    low, high = (VALUES[figure.y](result, way) for way in (figure.faster, figure.slower))
    if not low or not high:
        return None
    return low / high if figure.y == "events a second" else high / low


def _value(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
