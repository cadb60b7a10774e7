"""The suite `scaling`: what is measured is what is said, and exponents are those of the figures."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

import nestream
from benchmarks import events
from benchmarks.engine import slope
from benchmarks.events import events_file, skewed
from benchmarks.page import section
from benchmarks.parts import below
from benchmarks.run import run
from benchmarks.scaling import EXPONENTS, exponents
from benchmarks.spec import Data, Run
from benchmarks.streaming import is_kept_up, lagging
from benchmarks.suites import SUITES
from nestream.data import generate

SCALING = SUITES["scaling"]


class Clock:
    """Time that passes only while something sleeps, so that a busy machine measures the same."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Limited:
    """A stream that takes so many events a second and no more."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self.rate = rate
        self.clock = clock

    def stream(self, schema: Any) -> "Limited":
        return self

    def push_batch(self, table: pa.Table) -> pa.Table:
        self.clock.sleep(table.num_rows / self.rate)
        return table


@pytest.mark.parametrize(("rate", "kept_up"), [(20_000, True), (160_000, False)])
def test_a_rate_beyond_what_is_taken_lags_more_and_more(
    rate: float, kept_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = generate("sase", events=40_000, seed=1, attributes=0)
    clock = Clock()
    monkeypatch.setattr("benchmarks.streaming.time", clock)
    query: Any = Limited(60_000, clock)
    assert is_kept_up(*lagging(query, table, [], rate)) is kept_up


def test_a_long_file_is_one_stream_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PART", 1_000)
    path = events_file(Data("long", parameters={"attributes": 0}), 2_500, tmp_path)
    assert pq.ParquetFile(path).metadata.num_row_groups == 3
    times = pq.read_table(path).column("ts").to_numpy()
    assert len(times) == 2_500
    assert (np.diff(times) > 0).all()


def test_skewed_keys_follow_zipf() -> None:
    table = generate("sase", events=50_000, seed=1, attributes=0)
    ids = skewed(table, 1.0, 100).column("id").to_numpy()
    counts = np.bincount(ids, minlength=100)
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.2)
    assert skewed(table, 0.0, 100).column("id").to_numpy().max() == 99


def test_an_exponent_is_that_of_the_power() -> None:
    assert slope([(x, 3 * x**1.5) for x in (1, 2, 5, 30)]) == pytest.approx(1.5)


def test_exponents_have_the_span_of_the_repeats() -> None:
    figures = {f"rules/{n}": {"rules": n, "samples": [n, n**0.5]} for n in (1, 10, 100)}
    assert exponents(figures)["rules"] == pytest.approx({"middle": 0.75, "least": 0.5, "greatest": 1.0})


@pytest.mark.slow
def test_a_run_agrees_with_counts_and_shows_exponents(tmp_path: Path) -> None:
    only = ("events/flat/1", "events/flat/0.1", "length", "skew/1")
    found = run(SCALING, Run(events=100_000, repeats=2, only=only, folder=tmp_path))
    results = found["results"]
    assert results["events/flat/1"]["events"] == 100_000
    assert results["events/flat/0.1"]["events"] == 10_000
    for name in ("events/flat/1", "skew/1", "length/2"):
        assert results[name]["matches"] == results[name]["count"] > 0
    text = section(SCALING, found)
    assert "| events, flat |" in text
    assert "### Unequally frequent keys" in text
    assert SCALING.judged(results) == []  # so few events say nothing


def test_events_pushed_from_a_file_find_what_a_table_finds(tmp_path: Path) -> None:
    query = nestream.query("SEQ(A a, B b) WHERE [id] WITHIN 9000")
    path = events_file(Data("long", parameters={"attributes": 0}), 20_000, tmp_path)
    stream = query.stream(schema=pq.read_schema(path))
    found = sum(
        stream.push_batch(pa.Table.from_batches([batch])).num_rows
        for batch in pq.ParquetFile(path).iter_batches(3_000)
    )
    assert found + stream.finish_batch().num_rows == query.count(pq.read_table(path)) > 0


def test_everything_that_should_grow_is_measured() -> None:
    experiments = {benchmark.name.partition("/")[0] for benchmark in SCALING.benchmarks}
    assert experiments == {"events", "window", "length", "rules", "skew", "partitions", "rate"}
    known: dict[str, dict[str, Any]] = {benchmark.name: {} for benchmark in SCALING.benchmarks}
    for prefix, _ in EXPONENTS.values():
        assert len(below(known, prefix)) >= 4
