"""The job folder of the demo: what the simulator, the stream and the console have in common.

job.json         names, columns and the settings of the simulation
rules/           the rules, one file each
floor.json       the floor plan
events/          files of events, complete once they are visible
truth.jsonl      the planted violations: the rule, and the numbers of the events of the match
matches/         what the stream finds
late/            events that it could not take
progress.json    how far the stream is
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from nestream.hospital.bundled import rule_files
from nestream.hospital.floor import FLOOR

WATERMARK_SECONDS = 1
"""How late an event may be, in simulated time. The simulator's events are in order, so it can be short."""
WATERMARK = f"{WATERMARK_SECONDS} seconds"
_ANEW = "use another folder, or start over with --fresh"
_PARTS = ("rules", "events", "matches", "late", "progress.json", "floor.json", "truth.jsonl", "job.json")


class JobError(Exception):
    """A folder that cannot be used for the demo, and what to do instead."""


@dataclass(frozen=True)
class Settings:
    """What determines the events of a simulation."""

    seed: int = 0
    workers: int = 24
    instruments: int = 120
    violations: float = 0.1


@dataclass(frozen=True)
class Job:
    """A folder with everything of one run of the demo, which may have been stopped and continued."""

    folder: Path
    settings: Settings

    @property
    def rules(self) -> Path:
        """The folder of the query set."""
        return self.folder / "rules"

    @property
    def events(self) -> Path:
        """The folder that the simulator writes to."""
        return self.folder / "events"

    @property
    def matches(self) -> Path:
        """The folder that the stream writes to."""
        return self.folder / "matches"

    @property
    def late(self) -> Path:
        """The folder of the events that the stream could not take."""
        return self.folder / "late"

    @property
    def progress(self) -> Path:
        """The file with the progress of the stream."""
        return self.folder / "progress.json"

    @property
    def truth(self) -> Path:
        """The file of the planted violations."""
        return self.folder / "truth.jsonl"


def prepare(
    folder: Path, settings: Settings, *, trigger: float = 1.0, rules: Path | None = None, fresh: bool = False
) -> Job:
    """The job in a folder: a new one, or the existing one if it has the same settings and rules.

    `rules` is a folder of rules in place of the bundled ones. `fresh` first removes an existing job. Raises
    `JobError` if the folder holds something else.
    """
    texts = None if rules is None else rule_files(rules)
    if texts is not None and not texts:
        raise JobError(f"there is no .neel file in {rules}\n  hint: examples/hospital has the bundled rules")
    described = folder / "job.json"
    there = settings_of(folder)
    own = {
        LOCK,
        HIDDEN,
        *_PARTS,
    }  # left by a first start that was stopped before job.json was written
    if there is None and folder.is_dir() and any(path.name not in own for path in folder.iterdir()):
        raise JobError(f"{folder} has files but is not a job\n  hint: use an empty folder, or a new one")
    if there is not None and fresh:
        _remove(folder)
    elif there is not None:
        _check_same(folder, there, settings, texts)
    job = Job(folder, settings)
    for path in (job.rules, job.events):
        path.mkdir(parents=True, exist_ok=True)
    if not described.exists():
        for name, text in (texts or rule_files()).items():
            (job.rules / name).write_text(text, encoding="utf-8")
        (folder / "floor.json").write_text(json.dumps(FLOOR.as_json(), indent=1), encoding="utf-8")
    _describe(described, settings, trigger)
    return job


def _describe(path: Path, settings: Settings, trigger: float) -> None:
    """Write job.json atomically."""
    about = {
        "title": "hospital",
        "runtime": "spark",
        "time": "ts",
        "type": "type",
        "trigger": trigger,
        "watermark": WATERMARK,
        "rules": "rules",
        "events": "events",
        "matches": "matches",
        "late": "late",
        "progress": "progress.json",
        "plan": "floor.json",
        "entity": "wID",
        "place": "room",
        "facets": ["room", "wID"],
        "simulation": asdict(settings),
    }
    hidden = path.with_name(HIDDEN)
    hidden.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    os.replace(hidden, path)


def settings_of(folder: Path) -> Settings | None:
    """The settings of the job in a folder; None if there is none."""
    described = folder / "job.json"
    if not described.is_file():
        return None
    try:
        return Settings(**json.loads(described.read_text(encoding="utf-8"))["simulation"])
    except (ValueError, KeyError, TypeError):
        raise JobError(f"{described} does not describe a hospital\n  hint: use another folder") from None


def _check_same(folder: Path, there: Settings, settings: Settings, rules: dict[str, str] | None) -> None:
    if rules is not None and rules != rule_files(folder / "rules"):
        raise JobError(f"the run in {folder} has other rules\n  hint: {_ANEW}")
    if there != settings:
        was, wanted = asdict(there), asdict(settings)
        other = ", ".join(
            f"{name} {was[name]}, not {wanted[name]}" for name in was if was[name] != wanted[name]
        )
        raise JobError(
            f"the run in {folder} has other settings: {other}\n  hint: use the same ones to continue, {_ANEW}"
        )


def _remove(folder: Path) -> None:
    """Remove the parts of a job, and nothing else; job.json last, so that what is left is still a job."""
    for name in _PARTS:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


LOCK = ".lock"
HIDDEN = ".job.json"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; raises `JobError` if another one has it."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise JobError(
                f"a demo is already running in {folder}\n  hint: stop it, or use another folder with --folder"
            ) from None
        yield
