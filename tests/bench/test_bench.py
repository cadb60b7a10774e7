"""`nestream bench`: it measures, checks what was found, and writes its part of the page and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from nestream.bench import SUITES, BenchError, Run, run, section
from nestream.bench.engine import KEYED, KEYED_WINDOW
from nestream.bench.expected import expected
from nestream.bench.process import limited
from nestream.bench.run import _check
from nestream.bench.spec import Target
from nestream.data import generate
from tests.cli.commands import ROOT, call

ENGINE = SUITES["engine"]


@pytest.mark.parametrize("shape", KEYED)
def test_the_prefix_sums_count_what_the_reference_finds(shape: str) -> None:
    table = generate("sase", events=400, seed=3, attributes=2, types=6, id_domain=4)
    text = f"{KEYED[shape]} WHERE [id] WITHIN 900"
    assert expected(shape, table, 900) == nestream.query(text).count(table, strategy="reference")


def test_the_prefix_sums_count_without_a_key() -> None:
    table = generate("sase", events=400, seed=3, attributes=2, types=6)
    found = nestream.query("SEQ(A a, B b, C c) WITHIN 200").count(table, strategy="reference")
    assert expected("unkeyed-3", table, 200) == found > 0


def test_there_is_no_formula_for_other_shapes() -> None:
    assert expected("unkeyed-6", generate("sase", events=10, seed=1), 100) is None


def test_the_window_gives_a_fifth_of_a_match_an_event() -> None:
    table = generate("sase", events=500_000, seed=1, attributes=0)
    found = expected("flat", table, KEYED_WINDOW)
    assert found is not None
    assert 0.15 < found / table.num_rows < 0.21  # the first window is not full


def test_names_are_used_once() -> None:
    names = [benchmark.name for benchmark in ENGINE.benchmarks]
    assert len(set(names)) == len(names)


def test_every_formulation_has_its_file() -> None:
    wanted = {
        f"{benchmark.shape.removesuffix('-never')}.{peer.formulation}.sql"
        for benchmark in (*ENGINE.benchmarks, *SUITES["peers"].benchmarks)
        for peer in benchmark.peers
        if peer.name == "DuckDB"
    }
    assert wanted <= {path.name for path in (ROOT / "benchmarks" / "peers" / "duckdb").iterdir()}


def test_a_quick_run_measures_and_agrees_with_the_peers(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    how = Run(events=20_000, repeats=1, only=("read", "not-seq", "unkeyed-3"), folder=tmp_path)
    found = run(ENGINE, how)
    assert set(found["results"]) == {"read", "not-seq", "unkeyed-3"}
    agreed = found["results"]["not-seq"]["agreed"]
    assert {"count()", "the prefix sums", "Polars (bound)", "DuckDB (exists)"} <= set(agreed)
    assert "DuckDB (natural)" in found["results"]["unkeyed-3"]["agreed"]
    assert "Queries beside the read" in section(ENGINE, found)


@pytest.mark.slow
def test_every_measure_runs_without_peers(tmp_path: Path) -> None:
    kinds = ("growth/flat", "window", "memory/not-and", "budget", "stream", "first")
    found = run(ENGINE, Run(events=20_000, repeats=1, only=kinds, folder=tmp_path, peers=False))
    text = section(ENGINE, found)
    for heading in (
        "Growth with the events",
        "Growth with the window",
        "Memory",
        "Streaming",
        "First matches",
    ):
        assert f"### {heading}" in text
    assert json.loads(json.dumps(found)) == found


def test_other_matches_of_a_peer_are_an_error() -> None:
    peer = {"peer": "DuckDB", "formulation": "bucket", "matches": 3, "checksum": 8}
    with pytest.raises(BenchError, match="other matches"):
        _check("flat", {"matches": 3, "checksum": 9, "count": 3, "peers": [peer]})


def test_another_number_of_matches_is_an_error() -> None:
    with pytest.raises(BenchError, match="nestream finds 3 matches, the prefix sums 4"):
        _check("flat", {"matches": 3, "count": 3, "expected": 4})


def test_a_program_that_takes_too_long_is_ended() -> None:
    assert limited(["sleep", "60"], seconds=0.3).status == "did not finish in 0 s"


def test_a_program_that_fails_says_why() -> None:
    outcome = limited(["sh", "-c", "echo no such table >&2; exit 3"])
    assert outcome.status == "failed: no such table"


@pytest.mark.parametrize(
    ("value", "at_least", "met", "off"),
    [(2.0, False, True, 0.5), (8.0, False, False, 2.0), (2.0, True, False, 2.0)],
)
def test_a_target_says_how_far_off_it_is(value: float, at_least: bool, met: bool, off: float) -> None:
    target = Target("speed", 4, "times", lambda figures: value, at_least=at_least)
    judged: Any = target.judged({})
    assert (judged["met"], judged["off"]) == (met, off)


def test_a_target_without_results_is_left_out() -> None:
    assert Target("speed", 4, "times", lambda figures: figures["flat"]["best"]).judged({}) is None


def test_the_benchmarks_are_listed() -> None:
    assert "growth/flat/0.2" in call("bench", "--list").stdout


def test_an_unknown_benchmark_is_named() -> None:
    result = call("bench", "engine", "--quick", "--only", "flatt")
    assert result.exit_code == 1
    assert "no benchmark 'flatt'" in result.stderr


def test_rules_together_find_what_they_find_alone(tmp_path: Path) -> None:
    found = run(SUITES["queries"], Run(events=20_000, repeats=1, only=("rules/10",), folder=tmp_path))
    (result,) = found["results"].values()
    assert result["rules"] == 10
    assert result["matches"] == result["count"]
    assert "| 10 |" in section(SUITES["queries"], found)
