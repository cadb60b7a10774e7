"""`nestream bench peers`: a peer has words or a reason, all find the same, and what is missing is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from nestream.bench import SUITES, BenchError, Run
from nestream.bench.peers import ONCE_WINDOW, PEERS, QUERIES, UNKEYED_ONCE_WINDOW
from nestream.bench.peers_data import columns_of, once
from nestream.bench.peers_install import JARS, missing, pinned, text_of
from nestream.bench.peers_lines import of_ours, of_peer
from nestream.bench.peers_run import agree, run_peers
from nestream.bench.spec import Benchmark
from tests.cli.commands import ROOT, call

SUITE = SUITES["peers"]
FOLDER = ROOT / "benchmarks" / "peers"
EVERY = [(benchmark, peer) for benchmark in SUITE.benchmarks for peer in benchmark.peers]


def needs(peer: str) -> None:
    reason = missing(peer, FOLDER)
    if reason:
        pytest.skip(f"{peer} is {reason}")


def compared(only: str, folder: Path, events: int = 250_000) -> dict[str, object]:
    found = run_peers(Run(events=events, repeats=1, only=(only,), folder=folder, limit=120))
    (result,) = found["results"].values()
    return dict(result)


def test_every_query_is_put_to_every_peer() -> None:
    names = {f"{query}/{peer.lower().replace(' ', '-')}" for query in QUERIES for peer in PEERS}
    assert {benchmark.name for benchmark in SUITE.benchmarks} == names


@pytest.mark.parametrize("benchmark_", SUITE.benchmarks, ids=lambda benchmark: str(benchmark.name))
def test_a_peer_has_words_for_a_query_or_a_reason(benchmark_: Benchmark) -> None:
    assert bool(benchmark_.peers) != bool(benchmark_.settings["cannot"])
    for peer in benchmark_.peers:
        text = text_of(peer.name, benchmark_.shape, peer.formulation, FOLDER)
        assert text is None or text.is_file()
        assert of_peer(peer.name, benchmark_.shape, peer.formulation, FOLDER) > 1


def test_every_text_of_a_peer_is_run() -> None:
    used = {text_of(peer.name, benchmark.shape, peer.formulation, FOLDER) for benchmark, peer in EVERY}
    for folder in ("esper", "siddhi", "flinksql"):
        assert set((FOLDER / folder).iterdir()) <= used


def test_lines_are_those_of_the_query_alone() -> None:
    assert of_ours("SEQ(A a, B b) WHERE [id] WITHIN 10") == 3
    assert of_peer("Esper", "two", "one thread", FOLDER) == 2
    assert of_peer("Flink CEP", "flat", "parallelism 1", FOLDER) == 4


@pytest.mark.parametrize(("ids", "pause"), [(100, 0), (1, UNKEYED_ONCE_WINDOW)])
def test_every_type_comes_once_so_that_a_start_has_one_match(ids: int, pause: int) -> None:
    table = once(4_000, ids, pause)
    key, window = ("", UNKEYED_ONCE_WINDOW) if ids == 1 else (" WHERE [id]", ONCE_WINDOW // 10)
    matches = nestream.query(f"SEQ(A a, B b, C c){key} WITHIN {window}").match(table)
    starts = [match["ts"] for match in matches.column("a").to_pylist()]
    assert len(set(starts)) == len(starts) > 20


def test_the_columns_hold_the_events(tmp_path: Path) -> None:
    table = once(2_000, 10, 0)
    path = tmp_path / "events.parquet"
    pq.write_table(table, path)
    raw = columns_of(path).read_bytes()
    rows = table.num_rows
    assert len(raw) == 21 * rows
    assert np.frombuffer(raw, "<i8", rows).tolist() == table.column("ts").to_pylist()
    kinds = np.frombuffer(raw, np.int8, rows, 8 * rows)
    assert [chr(ord("A") + kind) for kind in kinds] == table.column("type").to_pylist()
    assert np.frombuffer(raw, "<i4", rows, 9 * rows).tolist() == table.column("id").to_pylist()


def test_a_peer_that_is_not_there_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = compared("flat/esper", tmp_path)
    assert "nestream bench peers --install" in json.dumps(result["peers"])
    assert "| Esper | 9." in SUITE.tables({"flat/esper": result})


def test_what_a_peer_cannot_say_is_told(tmp_path: Path) -> None:
    result = compared("not-seq/flink-cep", tmp_path)
    assert "takes one event, not a sequence" in SUITE.tables({"not-seq/flink-cep": result})


def test_versions_are_pinned() -> None:
    for name in set(JARS.values()):
        assert pinned(FOLDER, name).count(".") == 2


def test_other_matches_are_an_error() -> None:
    ours = {"matches": 3, "checksum": 9}
    agree("flat/esper", ours, {"peer": "Esper", "matches": 3, "checksum": 9})
    agree("flat/esper", ours, {"peer": "Esper", "status": "did not finish in 40 s"})
    with pytest.raises(BenchError, match="Esper finds 3 matches with checksum 8, nestream 3 with 9"):
        agree("flat/esper", ours, {"peer": "Esper", "matches": 3, "checksum": 8})


def test_an_unknown_benchmark_is_named() -> None:
    result = call("bench", "peers", "--only", "flat/oracle")
    assert result.exit_code == 1
    assert "no benchmark 'flat/oracle'" in result.stderr


@pytest.mark.parametrize("only", ["leading/polars", "and/duckdb", "not-seq/esper"])
def test_a_peer_finds_the_same_matches(only: str, tmp_path: Path) -> None:
    query, _, peer = only.partition("/")
    needs(next(name for name in PEERS if name.lower() == peer))
    result = compared(only, tmp_path, 500_000)
    ways = result["peers"]
    assert isinstance(ways, list)
    assert all(way["matches"] == result["matches"] != 0 for way in ways)
    assert all(way["memory"] > 10_000_000 and way["ratio"] > 0 for way in ways)
    assert f"`{QUERIES[query]}`" in SUITE.tables({only: result})


@pytest.mark.slow
@pytest.mark.parametrize("benchmark_", SUITE.benchmarks, ids=lambda benchmark: str(benchmark.name))
def test_every_peer_finds_the_same_matches(benchmark_: Benchmark, tmp_path: Path) -> None:
    needs(benchmark_.settings["peer"])
    if benchmark_.settings["cannot"]:
        pytest.skip(benchmark_.settings["cannot"])
    result = compared(benchmark_.name, tmp_path, 1_000_000)
    ways = result["peers"]
    assert isinstance(ways, list)
    assert all(way["matches"] == result["matches"] for way in ways)
