"""Locks the folder of a checkpoint, so that only one job uses it at a time."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from nestream.model.wording import reason, remedy


class LockError(Exception):
    """A folder that cannot be locked: why, and what to do."""


def locked(folder: Path) -> IO[bytes]:
    """Lock the folder of a checkpoint until the returned file is closed."""
    lock: IO[bytes] | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "lock", "ab")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if lock is not None:
            lock.close()
        if isinstance(error, BlockingIOError):
            raise LockError(
                f"another job uses the checkpoint {folder}\n"
                "  hint: stop it, or give this job a checkpoint of its own"
            ) from None
        if isinstance(error, FileExistsError | NotADirectoryError):
            what = "it is a file" if folder.is_file() else "a part of its path is a file"
            raise LockError(
                f"cannot use the checkpoint {folder}: {what}\n  hint: name a folder, which need not exist"
            ) from error
        raise LockError(
            f"cannot use the checkpoint {folder}: {reason(error)}\n  hint: {remedy(error)}"
        ) from error
    return lock
