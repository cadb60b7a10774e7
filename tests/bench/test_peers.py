"""The suite `peers`: a peer has words or a reason, all find the same, and what is missing is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from benchmarks.events import columns_file, once
from benchmarks.page import section
from benchmarks.peers_programs import FOLDER, JARS, lines, missing, our_lines, pinned, text_of
from benchmarks.rivals import ONCE_WINDOW, PEERS, QUERIES, UNKEYED_ONCE_WINDOW
from benchmarks.run import run
from benchmarks.spec import Benchmark, Peer, Run
from benchmarks.suites import SUITES

SUITE = SUITES["peers"]
ASKED = [
    *SUITE.benchmarks,
    *(benchmark for benchmark in SUITES["groups"].benchmarks if benchmark.measure == "beside"),
]
EVERY = [(benchmark, peer) for benchmark in ASKED for peer in benchmark.peers]


def needs(peer: str) -> None:
    reason = missing(peer)
    if reason:
        pytest.skip(f"{peer} is {reason}")


def compared(only: str, folder: Path, events: int = 250_000) -> tuple[dict[str, Any], str]:
    suite = SUITES["groups"] if only.startswith("beside/") else SUITE
    found = run(suite, Run(events=events, repeats=1, only=(only,), folder=folder, limit=120))
    return found["results"][only], section(suite, found)


def test_every_query_is_put_to_every_peer() -> None:
    names = {f"{query}/{peer.lower().replace(' ', '-')}" for query in QUERIES for peer in PEERS}
    assert {benchmark.name for benchmark in SUITE.benchmarks} == names


@pytest.mark.parametrize("benchmark_", ASKED, ids=lambda benchmark: str(benchmark.name))
def test_a_peer_has_words_for_a_query_or_a_reason(benchmark_: Benchmark) -> None:
    assert bool(benchmark_.peers) != bool(benchmark_.told["cannot"])
    for peer in benchmark_.peers:
        text = text_of(peer, benchmark_.shape)
        assert text is None or text.is_file()
        assert lines(peer, benchmark_.shape) > 0


def test_every_formulation_of_the_engines_peers_has_its_file() -> None:
    for benchmark in SUITES["engine"].benchmarks:
        for peer in benchmark.peers:
            text = text_of(peer, benchmark.shape)
            assert text is None or text.is_file()


def test_every_text_of_a_peer_is_run() -> None:
    used = {text_of(peer, benchmark.shape) for benchmark, peer in EVERY}
    for folder in ("esper", "siddhi", "flinksql"):
        assert set((FOLDER / folder).iterdir()) <= used


def test_lines_are_those_of_the_query_alone() -> None:
    assert our_lines("SEQ(A a, B b) WHERE [id] WITHIN 10") == 3
    assert lines(Peer("Esper"), "two") == 2
    assert lines(Peer("Flink CEP"), "flat") == 4


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
    raw = columns_file(path).read_bytes()
    rows = table.num_rows
    assert len(raw) == 21 * rows
    assert np.frombuffer(raw, "<i8", rows).tolist() == table.column("ts").to_pylist()
    kinds = np.frombuffer(raw, np.int8, rows, 8 * rows)
    assert [chr(ord("A") + kind) for kind in kinds] == table.column("type").to_pylist()
    assert np.frombuffer(raw, "<i4", rows, 9 * rows).tolist() == table.column("id").to_pylist()


def test_a_peer_that_is_not_installed_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result, text = compared("flat/esper", tmp_path)
    assert "scripts/bench peers --install" in json.dumps(result["peers"])
    assert "| Esper | 9." in text


def test_what_a_peer_cannot_express_is_said(tmp_path: Path) -> None:
    assert "takes one event, not a sequence" in compared("not-seq/flink-cep", tmp_path)[1]


def test_versions_are_pinned() -> None:
    for name in set(JARS.values()):
        assert pinned(name).count(".") == 2


@pytest.mark.parametrize(
    "only",
    ["beside/aggregates/duckdb", "not-seq/esper", pytest.param("leading/polars", marks=pytest.mark.slow)],
)
def test_a_peer_finds_the_same_matches(only: str, tmp_path: Path) -> None:
    _, _, peer = only.rpartition("/")
    needs(next(name for name in PEERS if name.lower() == peer))
    result, text = compared(only, tmp_path, 200_000)
    ways = result["peers"]
    assert all(way["matches"] == result["matches"] != 0 for way in ways)
    assert all(way["memory"] > 10_000_000 and way["ratio"] > 0 for way in ways)
    pattern = result["query"].partition(" WHERE")[0]
    assert f"`{pattern}" in text


@pytest.mark.slow
@pytest.mark.parametrize("benchmark_", ASKED, ids=lambda benchmark: str(benchmark.name))
def test_every_peer_finds_the_same_matches(benchmark_: Benchmark, tmp_path: Path) -> None:
    needs(benchmark_.told["peer"])
    if benchmark_.told["cannot"]:
        pytest.skip(benchmark_.told["cannot"])
    result, _ = compared(benchmark_.name, tmp_path, 1_000_000)
    ways = result["peers"]
    assert all(way["matches"] == result["matches"] for way in ways)
