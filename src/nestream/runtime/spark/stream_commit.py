"""The commits of a stream: after each micro-batch, one small file that describes the current state.

A commit names the state of every bucket, the files of the matches, the greatest time and the counts. It
appears as a whole, so a micro-batch is either done or not, whatever fails meanwhile. Spark may repeat a
micro-batch that it does not know to be done; it is then skipped.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from nestream.model.locked_folder import LockError, locked
from nestream.model.schema import EventError
from nestream.runtime.spark.stream_lease import Lease
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.spark.stream_sink import Names
from nestream.runtime.spark.stream_state import Version

FOLDER = "nestream"
"""The folder inside Spark's checkpoint."""
IDENTITY_FILE = "nestream-job.json"
_PREFIX = "commit-"
_FORMAT = 1
_LOGS = {"offsets": (b"}", b"-"), "commits": (b"}",), "sources/0": (b"}", b"v1")}
"""The folders of Spark's own logs, and how each of their files ends."""
_START_OVER = (
    "  hint: restore the checkpoint from a copy, or remove it together with the matches to start over"
)


@dataclass
class Commit:
    """The state after a micro-batch."""

    number: int
    identity: str
    job: str
    """A name that no other checkpoint has."""
    buckets: tuple[int, ...]
    """The numbers of the buckets that events are distributed to, which never change."""
    greatest: int | None = None
    """The greatest time so far, in microseconds."""
    states: dict[int, Version] = field(default_factory=dict)
    matches: Names = field(default_factory=list)
    aside: Names = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    ended: bool = False
    """Whether the input has ended, so that no more events may arrive."""
    rules: str | None = None
    """The file that holds the rules, if they may change."""

    @property
    def files(self) -> set[str]:
        """The files that hold the state and the rules."""
        files = {name for version in self.states.values() for name in version.files}
        return files if self.rules is None else {*files, self.rules}

    def to_bytes(self) -> bytes:
        """The commit as the contents of a file."""
        plain = asdict(self) | {"states": {n: version.plain() for n, version in self.states.items()}}
        return signed(plain)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Commit:
        """Read a commit; raises an `EventError` that names the file if it is damaged."""
        plain = checked(data, f"the commit {where}")
        plain["buckets"] = tuple(plain["buckets"])
        plain["states"] = {int(n): Version.of(version) for n, version in plain["states"].items()}
        return cls(**plain)


class Commits:
    """The folder of the commits and of the state, beside Spark's checkpoint.

    No other job may use the checkpoint until `close`: opening it removes the files that no commit names,
    which include those of a micro-batch in progress. Local folders are locked; others have a lease.
    """

    def __init__(self, checkpoint: str) -> None:
        place = Place(checkpoint)
        self.place = place / FOLDER
        self._lock = _locked(place) if place.is_local else None
        self._lease = None if place.is_local else Lease(place)
        try:
            self.last = self._opened()
            """The commit at the start, if there was one."""
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the checkpoint to other jobs."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def _opened(self) -> Commit | None:
        """The last commit, None before the first; files that it does not name are removed."""
        self.place.make()
        names = self.place.names()
        commits = sorted(name for name in names if name.startswith(_PREFIX))
        if not commits:
            self._sweep(names, set())
            return None
        data = self.place.read(commits[-1])
        assert data is not None
        found = Commit.from_bytes(data, f"{self.place}/{commits[-1]}")
        self._sweep(names, {commits[-1], *found.files})
        return found

    def kept_rules(self) -> dict[str, Any] | None:
        """The rules in the last commit; None if it has none that may change."""
        if self.last is None or self.last.rules is None:
            return None
        name = self.last.rules
        return checked(self.place.read(name), f"the file of rules {self.place}/{name}")

    def _sweep(self, names: list[str], kept: set[str]) -> None:
        for name in names:
            if name not in kept:
                self.place.remove(name)

    def add(self, commit: Commit, before: Commit | None) -> None:
        """Write a commit; then remove what only the previous one needed."""
        if self._lease is not None:
            self._lease.check()
        self.place.write(_name(commit.number), commit.to_bytes())
        if before is not None:
            for name in before.files - commit.files:
                self.place.remove(name)
            if before.number != commit.number:
                self.place.remove(_name(before.number))


def signed(plain: Mapping[str, Any]) -> bytes:
    """Plain data as the contents of a file, with a checksum and the version of the format."""
    body = json.dumps({"format": _FORMAT, **plain})
    return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}\n".encode()


def check_logs(checkpoint: str) -> None:
    """Refuse a checkpoint in which the last file of a log of Spark is damaged, as after a power failure.

    Spark would refuse it too, but not say what to do.
    """
    for log, ends in _LOGS.items():
        place = Place(checkpoint) / log
        number = max((int(name) for name in place.names() if name.isdigit()), default=None)
        if number is None:
            continue
        if not (place.read(str(number)) or b"").rstrip().endswith(ends):
            raise EventError(
                f"the file {place / str(number)} of Spark is damaged or cut short\n{_START_OVER}"
            )


def checked(data: bytes | None, what: str) -> dict[str, Any]:
    """The plain data of a file; raises an `EventError` that names the file if it is missing or damaged."""
    digest, _, body = (data or b"").decode(errors="replace").rstrip("\n").partition("\n")
    if data is None or hashlib.sha256(body.encode()).hexdigest() != digest:
        raise EventError(f"{what} is {'missing' if data is None else 'damaged or cut short'}\n{_START_OVER}")
    plain: dict[str, Any] = json.loads(body)
    if (version := plain.pop("format")) != _FORMAT:
        raise EventError(
            f"{what} has format version {version}, but this nestream reads {_FORMAT}\n"
            "  hint: let the version that wrote it finish, or start over"
        )
    return plain


def identity_of(checkpoint: Place) -> str:
    """A name that no other checkpoint has, fixed before the first micro-batch."""
    known = checkpoint.read(IDENTITY_FILE)
    if known is None:
        checkpoint.make()
        known = json.dumps({"id": uuid.uuid4().hex[:16]}).encode()
        checkpoint.write(IDENTITY_FILE, known)
    return str(json.loads(known)["id"])


def _locked(checkpoint: Place) -> IO[bytes]:
    try:
        return locked(Path(checkpoint.where))
    except LockError as problem:
        raise EventError(str(problem)) from None


def _name(number: int) -> str:
    return f"{_PREFIX}{number:010}"
