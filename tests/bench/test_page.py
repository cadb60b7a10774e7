"""docs/performance.md is made of the kept results and of what the suites declare, and of nothing else."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

from benchmarks.experiments import papers
from benchmarks.page import CLAIMS, SPEAKS_OF_SPEED, page
from benchmarks.parts import Part, anchor
from benchmarks.plots import svg
from benchmarks.report import Report
from benchmarks.spec import BenchError, Benchmark, Data, Suite, Target
from benchmarks.suites import SUITES
from tests.cli.commands import ROOT

PAGE = ROOT / "docs" / "performance.md"
KEPT = Report(SUITES, ROOT).kept()


def a_suite(name: str) -> Suite:
    target = Target("speed", 4, "times", lambda results: results["it"]["best"], why="it is slow")
    return Suite(
        name, name, name, 100, 10, (), (target,), lambda results: [Part(f"Table of {name}", (str(results),))]
    )


def a_result(name: str, best: float) -> dict[str, Any]:
    machine = {"cores": 2, "system": "s", "python": "3", "highest load": 1.0}
    made = {"suite": name, "date": "today", "machine": machine, "events": 100, "repeats": 1, "seconds": 1.0}
    return {**made, "results": {"it": {"best": best}}}


def a_report(root: Path, runners: dict[str, Any], **settings: Any) -> Report:
    def runner(suite: Suite, how: Any, progress: Any) -> Any:
        return runners[suite.name]()

    return Report({name: a_suite(name) for name in runners}, root, runner=runner, **settings)


def test_the_page_is_that_of_the_kept_results() -> None:
    made = page(SUITES, KEPT)
    assert PAGE.read_text(encoding="utf-8") == made.text, "run scripts/bench report --from-results"
    files = {path.name for path in (PAGE.parent / "plots").iterdir()}
    assert files == {plot.file for plot in made.plots}


def test_the_plots_are_those_of_the_kept_results() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    if f"matplotlib=={matplotlib.__version__}" not in (ROOT / "requirements" / "dev.txt").read_text():
        pytest.skip("another version of Matplotlib draws other files")
    for plot in page(SUITES, KEPT).plots[::6]:
        text, numbers = _drawn(svg(plot))
        kept_text, kept = _drawn((PAGE.parent / "plots" / plot.file).read_text(encoding="utf-8"))
        assert text == kept_text, plot.file
        assert numbers == pytest.approx(kept, abs=1e-3), plot.file


def _drawn(picture: str) -> tuple[str, list[float]]:
    """A picture without its fractions, and these: processors differ in the last digit."""
    fraction = re.compile(r"-?\d+\.\d+")
    return fraction.sub("", picture), [float(found) for found in fraction.findall(picture)]


def test_results_of_ways_that_a_suite_no_longer_runs_are_said_to_be_old() -> None:
    suite = replace(a_suite("one"), benchmarks=(Benchmark("it", "match", Data("sase"), ways={"auto": {}}),))
    found = a_result("one", 5)
    for ways, is_old in (("auto",), False), (("auto", "bounds"), True):
        found["results"]["it"]["ways"] = {way: {} for way in ways}
        text = page({"one": suite}, {"one": found}).text
        assert ("| today, before the suite changed |" in text) is is_old
        assert ("measured when it also ran `bounds`. Measure again" in text) is is_old


def test_every_link_within_the_page_leads_to_one_heading() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = [anchor(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")]
    for link in re.findall(r"\]\(#([^)]*)\)", text):
        assert headings.count(link) == 1, link


def test_every_heading_of_a_table_is_used_once() -> None:
    measured = {name: KEPT[name]["results"] for name in SUITES if name in KEPT}
    headings = [part.heading for name in measured for part in SUITES[name].parts(measured[name])]
    assert len(headings) == len(set(headings)) > 50


def test_every_figure_of_a_paper_says_what_is_reported_and_why_ours_differs() -> None:
    figures = [
        figure for paper in papers().values() for one in paper.experiments for figure in paper.figures(one)
    ]
    assert len(figures) >= 25
    assert all(figure.reports and figure.why for figure in figures)
    assert all(one["why"] for paper in papers().values() for one in paper.declared["missing"])


def test_every_target_set_by_others_says_why_it_may_be_missed() -> None:
    by_others = re.compile(r"against (the best of|nestream|the limit)|the paper's|auto to the best")
    targets = [one for suite in SUITES.values() for one in suite.targets if by_others.search(one.title)]
    assert len(targets) > 100
    for target in targets:
        assert target.why or "NOT EXISTS" in target.title, target.title


def test_every_sentence_of_the_readme_about_speed_is_a_line_of_the_page() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    text = re.sub(r"```.*?```", "", readme)
    for words, suite, _ in CLAIMS:
        assert words in readme
        assert f"| {words} |" in PAGE.read_text(encoding="utf-8")
        assert suite in SUITES
        text = text.replace(words, "")
    found = SPEAKS_OF_SPEED.search(text)
    assert found is None, text[found.start() - 80 : found.end() + 40]


def test_what_was_not_measured_is_named() -> None:
    text = page(SUITES, {}).text
    assert f"| {CLAIMS[0][0]} | [The engine" in text
    assert "not measured" in text
    assert text.count("Not measured: it was not run.") == len(SUITES)


def test_a_missed_target_is_shown_with_its_reason() -> None:
    suites = {"one": a_suite("one")}
    assert "| 1 | speed: 8, wanted ≤ 4 times | it is slow |" in page(suites, {"one": a_result("one", 8)}).text
    assert "No target is missed." in page(suites, {"one": a_result("one", 2)}).text


@pytest.mark.parametrize(
    ("value", "at_least", "off"), [(2.0, False, 0.5), (8.0, False, 2.0), (2.0, True, 2.0)]
)
def test_a_target_says_how_far_off_it_is(value: float, at_least: bool, off: float) -> None:
    judged = Target("speed", 4, "times", lambda results: value, at_least=at_least).judged({})
    assert judged is not None
    assert judged.off == off


def test_a_target_without_results_is_left_out() -> None:
    assert Target("speed", 4, "times", lambda results: results["flat"]["best"]).judged({}) is None


def test_an_interrupted_report_can_be_resumed(tmp_path: Path) -> None:
    ran: list[str] = []

    def one() -> dict[str, Any]:
        ran.append("one")
        return a_result("one", 2)

    def two() -> dict[str, Any]:
        ran.append("two")
        if ran.count("two") == 1:
            raise KeyboardInterrupt
        return a_result("two", 2)

    report = a_report(tmp_path, {"one": one, "two": two})
    with pytest.raises(KeyboardInterrupt):
        report.run()
    assert report.run(resume=True) == []
    assert ran == ["one", "two", "two"]
    assert "Table of two" in (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert report.run() == []
    assert ran[3:] == ["one", "two"]


def test_a_suite_that_fails_is_named_in_the_page_and_the_others_are_run(tmp_path: Path) -> None:
    def without() -> dict[str, Any]:
        raise ModuleNotFoundError("no", name="polars")

    report = a_report(tmp_path, {"bad": without, "good": lambda: a_result("good", 2)})
    assert report.run() == ["bad: the package polars is not installed"]
    text = (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "## bad\n\nNot measured: the package polars is not installed." in text
    assert "Table of good" in text
    assert json.loads((tmp_path / "benchmarks" / "results" / "good.json").read_text())["seconds"] >= 0


def test_a_suite_without_time_is_left_out_and_named(tmp_path: Path) -> None:
    report = a_report(tmp_path, {"one": lambda: a_result("one", 2)}, minutes=0.001)
    assert report.run() == ["one: there was no time left of 0.001 minutes"]


def test_an_unknown_suite_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no suite 'engines'"):
        a_report(tmp_path, {}).run(["engines"])
