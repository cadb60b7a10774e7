"""The experiments of the papers: `papers/*.toml` declares them, and each paper becomes a suite.

Every query runs in several ways, strategies or techniques switched on and off, that take turns in a process.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.engine import figure, quotient
from benchmarks.events import ROOT
from benchmarks.figures import Figure, plot_of, sentence
from benchmarks.parts import Columns, Part, table, time
from benchmarks.spec import Benchmark, Data, Result, Results, Suite, Target
from benchmarks.turns import ENOUGH

ORDER = ("rewriting", "analytics", "views", "predicates", "sase")
CONDITIONS = (
    f"Times are processor times. The strategies take turns in one process; after {ENOUGH:.0f} s a strategy "
    "takes no more turns. Ratios are from the median turn, with the least and the greatest in "
    "parentheses. All strategies find the same matches."
)
VIEWS = ("computed", "kept", "used", "reused", "unused", "peak")


@dataclass(frozen=True)
class Paper:
    """A paper as its file declares it: what is measured, what is assumed, and what cannot be rebuilt."""

    name: str
    declared: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The title of the paper."""
        return str(self.declared["paper"])

    @property
    def experiments(self) -> list[dict[str, Any]]:
        """What is measured."""
        return list(self.declared.get("experiment", ()))

    def figures(self, experiment: Mapping[str, Any]) -> list[Figure]:
        """The figures of an experiment."""
        first = next(iter(self.ways(experiment)))
        given = {"experiment": experiment["name"], "slower": first, "factor": experiment.get("factor", 0)}
        return [Figure(**{**given, **figure}) for figure in experiment.get("figure", ())]

    def ways(self, experiment: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What `match` is called with; `plan` names a list of switches that are off."""
        found = {}
        for way, how in self.declared["ways"][experiment["ways"]].items():
            if set(how) <= {"plan", "off", "on"}:
                off = [*(self.declared["off"][how["plan"]] if how else ()), *how.get("off", ())]
                options = dict.fromkeys(off, False) | dict.fromkeys(how.get("on", ()), True)
                how = {"options": options}
            found[way] = how
        return found

    def benchmarks(self) -> Iterator[Benchmark]:
        """Every case of every experiment, in each of its windows."""
        for experiment in self.experiments:
            windows = experiment.get("windows") or [experiment["window"]]
            for window in windows:
                for case in experiment["cases"]:
                    yield self._benchmark(experiment, case, window)

    def _benchmark(self, experiment: Mapping[str, Any], case: Mapping[str, Any], window: int) -> Benchmark:
        last = str(window) if "windows" in experiment else ""
        value = case.get("value", case.get("name", "").rpartition("/")[2] or window)
        told = {
            "experiment": experiment["name"],
            "value": int(value) if str(value).isdigit() else value,
            "trades": window,
            "others": case.get("others", 0),
        }
        told |= {key: experiment[key] for key in ("base", "curve", "counted") if key in experiment}
        data = {**self.declared["data"], **case.get("data", {})}
        if "domains" in data:
            data["attributes"] = len(data["domains"])
        return Benchmark(
            "/".join(filter(None, (experiment["name"], case.get("name", ""), last))),
            "ways",
            Data(data.pop("generator"), case.get("share", 1.0), data),
            case["query"],
            window * self.declared["step"],
            self.declared["unit"],
            together=experiment["name"],
            ways=self.ways(experiment),
            task={"also": case["also"]} if "also" in case else {},
            told=told,
        )

    def targets(self) -> Iterator[Target]:
        """The factors that the paper reports, as targets for every case, and its other claims."""
        for experiment in self.experiments:
            names = [one.name for one in self.benchmarks() if one.told["experiment"] == experiment["name"]]
            factor = experiment.get("factor")
            for name, wanted in zip(
                names, factor if isinstance(factor, list) else [factor] * len(names), strict=True
            ):
                if wanted is not None:
                    base = experiment.get("base", next(iter(self.ways(experiment))))
                    title = f"{name}: {base} to {experiment['faster']}, the paper's factor"
                    ratio = figure(f"{name}|ratios|{experiment['faster']}|middle")
                    why = experiment["figure"][0]["why"]
                    yield Target(title, wanted, "times", ratio, True, why)
        for one in self.declared.get("target", ()):
            top, bottom = one["top"], one.get("bottom", "")
            found = quotient(top, bottom) if bottom else figure(top)
            yield Target(
                one["title"], one["wanted"], one.get("unit", "times"), found, True, one.get("why", "")
            )

    def parts(self, results: Results) -> list[Part]:
        """A table for each experiment, then the figures of the paper, drawn from our results."""
        found: list[Part] = []
        for experiment in self.experiments:
            own = [result for result in results.values() if result["experiment"] == experiment["name"]]
            if own:
                found += self._part(experiment, own, results)
                found += _did(own) if experiment.get("counted") else []
        return found

    def _part(self, experiment: Mapping[str, Any], own: list[Result], results: Results) -> list[Part]:
        base = experiment.get("base", next(iter(own[0]["ways"])))

        def cell(way: str) -> Any:
            def shown(result: Result) -> str:
                ratio = result["ratios"].get(way)
                spent = time(result["ways"][way], unit=1e-3)
                return spent if ratio is None else f"{spent}, {_ratio(ratio)}"

            return shown

        columns: dict[str, Any] = {"query": lambda result: f"`{result['query'].partition(' WITHIN ')[0]}`"}
        if "parameter" in experiment:
            others = any(result.get("others") for result in own)
            columns[experiment["parameter"]] = "{value:,} and {others}" if others else _value
        if len({result["trades"] for result in own}) > 1 and experiment.get("parameter") != "trades a window":
            columns["window"] = "{trades:,}"
        columns |= {"events": "{events:,}", "matches": "{matches:,}"}
        columns |= {way: cell(way) for way in own[0]["ways"]}
        reports = f"The paper reports: {experiment['reports']}. " if "reports" in experiment else ""
        several = (
            f"A factor is the time of {base} divided by the other time." if len(own[0]["ways"]) > 1 else ""
        )
        blocks: list[Any] = [(reports + several).strip()]
        for one in self.figures(experiment):
            title = f"{experiment['title'].partition(' (')[0]}, as figure {one.number}"
            plot = plot_of(one, results, self.name, title)
            blocks += [plot, sentence(one, results)] if plot else []
        return table(experiment["title"], columns, own, *blocks)

    def suite(self) -> Suite:
        """The suite that runs its experiments."""
        declared = self.declared
        assumed = "\n".join(f"- {line}" for line in declared["assumed"])
        return Suite(
            self.name,
            declared["title"],
            declared["command"],
            declared["events"],
            declared["quick"],
            tuple(self.benchmarks()),
            tuple(self.targets()),
            self.parts,
            text=f"This suite runs the experiments of *{self.title}*. {declared['about'].strip()}\n\n"
            f"The paper does not say everything. The benchmarks assume:\n\n{assumed}",
            conditions=CONDITIONS,
            repeats=declared.get("repeats", 3),
        )


def _value(result: Result) -> str:
    return f"{result['value']:,}" if isinstance(result["value"], int) else str(result["value"])


def _ratio(ratio: Result) -> str:
    return f"{ratio['middle']:,.1f} × ({ratio['least']:,.1f} to {ratio['greatest']:,.1f})"


def _did(own: list[Result]) -> list[Part]:
    """What the views of each way computed and held."""
    used = [
        {"way": way, **result, **found["views"]}
        for result in own
        for way, found in result["ways"].items()
        if "views" in found
    ]
    columns: Columns = {
        "strategy": "{way}",
        "trades a window": "{value:,}",
        **{name: f"{{{name}:,}}" for name in VIEWS[:-1]},
    }
    foot = "Inner results computed, kept, used by outer results, used again, and never used."
    return table("The same views in numbers", {**columns, "bytes at most": "{peak:,}"}, used, foot)


@cache
def papers() -> dict[str, Paper]:
    """Every paper by the name of its file."""
    folder = ROOT / "benchmarks" / "papers"
    return {name: Paper(name, tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))) for name in ORDER}
