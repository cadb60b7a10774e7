"""`nestream bench views`: its ways find what the reference finds, and other matches are never reported."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from nestream.bench import RUNNERS, SUITES, BenchError, Run, section
from nestream.bench.views import KINDS, REPORTED, STRATEGIES
from nestream.bench.views_tables import TITLES
from nestream.bench.ways import agreed, ratios
from nestream.data import generate
from nestream.strategies import VIEWS as STRATEGIES_WITH_VIEWS
from tests.cli.commands import call

VIEWS = SUITES["views"]


def done(matches: int, *samples: float) -> dict[str, Any]:
    return {"matches": matches, "checksum": 7, "samples": list(samples), "best": min(samples), "spread": 0.0}


def test_every_experiment_has_a_table_and_the_papers_word() -> None:
    experiments = {benchmark.settings["experiment"] for benchmark in VIEWS.benchmarks}
    assert experiments == set(REPORTED) == set(TITLES)
    assert tuple(STRATEGIES_WITH_VIEWS) == KINDS
    assert {"nested", "auto", "flat", *KINDS} == set(STRATEGIES)


@pytest.mark.parametrize("benchmark", VIEWS.benchmarks, ids=lambda benchmark: benchmark.name)
def test_every_way_finds_what_auto_finds(benchmark: Any) -> None:
    table = generate("stock", events=400, seed=2, **benchmark.data.parameters)
    chosen = nestream.query(benchmark.text.replace(f" {benchmark.window} ms", " 90 seconds"))
    expected = chosen.match(table)
    for name, way in benchmark.settings["ways"].items():
        assert chosen.match(table, **way).equals(expected), name


def test_a_run_compares_the_ways_and_tells_what_views_did(tmp_path: Path) -> None:
    found = RUNNERS["views"](Run(events=800, repeats=2, only=("memory/500",), folder=tmp_path, limit=60))
    result = found["results"]["memory/500"]
    assert list(result["ways"]) == list(STRATEGIES)
    assert result["ways"]["views-passive"]["views"]["unused"] == 0
    assert "views" not in result["ways"]["auto"]
    text = section(VIEWS, found)
    assert "### What views compute and hold" in text
    assert "### The same views in numbers" in text
    assert json.loads(json.dumps(found)) == found


def test_different_matches_are_an_error() -> None:
    with pytest.raises(BenchError, match="different matches"):
        agreed("window/100", {"nested": done(3, 1.0), "auto": done(4, 1.0)})


def test_ratios_are_those_of_one_turn_also_where_nested_is_run_once() -> None:
    found = ratios({"nested": done(1, 8.0), "auto": done(1, 2.0, 4.0)})
    assert found == {"auto": {"middle": 3.0, "least": 2.0, "greatest": 4.0}}


def test_an_unknown_benchmark_is_named() -> None:
    result = call("bench", "views", "--only", "windows")
    assert result.exit_code == 1
    assert "no benchmark 'windows'" in result.stderr
