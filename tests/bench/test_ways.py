"""The suites of predicates and strategies: what is run is what they say, and all ways must agree."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

from nestream.bench import SUITES, BenchError, Run, run_ways
from nestream.bench.predicates import PAPER, PREDICATES
from nestream.bench.strategies import FIXED, STRATEGIES, slower
from nestream.bench.ways import agreed, folded, ratios
from nestream.strategies import STRATEGIES as KNOWN


def test_the_suites_are_registered_and_every_experiment_has_a_figure_of_the_paper() -> None:
    assert SUITES["predicates"] is PREDICATES
    assert SUITES["strategies"] is STRATEGIES
    assert {benchmark.name for benchmark in PREDICATES.benchmarks} == set(PAPER)
    assert len(STRATEGIES.benchmarks) == 25
    assert set(FIXED) == set(KNOWN) - {"auto", "native", "reference"}


@pytest.mark.parametrize(
    ("suite", "only"), [("predicates", "domain/10"), ("strategies", "predicates/type/negative")]
)
def test_a_benchmark_runs_all_its_ways_and_shows_them(suite: str, only: str, tmp_path: Path) -> None:
    chosen = SUITES[suite]
    found = run_ways(chosen, Run(events=600, repeats=1, only=(only,), folder=tmp_path, limit=60))
    (result,) = found["results"].values()
    assert all(way["matches"] == result["matches"] for way in result["ways"].values())
    text = chosen.tables(found["results"])
    assert "| auto |" in text
    assert f"{result['matches']:,}" in text


def test_ways_that_find_other_matches_are_an_error() -> None:
    one, other = {"matches": 1, "checksum": 2}, {"matches": 1, "checksum": 3}
    assert agreed("x", {"a": one, "b": one}) == one
    with pytest.raises(BenchError, match="x: the ways find different matches"):
        agreed("x", {"a": one, "b": other})


def test_ratios_are_those_of_the_first_way_to_each_other() -> None:
    found = {"a": {"samples": [8.0, 6.0, 9.0]}, "b": {"samples": [2.0, 2.0, 1.0]}}
    assert ratios(found) == {"b": {"middle": 4.0, "least": 3.0, "greatest": 9.0}}
    ways = {name: {"best": 3.0} for name in FIXED} | {"flat": {"best": 2.0}, "auto": {"best": 2.1}}
    assert slower({"ways": ways}) == pytest.approx(1.05)


def test_some_tickers_have_fewer_amounts() -> None:
    table = pa.table({"type": ["A", "B", "A", "B"], "amount": [10, 10, 40, 40]})
    assert folded(table, {"B": 2}).column("amount").to_pylist() == [10, 10, 40, 20]
    assert folded(table, {}).equals(table)
