"""Where the machine code of kernels is saved: Numba's files, used by one process at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache


def save_code(compiled: Any, function: Any) -> None:
    """Save the machine code of a compiled function, and load what is saved, if a folder can be written."""
    with suppress(RuntimeError):
        compiled._cache = SavedCode(function)


class SavedCode(FunctionCache):
    """The saved machine code of one kernel.

    Numba numbers the files of a function, one for each set of types. Without a lock, two processes that
    compile it for different types may give their files the same number; whoever looks one up then runs the
    code for the other.
    """

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The machine code for a set of types, if it is saved."""
        with self._alone():
            return super().load_overload(signature, target)

    def save_overload(self, signature: Any, code: Any) -> None:
        """Save the machine code for a set of types."""
        with self._alone():
            super().save_overload(signature, code)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        folder = Path(self.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "kernels.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:  # closing does not unlock it for a process that was forked meanwhile
                fcntl.flock(lock, fcntl.LOCK_UN)
