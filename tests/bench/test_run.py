"""A suite measures, takes turns, and never reports matches that differ."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from benchmarks.engine import KEYED, KEYED_WINDOW, PATTERNS
from benchmarks.expected import expected
from benchmarks.page import section
from benchmarks.process import Program
from benchmarks.run import run
from benchmarks.scale import growth
from benchmarks.spec import BenchError, Run
from benchmarks.suites import SUITES
from benchmarks.turns import Contestant, agreed, in_turns, ratios
from nestream.data import generate

ECHO = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"seconds": 1.0, "matches": 1}), flush=True)
"""


def quick(suite: str, folder: Path, events: int, *only: str) -> dict[str, Any]:
    found = run(SUITES[suite], Run(events=events, repeats=1, only=only, folder=folder, limit=120))
    assert json.loads(json.dumps(found)) == found
    return found


@pytest.mark.parametrize("shape", KEYED)
def test_the_prefix_sums_count_what_the_reference_finds(shape: str) -> None:
    table = generate("sase", events=400, seed=3, attributes=2, types=6, id_domain=4)
    text = f"{PATTERNS[shape]} WHERE [id] WITHIN 900"
    assert expected(shape, table, 900) == nestream.query(text).count(table, strategy="reference")


def test_the_prefix_sums_count_without_a_key() -> None:
    table = generate("sase", events=400, seed=3, attributes=2, types=6)
    found = nestream.query("SEQ(A a, B b, C c) WITHIN 200").count(table, strategy="reference")
    assert expected("unkeyed-3", table, 200) == found > 0
    assert expected("unkeyed-6", table, 100) is None


def test_the_window_gives_a_fifth_of_a_match_an_event() -> None:
    table = generate("sase", events=500_000, seed=1, attributes=0)
    found = expected("flat", table, KEYED_WINDOW)
    assert found is not None
    assert 0.15 < found / table.num_rows < 0.21  # the first window is not full


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: str(suite.name))
def test_names_are_used_once_and_an_unknown_one_is_named(suite: Any) -> None:
    names = [benchmark.name for benchmark in suite.benchmarks]
    assert len(set(names)) == len(names)
    with pytest.raises(BenchError, match="no benchmark 'flatt'"):
        suite.chosen(("flatt",))


def test_a_run_agrees_with_the_peers_and_the_prefix_sums(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    found = quick("engine", tmp_path, 20_000, "read", "not-seq", "beside/not-seq")
    results = found["results"]
    assert results["not-seq"]["matches"] == results["not-seq"]["count"] == results["not-seq"]["expected"]
    done = [one for one in results["beside/not-seq"]["peers"] if one["status"] == "done"]
    assert {(one["name"], one["threads"]) for one in done} == {
        (name, threads) for name in ("Polars", "DuckDB") for threads in (1, 2)
    }
    assert all(one["matches"] == results["not-seq"]["matches"] and one["output"] > 0 for one in done)
    assert "### Every formulation" in section(SUITES["engine"], found)


@pytest.mark.slow
def test_every_measure_of_the_engine_runs(tmp_path: Path) -> None:
    kinds = ("growth/flat", "window", "memory/not-and", "memory/budget", "stream", "first", "start")
    text = section(SUITES["engine"], quick("engine", tmp_path, 20_000, *kinds))
    for heading in (
        "Growth with the events",
        "Growth with the window",
        "Memory",
        "Streaming",
        "First",
        "Cold",
    ):
        assert f"### {heading}" in text


def test_rules_together_find_what_they_find_alone(tmp_path: Path) -> None:
    found = quick("queries", tmp_path, 20_000, "rules/10")
    result = found["results"]["rules/10"]
    assert result["matches"] == result["count"]
    assert "| 10 |" in section(SUITES["queries"], found)


@pytest.mark.slow
def test_the_state_of_keys_that_die_is_freed(tmp_path: Path) -> None:
    found = quick("scale", tmp_path, 2_100_000, "keys/embedded")
    result = found["results"]["keys/embedded"]
    assert result["matches"] == result["count"] == 100_000
    assert growth(result, "rows") < 1.1
    assert max(point["rows"] for point in result["points"]) < 250_000  # those of one window
    assert "### Ten million keys" in section(SUITES["scale"], found)


@pytest.mark.slow
def test_every_match_comes_at_a_steady_rate_and_of_a_backlog(tmp_path: Path) -> None:
    found = quick(
        "latency", tmp_path, 300_000, "file/10000", "pipe/10000", "backlog/jsonl", "backlog/parquet"
    )
    for result in found["results"].values():
        assert result["matches"] > 0
    text = section(SUITES["latency"], found)
    assert "### From an event to its match" in text
    assert "### Events a second over a backlog" in text


def test_every_target_of_groups_is_measured() -> None:
    measured = {
        one.name: {"best": 1.0 + one.data.share, "events": one.data.share, "matches": 1}
        for one in SUITES["groups"].benchmarks
        if one.measure == "together"
    }
    titles = [target.title for target in SUITES["groups"].targets if "peer" not in target.title]
    assert [one.target.title for one in SUITES["groups"].judged(measured)] == titles


def test_different_matches_are_an_error() -> None:
    one, other = {"matches": 1, "checksum": 2}, {"matches": 1, "checksum": 3}
    assert agreed("x", {"a": one, "b": one, "c": {"matches": 1}, "d": {"status": "failed"}}) == one
    with pytest.raises(BenchError, match="x: different matches"):
        agreed("x", {"a": one, "b": other})
    with pytest.raises(BenchError, match="x: different matches"):
        agreed("x", {"a": {"matches": 2}, "b": one})


def test_ratios_are_those_of_one_turn_also_where_one_has_taken_fewer() -> None:
    assert ratios([8.0, 6.0, 9.0], [2.0, 2.0, 1.0]) == {"middle": 4.0, "least": 3.0, "greatest": 9.0}
    assert ratios([8.0], [2.0, 4.0]) == {"middle": 3.0, "least": 2.0, "greatest": 4.0}


def test_the_first_turn_does_not_count() -> None:
    with Program([sys.executable, "-c", ECHO]) as program:
        found = in_turns([Contestant("a", program), Contestant("b", program)], 3)
    assert found["a"]["samples"] == [1.0, 1.0, 1.0]
    assert found["b"]["status"] == "done"


def test_a_program_that_takes_too_long_is_ended() -> None:
    assert Program(["sleep", "60"], seconds=0.3).status == "did not finish in 0 s"


def test_a_program_that_fails_says_why() -> None:
    program = Program(["sh", "-c", "echo no such table >&2; exit 3"])
    assert in_turns([Contestant("a", program)], 1) == {"a": {"status": "failed: no such table"}}
