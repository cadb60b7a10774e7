"""`nestream bench sase`: its ways find what the reference finds, and other matches are never reported."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from nestream.bench import RUNNERS, SUITES, BenchError, Run, section
from nestream.bench.sase import PAPER, REPORTED
from nestream.bench.sase_tables import PARAMETERS, TITLES
from nestream.bench.ways import agreed, ratios
from nestream.data import generate
from nestream.papers.options import Options
from nestream.papers.sase import plan
from tests.cli.commands import call

SASE = SUITES["sase"]
ONE_OF_EACH = {benchmark.settings["experiment"]: benchmark for benchmark in SASE.benchmarks}


def done(matches: int, *samples: float) -> dict[str, Any]:
    return {"matches": matches, "checksum": 7, "samples": list(samples), "best": min(samples), "spread": 0.0}


def test_what_is_switched_off_for_the_papers_plan_is_what_the_engine_calls_so() -> None:
    assert Options(**PAPER) == plan.PAPER


def test_every_experiment_has_a_table_and_the_papers_word() -> None:
    assert set(ONE_OF_EACH) == set(REPORTED) == set(TITLES) == set(PARAMETERS)


@pytest.mark.parametrize("experiment", sorted(set(ONE_OF_EACH) - {"domain", "window"}))
def test_every_way_finds_what_the_reference_finds(experiment: str) -> None:
    benchmark = ONE_OF_EACH[experiment]
    parameters = {**benchmark.data.parameters, "domains": [2] * benchmark.data.parameters["attributes"]}
    table = generate("sase", events=400, seed=2, **parameters)
    chosen = nestream.query(f"{benchmark.query} WITHIN 120 EVENTS")
    expected = chosen.match(table, strategy="reference")
    assert expected.num_rows > 0
    for way, how in benchmark.settings["ways"].items():
        assert chosen.match(table, **how).equals(expected), way


@pytest.mark.parametrize("name", ["domain/10", "window/10000"])
def test_stacks_and_the_search_without_them_find_the_same(name: str) -> None:
    (benchmark,) = (b for b in SASE.benchmarks if b.name == name)
    table = generate("sase", events=3_000, seed=2, types=5, attributes=0, domains=())
    chosen = nestream.query("EVENT SEQ(A x1, B x2, C x3) WITHIN 30 EVENTS")
    found = [chosen.match(table, **way) for way in benchmark.settings["ways"].values()]
    assert found[0].num_rows > 0
    assert all(matches.equals(found[0]) for matches in found)


def test_a_run_compares_the_ways(tmp_path: Path) -> None:
    found = RUNNERS["sase"](Run(events=2_000, repeats=2, only=("second/20/10",), folder=tmp_path, limit=60))
    result = found["results"]["second/20/10"]
    assert list(result["ways"]) == ["selection", "Multi-PAIS", "dynamic filtering", "our own"]
    assert result["also"]["selection"] >= result["matches"]
    assert result["ratios"]["our own"]["least"] <= result["ratios"]["our own"]["greatest"]
    text = section(SASE, found)
    assert "### Three ways to make a second equivalence test" in text
    assert "Multi-PAIS slower than selection" in text
    assert json.loads(json.dumps(found)) == found


def test_different_matches_are_an_error() -> None:
    with pytest.raises(BenchError, match="different matches"):
        agreed("domain/10", {"basic": done(3, 1.0), "AIS": done(4, 1.0)})


def test_ratios_are_those_of_one_turn() -> None:
    found = ratios({"basic": done(1, 8.0, 12.0), "AIS": done(1, 2.0, 2.0)})
    assert found == {"AIS": {"middle": 5.0, "least": 4.0, "greatest": 6.0}}


def test_an_unknown_benchmark_is_named() -> None:
    result = call("bench", "sase", "--only", "values")
    assert result.exit_code == 1
    assert "no benchmark 'values'" in result.stderr
