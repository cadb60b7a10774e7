"""Readers that follow the parts of a job's folder as they grow: each gives what is new since its last look.

Nothing is given twice and nothing is left out: event files are whole once they are visible, matches count
when Spark's own log of the sink names their file, and a line of progress when its line break is there. A look
that fails gives what it read before, and the next one goes on after that.
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
from urllib.parse import unquote

LOG = "_spark_metadata"
_COMMIT = re.compile(r"^(\d+)(\.compact)?$")
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
    """Late events are in files named by stream, micro-batch and task; of a task the last is remembered."""
    parts = name.split(".")[0].rsplit("-", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return f"{parts[0]}-{parts[2]}", int(parts[1])
    return name, 0


class SinkTail(Tail):
    """The lines that Spark's file sink has committed, in the order of the micro-batches, each once.

    The log has one file a micro-batch, and now and then one that holds all the entries before it too
    (`9.compact`), after which the single ones may be removed.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.next = 0
        self.missing = 0
        self._last: str | None = None
        """The last file that was read to its end."""

    def _flow(self) -> Iterator[dict[str, Any]]:
        for batch, path in self._commits():
            try:
                names = self._added(path)
            except FileNotFoundError:  # removed since it was listed: a compact one has its entries
                return
            for name, size in names:
                try:
                    if size:
                        yield from self._rest(name)
                except FileNotFoundError:
                    self.missing += 1
                self._last = name
            self.next = batch + 1

    def _commits(self) -> Iterator[tuple[int, Path]]:
        """The log's files that are to be read, in order: all that follow, or from the last that holds all."""
        log = self.path / LOG
        known: dict[int, str] = {}
        for name in _visible(log):
            matched = _COMMIT.match(name)
            if matched and int(matched[1]) >= self.next:
                known[int(matched[1])] = name
        while known:
            if self.next in known:
                yield self.next, log / known.pop(self.next)
                continue
            whole = [batch for batch, name in known.items() if name.endswith(".compact")]
            if not whole:  # the next commit is not there yet
                return
            yield min(whole), log / known[min(whole)]
            known = {batch: name for batch, name in known.items() if batch >= self.next}

    def _added(self, path: Path) -> list[tuple[str, int]]:
        """The names and sizes of the files that a commit adds, without those that were read."""
        names = []
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            if entry.get("action", "add") == "add":
                # Of the path only the name counts: the folder may have been moved.
                names.append((unquote(str(entry["path"])).rsplit("/", 1)[-1], int(entry.get("size", 1))))
        # A compact commit repeats those before it, and one that could not be read to its end is read again.
        places = [place for place, (name, _) in enumerate(names) if name == self._last]
        return names[places[-1] + 1 :] if places else names


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
