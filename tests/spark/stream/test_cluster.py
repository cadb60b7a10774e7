"""A stream on a real standalone cluster that loses a worker, and over a real Spark Connect server.

Each runs in a process of its own: one process has one kind of session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import nestream
from tests.spark.cluster import connect_server, environment, standalone
from tests.spark.same import rows
from tests.spark.stream.cases import START, later_events
from tests.spark.stream.streams import Folder

ROOT = Path(__file__).parents[3]
QUERY = "SEQ(A a, !D d, B b, !C c) WHERE [id] WITHIN 20 seconds"
FILES = 12
KILLS = 20
PATIENCE = 300


def history(events: int) -> pa.Table:
    """Events up to four seconds out of order."""
    chance = Random(17)
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("id", pa.int64())])
    moments = [START + timedelta(seconds=n * 0.5 + chance.random() * 4) for n in range(events)]
    return pa.Table.from_pylist(
        [{"ts": ts, "type": chance.choice("ABCD"), "id": chance.randrange(5)} for ts in moments], schema
    )


def fill(folder: Folder, table: pa.Table, files: int = FILES) -> None:
    size = -(-table.num_rows // files)
    for begin in range(0, table.num_rows, size):
        folder.add(table.slice(begin, size))
    folder.add(later_events(table))


@contextmanager
def started(folder: Folder, master: str, way: str = "match") -> Iterator[subprocess.Popen[bytes]]:
    """A driver that does not outlive its test."""
    with (folder.path / "driver.log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream.driver", str(folder.path), QUERY, master, way],
            env=environment(folder.path),
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield driver
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def committed(folder: Folder) -> int:
    """How many micro-batches are done."""
    return len(list((folder.path / "check" / "commits").glob("[0-9]*")))


def wait_for_batches(folder: Folder, driver: subprocess.Popen[bytes], count: int) -> None:
    end = time.monotonic() + PATIENCE
    while committed(folder) < count:
        assert driver.poll() is None, said(folder)
        assert time.monotonic() < end, said(folder)
        time.sleep(0.05)


def said(folder: Folder) -> str:
    return (folder.path / "driver.log").read_text()[-3000:]


@pytest.mark.slow
def test_a_stream_on_a_cluster_that_loses_a_worker_gives_every_match_once(folder: Folder) -> None:
    table = history(600)
    expected = nestream.query(QUERY).match(table, strategy="reference")
    fill(folder, table)
    with standalone(folder.path) as cluster, started(folder, cluster.url) as driver:
        wait_for_batches(folder, driver, 4)
        cluster.kill_worker(0)
        done = committed(folder)
        assert driver.wait(PATIENCE) == 0, said(folder)
    assert done < FILES, "the worker was killed after the stream had ended"
    assert committed(folder) > done
    assert expected.num_rows > 20
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


@pytest.mark.slow
def test_twenty_workers_of_a_cluster_are_killed_and_every_match_comes_once(folder: Folder) -> None:
    """Each is killed with its executor and the Python processes in it; the driver stays."""
    table, chance, kills = history(20 * 3 * KILLS), Random(5), 0
    expected = nestream.query(QUERY).match(table)
    fill(folder, table, 3 * KILLS)
    with standalone(folder.path) as cluster, started(folder, cluster.url, "files") as driver:
        for number in range(KILLS):
            wait_for_batches(folder, driver, committed(folder) + 1)
            time.sleep(chance.uniform(0, 1))
            cluster.kill_worker(number)
            kills += driver.poll() is None
            cluster.start_worker()
        assert driver.wait(10 * PATIENCE) == 0, said(folder)
    print(
        f"{kills} workers of a cluster were killed under one driver; {expected.num_rows} matches, each once"
    )
    assert kills == KILLS, "the stream ended before the last kill"
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


@pytest.mark.slow
def test_a_job_of_files_over_spark_connect_is_refused_with_what_to_do(folder: Folder) -> None:
    fill(folder, history(60))
    with connect_server(folder.path) as address, started(folder, address, "files") as driver:
        assert driver.wait(PATIENCE) != 0
    assert "this is a session of Spark Connect" in said(folder)


@pytest.mark.slow
def test_a_stream_over_spark_connect_goes_on_from_its_checkpoint(folder: Folder) -> None:
    table = history(600)
    expected = nestream.query(QUERY).match(table, strategy="reference")
    half = table.num_rows // 2
    with connect_server(folder.path) as address:
        fill(folder, table.slice(0, half))
        (folder.path / "in" / f"{FILES:05}.parquet").unlink()  # time has not passed yet
        with started(folder, address) as first:
            assert first.wait(PATIENCE) == 0, said(folder)
        done = committed(folder)
        fill(folder, table.slice(half))
        with started(folder, address) as second:
            assert second.wait(PATIENCE) == 0, said(folder)
    assert committed(folder) > done > 1
    assert rows(folder.found().cast(expected.schema)) == rows(expected)
