"""The pipeline for the tests of the pages: the hospital's events, a Spark stream of its rules, a console.

The stream is the command `nestream stream` in a process of its own. A test lets the simulated time go on, so
it knows which violations are about to be found.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from nestream.hospital.job import WATERMARK, Job, Settings, prepare
from nestream.hospital.score import found_matches
from nestream.hospital.simulator import Moment, simulate
from nestream.hospital.writer import EventFiles
from tests.console.served import Console, serving

SETTINGS = "--conf spark.sql.shuffle.partitions=1 --conf spark.ui.enabled=false"
TRIGGER = 1.0
PAST = timedelta(seconds=3)
"""How far time must go on for a match to be decided: the watermark's delay, and more."""
HOSTILE = "<script>window.hostile = 1</script><img src=x onerror='window.hostile = 1'>"
COMMAND = "from nestream.cli.main import main; main()"


class Pipeline:
    """A job whose events are written on request."""

    def __init__(self, job: Job, console: Console, seed: int) -> None:
        self.job = job
        self.console = console
        self.stream: subprocess.Popen[bytes] | None = None
        self.files = EventFiles(job)
        self.moments = simulate(seed, workers=8, violations=0.3)
        self.planted = 0

    def go_on(self, violations: int = 1, intruder: str | None = None) -> list[Moment]:
        """Let time go on until so many more violations are planted, and past them, so that they are decided.

        An intruder is one more worker, who enters a room of that name without sanitising: one more violation.
        """
        taken: list[Moment] = []
        decided = None
        found = 0
        while found < violations or taken[-1].event["ts"] < decided:
            taken.append(next(self.moments))
            if taken[-1].planted:
                decided = taken[-1].event["ts"] + PAST
                found += len(taken[-1].planted)
        if intruder is not None:
            entering = {"event": 10**9, "type": "Enter-Operating-Room", "wID": 666, "room": intruder}
            taken.insert(0, Moment({**taken[0].event, "id": None, "ins-type": None, **entering}, ()))
            found += 1
        self.planted += found
        self.files.write(taken, None)
        return taken

    def committed(self) -> int:
        """How many matches the sink has committed, not read by the console."""
        return found_matches(self.job).total()

    def committed_at(self, number: int, seconds: float = 300) -> float:
        """Wait until so many matches are committed; the time at which the last of them was."""
        wait(lambda: self.committed() >= number, seconds, self.check)
        return max(path.stat().st_mtime for path in self.job.matches.glob("part-*"))

    def check(self) -> None:
        """Fail where the stream has ended."""
        assert self.stream is not None
        assert self.stream.poll() is None, (self.job.folder / "stream.log").read_text()[-3000:]


def wait(holds: Callable[[], bool], seconds: float, check: Callable[[], None] = lambda: None) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        check()
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


@contextmanager
def running_stream(job: Job) -> Iterator[subprocess.Popen[bytes]]:
    """The rules of a job over its events, on Spark."""
    options = ["--format", "json", "--watermark", WATERMARK, "--master", "local[2]"]
    command = ["stream", str(job.rules), "--from", str(job.events), "--job", str(job.folder), *options]
    settings = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"{SETTINGS} pyspark-shell"}
    with (job.folder / "stream.log").open("wb") as log:
        stream = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *command], env=settings, stdout=log, stderr=log
        )
        try:
            yield stream
        finally:
            stream.terminate()
            try:
                stream.wait(10)
            except subprocess.TimeoutExpired:
                stream.kill()
                stream.wait()


@contextmanager
def running_pipeline(folder: Path, seed: int = 4) -> Iterator[Pipeline]:
    """A job, its stream and its console; the first violations are found."""
    job = prepare(folder, Settings(seed=seed, workers=8), trigger=TRIGGER)
    with serving(folder) as console:
        made = Pipeline(job, console, seed)
        made.go_on(3)
        with running_stream(job) as made.stream:
            made.committed_at(made.planted, 1200)  # Spark's start is part of it
            yield made
