"""`nestream bench rewriting`: its queries are those of the paper, and other matches are never reported."""

import json
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from nestream.bench import RUNNERS, SUITES, Run, section
from nestream.bench.rewriting import CHILDREN, LENGTHS, LEVELS, MIXED, STRATEGIES
from nestream.data import generate
from tests.cli.commands import call

REWRITING = SUITES["rewriting"]


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
    assert set(result["ways"]) == set(STRATEGIES)
    assert result["ratios"]["auto"]["least"] <= result["ratios"]["auto"]["greatest"]
    curve = result["ways"]["nested"]["curve"]
    assert [len(point) for point in curve] == [2, 2, 2]
    assert curve[0][0] <= curve[-1][0] <= result["matches"]
    text = section(REWRITING, found)
    assert "### The mixed workload" in text
    assert "significantly faster" in text
    assert json.loads(json.dumps(found)) == found


def test_an_unknown_benchmark_is_named() -> None:
    result = call("bench", "rewriting", "--only", "lengths")
    assert result.exit_code == 1
    assert "no benchmark 'lengths'" in result.stderr
