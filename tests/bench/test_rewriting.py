"""`nestream bench rewriting`: its queries are those of the paper, and other matches are never reported."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from nestream.bench import RUNNERS, SUITES, BenchError, Run, replaced, section
from nestream.bench.rewriting import CHILDREN, LENGTHS, LEVELS, MIXED, STRATEGIES, agreed, ratios
from nestream.data import generate
from tests.cli.commands import ROOT, call

REWRITING = SUITES["rewriting"]


def done(matches: int, *samples: float) -> dict[str, Any]:
    found = {"status": "done", "matches": matches, "checksum": 7, "samples": list(samples)}
    return {**found, "best": min(samples, default=0), "spread": 0.0}


@pytest.mark.parametrize("query", [*CHILDREN.values(), *LENGTHS.values(), *LEVELS.values(), MIXED])
def test_every_strategy_finds_what_the_reference_finds(query: str) -> None:
    table = generate("stock", events=150, seed=2, rate=10.0)
    chosen = nestream.query(f"{query} WITHIN 3000 ms")
    expected = chosen.match(table, strategy="reference")
    assert expected.num_rows > 0
    for strategy in STRATEGIES:
        assert chosen.match(table, strategy=strategy).equals(expected), strategy


def test_a_run_compares_the_strategies(tmp_path: Path) -> None:
    found = RUNNERS["rewriting"](Run(events=500, repeats=2, only=("mixed/30",), folder=tmp_path))
    result = found["results"]["mixed/30"]
    assert set(result["strategies"]) == set(STRATEGIES)
    assert result["ratios"]["auto"]["least"] <= result["ratios"]["auto"]["greatest"]
    text = section(REWRITING, found)
    assert "### The mixed workload" in text
    assert "significantly faster" in text
    assert json.loads(json.dumps(found)) == found


def test_different_matches_are_an_error() -> None:
    with pytest.raises(BenchError, match="different matches"):
        agreed("mixed", {"nested": done(3, 1.0), "flat": done(4, 1.0), "auto": done(3, 1.0)})


def test_nested_execution_alone_may_take_too_long() -> None:
    slow = {"status": "did not finish in 300 s"}
    assert agreed("x", {"nested": slow, "flat": done(3, 1.0), "auto": done(3, 1.0)})["matches"] == 3
    with pytest.raises(BenchError, match="strategy flat did not finish"):
        agreed("x", {"nested": done(3, 1.0), "flat": slow, "auto": done(3, 1.0)})
    with pytest.raises(BenchError, match="strategy nested failed"):
        agreed("x", {"nested": {"status": "failed: no"}, "flat": done(3, 1.0), "auto": done(3, 1.0)})


def test_ratios_are_those_of_one_turn() -> None:
    found = {"nested": done(1, 8.0, 12.0), "flat": done(1, 2.0, 2.0), "auto": done(1, 1.0, 4.0)}
    assert ratios(found)["flat"] == {"middle": 5.0, "least": 4.0, "greatest": 6.0}
    assert ratios(found)["auto"] == {"middle": 5.5, "least": 3.0, "greatest": 8.0}


def test_a_strategy_that_was_run_once_is_compared_with_every_turn_of_the_others() -> None:
    found = {"nested": done(1, 12.0), "flat": done(1, 2.0, 3.0), "auto": done(1, 1.0)}
    assert ratios(found)["flat"] == {"middle": 5.0, "least": 4.0, "greatest": 6.0}
    assert ratios({**found, "nested": {"status": "did not finish in 3 s"}}) == {}


def test_an_unknown_benchmark_is_named() -> None:
    result = call("bench", "rewriting", "--only", "lengths")
    assert result.exit_code == 1
    assert "no benchmark 'lengths'" in result.stderr


def test_the_page_has_the_results_that_are_kept() -> None:
    kept = ROOT / "benchmarks" / "results" / "rewriting.json"
    if not kept.exists():
        pytest.skip("there was no whole run yet")
    found = json.loads(kept.read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert replaced(page, "rewriting", section(REWRITING, found)) == page
