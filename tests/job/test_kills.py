"""A job that is killed at any moment and started again loses nothing and repeats nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest

from tests.job.feed import LATENESS, Row, ending, expected, lines, random_events

ROOT = Path(__file__).resolve().parents[2]


class Killed:
    """A job that is started again whenever it was killed, until all that is expected is there."""

    def __init__(
        self,
        source: Path | str,
        sink: Path | str,
        folder: Path,
        aside: str | None = None,
        lateness: int = LATENESS,
        rules: Path | None = None,
    ) -> None:
        self.aside, self.checkpoint = folder / "aside.jsonl", folder / "checkpoint"
        self.arguments = [source, sink, self.checkpoint, aside or self.aside, lateness]
        self.rules = [] if rules is None else [rules]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, interval: float) -> None:
        """Start it with so many seconds between two checkpoints."""
        arguments = [*self.arguments, interval, *self.rules]
        command = [sys.executable, "-m", "tests.job.driver", *map(str, arguments)]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, said.decode()

    def told(self) -> bytes:
        """What the job tells of itself, which changes when it has begun."""
        path = self.checkpoint / "progress.json"
        return path.read_bytes() if path.exists() else b""

    def wait_for_change(self, look: Callable[[], object], before: object) -> None:
        """Wait until something looks another way than before."""
        self.wait_for(lambda: look() != before)

    def wait_for(self, reached: Callable[[], bool]) -> None:
        """Wait for a state; a job that ends by itself has failed."""
        end = time.monotonic() + 300
        assert self.process is not None
        while not reached():
            if self.process.poll() is not None:
                _, said = self.process.communicate()
                raise AssertionError(said.decode())
            assert time.monotonic() < end, "the job does not get there"
            time.sleep(0.002)


def written_file(sink: Path) -> list[tuple[int, int]]:
    """The matches of a file; a line that is being written is none yet."""
    if not sink.exists():
        return []
    whole = sink.read_bytes().split(b"\n")[:-1]
    return sorted((row["first"], row["last"]) for row in map(json.loads, whole))


def written_folder(sink: Path) -> list[tuple[int, int]]:
    """The matches of a folder of Parquet files."""
    found = []
    for path in sorted(sink.glob("part-*.parquet")):
        found += [(row["first"], row["last"]) for row in pq.read_table(path).to_pylist()]
    return sorted(found)


def feed_file(path: Path, text: bytes) -> None:
    """Append to one file."""
    with path.open("ab") as file:
        file.write(text)


def feed_folder(path: Path, text: bytes) -> None:
    """Put a file into the folder as a whole, with whole lines."""
    path.mkdir(exist_ok=True)
    number = len(list(path.iterdir()))
    hidden = path / f".{number:06}.jsonl"
    hidden.write_bytes(text)
    os.replace(hidden, path / f"{number:06}.jsonl")


def survive(tmp_path: Path, seed: int, kills: int, *, folder: bool) -> None:
    """Feed a job piece by piece, kill it again and again, and compare with the matches of all events."""
    randomness = random.Random(seed)
    events = random_events(seed, 1500 * (kills + 1))
    source, sink = tmp_path / ("in" if folder else "in.jsonl"), tmp_path / ("out" if folder else "out.jsonl")
    feed, written = (feed_folder, written_folder) if folder else (feed_file, written_file)
    text = list(lines(events, seed))
    malformed = len(text) - len(events)
    feed(source, text.pop(0))
    job = Killed(source, sink, tmp_path)
    share = len(text) // (kills + 1)
    for number in range(kills):
        before = job.told()
        job.start(interval=randomness.choice([0.01, 0.3]) if number else 600)  # first without any checkpoint
        job.wait_for_change(job.told, before)
        some, text = text[:share], text[share:]
        feeder = Thread(target=_feed_slowly, args=[feed, source, some, randomness.random(), folder])
        feeder.start()
        if randomness.random() < 0.8 or not number:  # the others are killed while they begin
            size = _written(sink) if number or not folder else None
            job.wait_for_change(partial(_written, sink), size)
            for _ in range(randomness.randrange(8)):
                _wait_for_change(job, sink, randomness.randrange(2))
        time.sleep(randomness.choice([0, 0, 0.001, 0.01]))
        job.kill()
        feeder.join()
    job.start(interval=0.01)
    last: Row = ending(events)
    feed(source, b"".join(text) + json.dumps(last).encode() + b"\n")
    wanted = expected([*events, last])
    job.wait_for(lambda: len(written(sink)) >= len(wanted))
    job.stop()
    assert written(sink) == wanted
    letters = [json.loads(line)["raw"] for line in job.aside.read_bytes().splitlines()]
    assert len(letters) == len(set(letters)) == malformed
    print(f"killed {kills} times: {len(wanted):,} matches and {malformed} dead letters, each once")


def _feed_slowly(
    feed: Callable[[Path, bytes], None], source: Path, some: list[bytes], seed: float, folder: bool
) -> None:
    """Feed in pieces, with a moment between them; a line may come in two parts."""
    randomness = random.Random(seed)
    for at in range(0, len(some), 23):
        piece = b"".join(some[at : at + 23])
        cut = 0 if folder else randomness.randrange(len(piece))
        for part in (piece[:cut], piece[cut:]):
            if part:
                feed(source, part)
                time.sleep(0.004)


def _wait_for_change(job: Killed, sink: Path, what: int) -> None:
    """Wait until something was written, or a checkpoint saved; not for ever, as all may be done."""
    end = time.monotonic() + 0.5
    before = _written(sink) if what == 0 else _saved(job.checkpoint)
    while time.monotonic() < end:
        if before != (_written(sink) if what == 0 else _saved(job.checkpoint)):
            return


def _written(sink: Path) -> object:
    if sink.is_dir():
        return len(os.listdir(sink))
    return sink.stat().st_size if sink.exists() else 0


def _saved(checkpoint: Path) -> object:
    path = checkpoint / "checkpoint"
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.parametrize(
    "folder", [pytest.param(False, id="file"), pytest.param(True, id="folder", marks=pytest.mark.slow)]
)
def test_a_job_that_is_killed_writes_every_match_and_every_dead_letter_once(
    tmp_path: Path, folder: bool
) -> None:
    survive(tmp_path, 1, 2, folder=folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int, folder: bool) -> None:
    survive(tmp_path, seed, 20, folder=folder)
