"""Readers that follow the parts of a job's folder as they grow: each gives what is new since its last look.

Nothing is given twice and nothing is left out: files of events and of matches are whole once they are
visible, and a line of progress when its line break is there. A look that fails gives what it read before, and
the next one goes on after that.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

_LATE = re.compile(r"^(.*)-(\d{8})(-\d{5})?$")
LONGEST_LINE = 1 << 20
MANY = 10_000
"""How many lines one look reads at most; the rest waits for the next, so large files need no more memory."""


class Lines:
    """Reads JSON lines; a line that is no object is counted and left out."""

    def __init__(self) -> None:
        self.unreadable = 0

    def of(self, path: Path, offset: int) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """Of each line of a file from an offset on where it ends, and its object."""
        with path.open("rb") as file:
            file.seek(offset)
            while line := file.readline(LONGEST_LINE):
                offset += len(line)
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    self.unreadable += 1
                    while rest := file.readline(LONGEST_LINE):
                        offset += len(rest)
                        if rest.endswith(b"\n"):
                            break
                    yield offset, None
                else:
                    yield offset, self.parsed(line)

    def parsed(self, line: bytes) -> dict[str, Any] | None:
        """The object of a line."""
        if not line.strip():
            return None
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        self.unreadable += 1
        return None


class Tail:
    """Gives what is new, so many lines at a look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = Lines()
        self.failed: Exception | None = None
        """What ended the last look before its time, if something did."""
        self._reading: Iterator[dict[str, Any]] | None = None
        self._begun: tuple[str, int] = ("", 0)
        """The file that was read last, and how far."""

    @property
    def has_more(self) -> bool:
        """Whether the last look ended before all that was there was read."""
        return self._reading is not None

    def new(self) -> list[dict[str, Any]]:
        """What has come since the last look; where that cannot all be read, what could, and `failed`."""
        if self._reading is None:
            self._reading = self._flow()
        found: list[dict[str, Any]] = []
        self.failed = None
        try:
            for one in islice(self._reading, MANY):
                found.append(one)
        except Exception as error:
            self.failed = error
        if len(found) < MANY:
            self._reading = None
        return found

    def _flow(self) -> Iterator[dict[str, Any]]:
        """All that is there now and was not given before. What was given is remembered line by line."""
        raise NotImplementedError

    def _rest(self, name: str) -> Iterator[dict[str, Any]]:
        """The objects of a file in the folder, without those that a look gave before it failed."""
        if self._begun[0] != name:
            self._begun = (name, 0)
        for end, found in self.lines.of(self.path / name, self._begun[1]):
            self._begun = (name, end)
            if found is not None:
                yield found


class FolderTail(Tail):
    """The files of a folder in the order of their names, each once; later ones have greater names."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.last = ""
        self._seen = 0

    def skip_to_last(self, keep: int) -> int:
        """Pass over all the files there but the last few; how many were passed over."""
        names = self._newer()
        if len(names) > keep:
            self.last = names[-keep - 1]
            return len(names) - keep
        return 0

    def _flow(self) -> Iterator[dict[str, Any]]:
        for name in self._newer():
            yield from self._rest(name)
            self.last = name

    def _newer(self) -> list[str]:
        try:
            changed = os.stat(self.path).st_mtime_ns
        except FileNotFoundError:
            return []
        if changed == self._seen:
            return []
        names = sorted(name for name in _visible(self.path) if name > self.last)
        # Clocks of file systems are coarse: what has just changed may change again within the same tick.
        settled = not names and time.time_ns() - changed > 2 * 10**9
        self._seen = changed if settled else 0
        return names


class SetTail(Tail):
    """The files of a folder whose names have no order, each once: a name seen is remembered."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._done: dict[str, int] = {}

    def _flow(self) -> Iterator[dict[str, Any]]:
        for name in sorted(_visible(self.path)):
            run, number = _numbered(name)
            if number > self._done.get(run, -1):
                yield from self._rest(name)
                self._done[run] = number


def _numbered(name: str) -> tuple[str, int]:
    """Late events are in files named by stream, micro-batch and bucket; the last of each is known."""
    found = _LATE.match(name.split(".")[0])
    return (name, 0) if found is None else (f"{found[1]}{found[3] or ''}", int(found[2]))


class FileTail(Tail):
    """The lines of one file that only grows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._offset = 0

    def _flow(self) -> Iterator[dict[str, Any]]:
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._offset:  # begun anew
                    self._offset = 0
                file.seek(self._offset)
                added = file.read(8 * LONGEST_LINE)
        except FileNotFoundError:
            return
        whole = added.rfind(b"\n") + 1
        if not whole and len(added) == 8 * LONGEST_LINE:  # a line without end is nothing to wait for
            whole = len(added)
        for line in BytesIO(added[:whole]):
            self._offset += len(line)
            found = self.lines.parsed(line)
            if found is not None:
                yield found


def _visible(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries if not entry.name.startswith((".", "_")))
    except FileNotFoundError:
        return
