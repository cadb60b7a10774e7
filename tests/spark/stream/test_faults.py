"""Killing real processes: whatever dies, the sink has every match once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import nestream
from nestream.runtime.spark.stream_files import RunningStream
from tests.spark.same import rows
from tests.spark.stream.cases import START, later_events
from tests.spark.stream.streams import Folder, wait_for_end

QUERY = "SEQ(A a, !D d, B b, !C c) WHERE [id] WITHIN 20 seconds"
FILES = 60
KILLS = 20
"""How many drivers are killed, and how many workers."""
TIMES = 20
"""How often each other fault happens."""
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
        if drivers < kills or workers < kills:
            _wait_for_a_batch(folder.path, driver, chance.uniform(0, longest))
            for _ in range(min(2, kills - workers)):  # the second after the first was missed
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
    drivers, workers = killed(folder, "files", 1, Random(3), 0.3)
    assert min(drivers, workers) >= 1
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
    print(f"{way}: {drivers} drivers and {workers} Python workers were killed; {expected.num_rows} matches")
    assert min(drivers, workers) >= KILLS
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of its own under a folder."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_under_the_checkpoint_fails_a_stream_with_a_sentence_and_with_room_again_it_goes_on(
    folder: Folder,
) -> None:
    chance, query, said = Random(9), nestream.query(QUERY), []
    table = history(Random(9), 20 * (TIMES + 1))
    with small_disk(folder.path / "check", "2m") as disk:
        folder.add(table.slice(0, 20))
        wait_for_end(folder.stream(query, "5 seconds"))
        for number in range(1, TIMES + 1):
            folder.add(table.slice(20 * number, 20))
            filler = disk / "filler"
            there = os.statvfs(disk)
            left = chance.choice([0, 4096, 12_288])
            filler.write_bytes(bytes(max(there.f_bavail * there.f_frsize - left, 0)))
            try:
                wait_for_end(folder.stream(query, "5 seconds"))
            except nestream.EventError as problem:
                said.append(str(problem))
            filler.unlink()
        folder.add(later_events(table))
        wait_for_end(folder.stream(query, "5 seconds"))
    expected = query.match(table)
    print(f"the disk was full {len(said)} times; {expected.num_rows} matches, each once")
    assert len(said) >= TIMES // 2
    assert all(re.search("no space left on device", one, re.IGNORECASE) for one in said), said
    assert not any("Traceback" in one for one in said)
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


@pytest.mark.slow
@IN_PROC
def test_a_damaged_state_file_is_refused_with_its_name_by_a_stream_on_spark(folder: Folder) -> None:
    chance, query, refused = Random(10), nestream.query(QUERY), 0
    table = history(chance, 20 * 4)
    folder.add(table.slice(0, 40))
    wait_for_end(folder.stream(query, "5 seconds"))
    folder.add(table.slice(40))
    folder.add(later_events(table))
    states = sorted((folder.path / "check" / "nestream").glob("state-*"))
    for number in range(TIMES // 4):
        file = states[number % len(states)]
        whole = file.read_bytes()
        at = chance.randrange(len(whole))
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] if number % 2 else whole[:at])
        for worker in python_workers(os.getpid()):  # those that still hold the state do not read it
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(nestream.EventError, match=rf"the state file \S*{file.name} is damaged"):
            wait_for_end(folder.stream(query, "5 seconds"))
        refused += 1
        file.write_bytes(whole)
    wait_for_end(folder.stream(query, "5 seconds"))
    expected = query.match(table)
    print(f"{refused} damaged state files were refused; {expected.num_rows} matches with whole ones")
    assert rows(folder.found().cast(expected.schema)) == rows(expected)


@contextmanager
def going_on(folder: Folder, table: pa.Table) -> Iterator[Callable[[pa.Table, float | None], None]]:
    """A stream that runs on; a function that adds a file with a time of change, and waits until it is read.

    In the end the matches are those of all the events, and no event was left out.
    """
    query = nestream.query(QUERY)
    running: RunningStream | None = None
    events = 0

    def add(part: pa.Table, moment: float | None) -> None:
        nonlocal running, events
        folder.add(part)
        if moment is not None:
            os.utime(max((folder.path / "in").iterdir()), (moment, moment))
        running = running or folder.stream(query, "5 seconds", once=False)
        events, end = events + part.num_rows, time.monotonic() + PATIENCE
        while running.progress.events < events:
            assert not running.wait(0.1), "the stream ended"
            assert time.monotonic() < end, running.progress

    try:
        yield add
        add(later_events(table), None)
    finally:
        if running is not None:
            running.stop()
    assert running is not None
    expected = query.match(table)
    assert (running.progress.late, running.progress.malformed) == (0, 0)
    assert rows(folder.found().cast(expected.schema)) == rows(expected)
    print(f"{expected.num_rows} matches, each once, and no event was left out")


@pytest.mark.slow
def test_files_are_read_whatever_the_clock_was_when_they_were_written(folder: Folder) -> None:
    chance = Random(11)
    table = history(chance, 20 * TIMES)
    with going_on(folder, table) as add:
        for number in range(TIMES):
            add(table.slice(20 * number, 20), time.time() + chance.uniform(-9, 9) * 365 * 86_400)
        print(f"the clock jumped {TIMES} times")


@pytest.mark.slow
def test_events_that_gain_a_column_again_and_again_do_not_stop_a_stream(folder: Folder) -> None:
    table = history(Random(12), 20 * TIMES)
    with going_on(folder, table) as add:
        for number in range(TIMES):
            part = table.slice(20 * number, 20)
            for column in range(number):
                part = part.append_column(f"column{column}", pa.array(range(20)))
            add(part, None)
        print(f"{TIMES - 1} columns were gained")


def _wait_for_a_batch(path: Path, driver: subprocess.Popen[bytes], longer: float) -> None:
    """Wait until the driver has begun another micro-batch, and a random while."""
    before = _batches(path)
    begin = time.monotonic()
    while driver.poll() is None and _batches(path) == before and time.monotonic() - begin < 120:
        time.sleep(0.05)
    time.sleep(longer)


def _batches(path: Path) -> int:
    return len(list((path / "check" / "offsets").glob("[0-9]*"))) if (path / "check").is_dir() else 0
