"""The checkpoint of an embedded job: its state and the positions of its source and sinks, replaced together.

One file holds all of it. A new one is written beside it and takes its name once it is on disk, so at any
moment there is exactly one whole checkpoint: the old one or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from nestream.model.locked_folder import LockError, locked
from nestream.model.wording import reason, remedy

FILE = "checkpoint"
_MARK = b"nestream checkpoint 1\n"
_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8


class CheckpointError(Exception):
    """A checkpoint that cannot be used: what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds; only the source and the sinks can interpret positions."""

    state: bytes
    number: int
    place: str
    """Where the events come from."""
    source: dict[str, Any]
    sink: dict[str, Any]
    aside: dict[str, Any] | None
    counts: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] | None = None
    """The running rules, if they may change."""
    greatest: int | str | None = None
    """The greatest time seen; a moment as text."""
    came: dict[str, Any] | None = None
    """The columns and the types of the events so far."""


class Checkpoint:
    """A folder with the checkpoint of one job, locked while it is used."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._lock: IO[bytes] | None = None

    def lock(self) -> None:
        """Lock the folder, unless it is locked already."""
        if self._lock is None:
            try:
                self._lock = locked(self.folder)
            except LockError as error:
                raise CheckpointError(str(error)) from None

    def open(self) -> Saved | None:
        """Lock the folder, and read the checkpoint; None at the first start."""
        self.lock()
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", error) from error
        return self._read(data)

    def _read(self, data: bytes) -> Saved:
        body = data[len(_MARK) + _DIGEST :]
        digest = data[len(_MARK) : len(_MARK) + _DIGEST]
        if not data.startswith(_MARK) or hashlib.sha256(body).digest() != digest:
            raise CheckpointError(
                f"the checkpoint {self.path} is damaged, cut short or of another version\n"
                "  hint: restore it from a copy, or remove it together with the matches to start over"
            )
        end = _LENGTH + int.from_bytes(body[:_LENGTH], "big")
        return Saved(state=body[end:], **json.loads(body[_LENGTH:end]))

    @staticmethod
    def packed(saved: Saved) -> bytes:
        """The bytes that `write` writes, independent of later changes to the values."""
        fields = {name: value for name, value in vars(saved).items() if name != "state"}
        header = json.dumps(fields).encode()
        return len(header).to_bytes(_LENGTH, "big") + header + saved.state

    def write(self, body: bytes) -> None:
        """Replace the checkpoint."""
        try:
            replace_file(self.path, _MARK + hashlib.sha256(body).digest() + body)
        except OSError as error:
            raise self._failed("write", error) from error

    def _failed(self, doing: str, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"cannot {doing} the checkpoint {self.folder}: {reason(error)}\n"
            f"  hint: {remedy(error)}; the last checkpoint is still good"
        )

    def close(self) -> None:
        """Release the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file atomically: at any moment it has its old or its new content.

    Any OSError names the file, even if the disk is full.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if durable:
                os.fsync(file.fileno())
        os.replace(beside, path)
        if durable:
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
