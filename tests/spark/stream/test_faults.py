"""Killing real processes: whatever dies, the sink has every match once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import nestream
from tests.spark.same import rows
from tests.spark.stream.cases import START, later_events
from tests.spark.stream.streams import Folder

QUERY = "SEQ(A a, !D d, B b, !C c) WHERE [id] WITHIN 20 seconds"
FILES = 60
KILLS = 20
"""How many drivers are killed, and how many workers."""
PATIENCE = 3000


def history(chance: Random, count: int) -> pa.Table:
    """Events up to four seconds out of order."""
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("type", pa.string()), ("id", pa.int64())])
    moments = [START + timedelta(seconds=n * 0.5 + chance.random() * 4) for n in range(count)]
    return pa.Table.from_pylist(
        [{"ts": ts, "type": chance.choice("ABCD"), "id": chance.randrange(5)} for ts in moments], schema
    )


def python_workers(driver: int) -> list[int]:
    """The processes in which Spark runs Python for a driver."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "stat").read_text()
            names[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])

    def is_below(process: int) -> bool:
        while process in parents and process != driver:
            process = parents[process]
        return process == driver

    return [
        n for n, name in names.items() if "pyspark.daemon" in name and is_below(n) and is_below(parents[n])
    ]


def start(path: Path, way: str) -> subprocess.Popen[bytes]:
    with (path / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream.driver", str(path), QUERY, "local[2]", way],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill_all(driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver with its Java process and its workers, at once."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def filled(folder: Folder, files: int) -> pa.Table:
    """The matches of random events that were put into so many files, some of them late."""
    table = history(Random(8), 20 * files)
    for begin in range(0, table.num_rows, 20):
        folder.add(table.slice(begin, 20))
    folder.add(later_events(table))
    expected = nestream.query(QUERY).match(table)
    assert expected.num_rows >= files
    return expected


def killed(folder: Folder, way: str, kills: int, chance: Random, longest: float) -> tuple[int, int]:
    """Run the stream to its end, killing drivers and workers; how many of each were killed."""
    drivers, workers, deadline = 0, 0, time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline, "the stream does not come to its end"
        driver = start(folder.path, way)
        if drivers < kills:
            _wait_for_a_batch(folder.path, driver, chance.uniform(0, longest))
            if workers < kills:
                for victim in python_workers(driver.pid)[:1]:
                    os.kill(victim, signal.SIGKILL)
                    workers += 1
                time.sleep(chance.uniform(0, longest))
            if driver.poll() is None:
                kill_all(driver)
                drivers += 1
                continue
        if driver.wait(timeout=max(deadline - time.monotonic(), 1)) == 0:
            return drivers, workers


IN_PROC = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the workers of Spark in /proc")


@pytest.mark.slow
@IN_PROC
def test_a_stream_of_files_whose_driver_and_worker_are_killed_has_every_match_once(folder: Folder) -> None:
    expected = filled(folder, 6)
    assert killed(folder, "files", 1, Random(3), 0.3) == (1, 1)
    assert rows(folder.found().cast(expected.schema)) == rows(expected)
    assert not list((folder.path / "late").iterdir())


@pytest.mark.slow
@IN_PROC
@pytest.mark.parametrize(("way", "longest"), [("match", 2.0), ("files", 0.7)])
def test_killing_drivers_and_workers_loses_nothing_and_gives_nothing_twice(
    folder: Folder, way: str, longest: float
) -> None:
    expected = filled(folder, FILES)
    drivers, workers = killed(folder, way, KILLS, Random(8), longest)
    print(f"{way}: {drivers} drivers and {workers} workers were killed")
    assert min(drivers, workers) >= 15
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


def _wait_for_a_batch(path: Path, driver: subprocess.Popen[bytes], longer: float) -> None:
    """Wait until the driver has begun another micro-batch, and a random while."""
    before = _batches(path)
    begin = time.monotonic()
    while driver.poll() is None and _batches(path) == before and time.monotonic() - begin < 120:
        time.sleep(0.05)
    time.sleep(longer)


def _batches(path: Path) -> int:
    return len(list((path / "check" / "offsets").glob("[0-9]*"))) if (path / "check").is_dir() else 0
