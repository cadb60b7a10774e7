"""Writes the events of a simulation to files in real time, beside the stream.

A file is written under a hidden name and renamed, so a visible file is complete. A writer that is restarted
on the same folder continues after the last event there.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from nestream.hospital.job import WATERMARK_SECONDS, Job
from nestream.hospital.scripts import Planted
from nestream.hospital.simulator import COLUMNS, Moment, simulate

BEAT = 0.5
"""The seconds between two files."""
HEARTBEAT = "Heartbeat"
"""The type of the event that reports the time when nothing else does. It has no number."""
_LONGEST_LINE = 1024
_STILL = timedelta(seconds=1)


class Stop(Protocol):
    """An event of `threading` or `multiprocessing`."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait that long; return whether it is set."""


class EventFiles:
    """The files of events of a job, and the file of its ground truth."""

    def __init__(self, job: Job) -> None:
        self.job = job
        files = sorted(job.events.glob("part-*.jsonl"))
        self.number = 0 if not files else int(files[-1].stem.removeprefix("part-")) + 1
        self.last_event = next((number for file in reversed(files) if (number := _last_event(file))), 0)

    def write(self, moments: list[Moment], now: datetime | None) -> None:
        """Write a file of these events, and their ground truth; `now` adds a heartbeat."""
        name = f"part-{self.number:08}.jsonl"
        hidden = self.job.events / f".{name}"
        with hidden.open("w", encoding="utf-8") as file:
            for moment in moments:
                file.write(_line(moment.event))
            if now is not None:
                file.write(_line({**dict.fromkeys(COLUMNS), "ts": now, "type": HEARTBEAT}))
        os.replace(hidden, self.job.events / name)
        self.number += 1
        self.note_truth(chain.from_iterable(moment.planted for moment in moments))

    def note_truth(self, planted: Iterable[Planted]) -> None:
        """Add to the ground truth."""
        lines = [json.dumps(one.as_json()) + "\n" for one in planted]
        if lines:
            with self.job.truth.open("a", encoding="utf-8") as file:
                file.writelines(lines)

    def skip(self, moments: Iterator[Moment]) -> None:
        """Skip the events that are already in files; missing ground truth is written again."""
        if not self.last_event:
            return
        known: list[Planted] = []
        for moment in moments:
            known += moment.planted
            if moment.event["event"] == self.last_event:
                break
        self.job.truth.unlink(missing_ok=True)
        self.note_truth(known)


def last_moment(job: Job) -> datetime | None:
    """The time of the last event in a file, including heartbeats."""
    last = max((name for name in os.listdir(job.events) if name.startswith("part-")), default=None)
    if last is None:
        return None
    with (job.events / last).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE))
        line = file.read().splitlines()[-1]
    return datetime.fromisoformat(json.loads(line)["ts"])


def _last_event(file: Path) -> int | None:
    numbers = [json.loads(line)["event"] for line in file.read_text(encoding="utf-8").splitlines()]
    return max((number for number in numbers if number is not None), default=None)


def _line(event: dict[str, Any]) -> str:
    moment: datetime = event["ts"]
    return json.dumps({**event, "ts": f"{moment.isoformat(timespec='milliseconds')}Z"}) + "\n"


def write_events(job: Job, speed: float, stop: Stop, duration: float | None = None) -> None:
    """Write events until stopped, `speed` seconds of them per second.

    If the machine cannot keep up, it writes fewer: a file never has more than the events of two beats. The
    first file exists at once and has a value in every column, so that a reader knows their types.
    """
    settings = job.settings
    moments = simulate(
        settings.seed,
        workers=settings.workers,
        instruments=settings.instruments,
        violations=settings.violations,
    )
    files = EventFiles(job)
    files.skip(moments)
    first = [next(moments)]
    while files.number == 0 and not _every_column(first, settings.instruments > 0):
        first.append(next(moments))
    files.write(first, None)
    beginning, origin = time.monotonic(), first[-1].event["ts"]
    now, upcoming = origin, next(moments)
    stopped = False
    while not stopped:
        stopped = stop.wait(BEAT) or _elapsed(beginning, duration)
        due = origin + timedelta(seconds=(time.monotonic() - beginning) * speed)
        now = _whole(min(due, now + timedelta(seconds=2 * BEAT * speed)))
        some = []
        while upcoming.event["ts"] <= now:
            some.append(upcoming)
            upcoming = next(moments)
        still = not some or now - some[-1].event["ts"] > _STILL
        if not stopped:
            files.write(some, now if still else None)
        else:  # the watermark must pass all existing events, and none of a later run
            files.write(some, now + timedelta(seconds=WATERMARK_SECONDS, milliseconds=1))


def _elapsed(beginning: float, duration: float | None) -> bool:
    return duration is not None and time.monotonic() - beginning >= duration


def _whole(moment: datetime) -> datetime:
    """In whole milliseconds, like all times of the simulator."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _every_column(moments: list[Moment], instruments: bool) -> bool:
    wanted = set(COLUMNS) if instruments else set(COLUMNS) - {"id", "ins-type"}
    return wanted <= {name for moment in moments for name, value in moment.event.items() if value is not None}


def write_in_process(job: Job, speed: float, stop: Stop, duration: float | None) -> None:
    """`write_events` as the main function of a process, which ends with its parent."""
    # The terminal signals all processes; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    write_events(job, speed, _OrOrphaned(stop), duration)


class _OrOrphaned:
    """A request to stop, or the end of the process that could make it."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.parent = os.getppid()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait that long."""
        return self.stop.wait(timeout) or os.getppid() != self.parent
