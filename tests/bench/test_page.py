"""docs/performance.md is made of the kept results and of what the suites declare, and of nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

from nestream.bench import SUITES, BenchError, Report, Size, kept, written
from nestream.bench.claims import CLAIMS, SPEAKS_OF_SPEED
from nestream.bench.figures import papers
from nestream.bench.report import HEADINGS, anchor
from nestream.bench.spec import Suite, Target
from tests.cli.commands import ROOT, call

PAGE = ROOT / "docs" / "performance.md"
RESULTS = kept(ROOT / "benchmarks" / "results")


def a_suite(name: str) -> Suite:
    target = Target("speed", 4, "times", lambda figures: figures["it"]["best"], why="it is slow")
    return Suite(name, name, 100, (), (target,), lambda figures: f"### Table of {name}\n\n{figures}")


def a_result(suite: Suite, best: float) -> dict[str, Any]:
    figures = {"it": {"best": best}}
    machine = {"cores": 2, "system": "s", "python": "3", "highest load": 1.0}
    return {
        "suite": suite.name,
        "date": "today",
        "machine": machine,
        "events": 100,
        "repeats": 1,
        "threads of the peers": 2,
        "time limit of the peers": 60.0,
        "results": figures,
        "targets": [suite.targets[0].judged(figures)],
    }


def a_report(root: Path, runners: dict[str, Any], **settings: Any) -> Report:
    suites = {name: a_suite(name) for name in runners}
    return Report(suites, runners, {name: Size(10, 1, 5.0) for name in suites}, root, **settings)


def test_the_page_and_its_plots_are_those_of_the_kept_results() -> None:
    made = written(SUITES, RESULTS)
    assert PAGE.read_text(encoding="utf-8") == made.text, "run nestream bench report --from-results"
    plots = {path.name: path.read_text(encoding="utf-8") for path in (PAGE.parent / "plots").iterdir()}
    assert plots == dict(made.plots)


def test_every_link_within_the_page_leads_to_a_heading() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = [anchor(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")]
    for link in re.findall(r"\]\(#([^)]*)\)", text):
        assert headings.count(link) == 1, link


def test_every_figure_of_a_paper_is_about_an_experiment_that_is_run() -> None:
    for paper in papers():
        known = {b.settings["experiment"] for b in SUITES[paper.suite].benchmarks} if paper.suite else set()
        for figure in paper.figures:
            assert figure.experiment in known
            assert figure.experiment in HEADINGS[paper.suite]
            assert figure.reports
            assert figure.why


def test_why_it_may_be_missed_is_told_of_every_target_set_by_others() -> None:
    by_others = re.compile(
        r"against (the best of|nestream|the limit)|the paper's|nested to flat|auto to the best"
    )
    told = [target for suite in SUITES.values() for target in suite.targets if by_others.search(target.title)]
    assert len(told) > 100
    for target in told:
        assert target.why or "NOT EXISTS" in target.title, target.title


def test_every_sentence_of_the_readme_about_speed_is_a_line_of_the_page_or_points_there() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for claim in CLAIMS:
        assert claim.words in readme
        assert f"| {claim.words} |" in PAGE.read_text(encoding="utf-8")
        assert claim.suite in SUITES
    told = re.sub(r"```.*?```", "", readme)
    for claim in CLAIMS:
        told = told.replace(claim.words, "")
    found = SPEAKS_OF_SPEED.search(told)
    assert found is None, told[found.start() - 80 : found.end() + 40]


def test_a_claim_without_results_is_told_as_not_measured() -> None:
    text = written(SUITES, {}).text
    assert f"| {CLAIMS[0].words} | [engine]" in text
    assert "not measured" in text
    assert text.count("Not measured: it was not run.") == len(SUITES)


def test_a_target_that_is_missed_is_told_with_its_reason() -> None:
    suite = a_suite("one")
    assert (
        "| 1 | speed: 8, wanted ≤ 4 times | it is slow |"
        in written({"one": suite}, {"one": a_result(suite, 8)}).text
    )
    assert "No target is missed." in written({"one": suite}, {"one": a_result(suite, 2)}).text


def test_a_report_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    ran: list[str] = []

    def one(how: Any, progress: Any) -> dict[str, Any]:
        ran.append("one")
        return a_result(a_suite("one"), 2)

    def two(how: Any, progress: Any) -> dict[str, Any]:
        ran.append("two")
        if ran.count("two") == 1:
            raise KeyboardInterrupt
        return a_result(a_suite("two"), 2)

    report = a_report(tmp_path, {"one": one, "two": two})
    with pytest.raises(KeyboardInterrupt):
        report.run()
    assert report.run(resume=True) == []
    assert ran == ["one", "two", "two"]
    assert "Table of two" in (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert report.run() == []
    assert ran[3:] == ["one", "two"]


def test_a_suite_that_fails_is_told_in_the_page_and_the_others_are_run(tmp_path: Path) -> None:
    def without(how: Any, progress: Any) -> dict[str, Any]:
        raise ModuleNotFoundError("no", name="polars")

    report = a_report(tmp_path, {"bad": without, "good": lambda how, progress: a_result(a_suite("good"), 2)})
    assert report.run() == ["bad: the package polars is not installed"]
    page = (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "## bad\n\nNot measured: the package polars is not installed." in page
    assert "Table of good" in page
    assert json.loads((tmp_path / "benchmarks" / "results" / "good.json").read_text())["seconds"] >= 0


def test_suites_without_time_are_left_out_and_told(tmp_path: Path) -> None:
    report = a_report(tmp_path, {"one": lambda how, progress: a_result(a_suite("one"), 2)}, minutes=0.001)
    assert report.run() == ["one: there was no time left of 0.001 minutes"]


def test_an_unknown_suite_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no suite 'engines'"):
        a_report(tmp_path, {}).run(["engines"])
    result = call("bench", "report", "--only", "engines", "--to", str(tmp_path))
    assert result.exit_code == 1
    assert "no suite 'engines'" in result.stderr


def test_the_page_is_made_of_results_without_measuring(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (folder / "queries.json").write_bytes((ROOT / "benchmarks" / "results" / "queries.json").read_bytes())
    result = call("bench", "report", "--from-results", "--to", str(tmp_path))
    assert result.exit_code == 0
    page = (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "### Rules over one stream" in page
    assert "![Rules over one stream](plots/queries-rules-over-one-stream.svg)" in page
    assert (tmp_path / "docs" / "plots" / "queries-rules-over-one-stream.svg").read_text().startswith("<svg")
