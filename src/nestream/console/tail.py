"""Readers that follow the parts of a job's folder as they grow: each gives what is new since its last look.

Nothing is given twice and nothing is left out: event files are whole once they are visible, matches count
when Spark's own log of the sink names their file, and a line of progress when its line break is there.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LOG = "_spark_metadata"
_COMMIT = re.compile(r"^(\d+)(\.compact)?$")
LONGEST_LINE = 1 << 20
MANY = 50_000
"""How many lines one look reads at most, about; the rest waits for the next."""


class Lines:
    """Reads JSON lines; a line that is no object is counted and left out."""

    def __init__(self) -> None:
        self.unreadable = 0

    def of(self, path: Path) -> list[dict[str, Any]]:
        """The objects of a file."""
        with path.open("rb") as file:
            return list(self.parsed(file.read().split(b"\n")))

    def parsed(self, lines: list[bytes]) -> Iterator[dict[str, Any]]:
        """The objects among the lines."""
        for line in lines:
            if not line.strip():
                continue
            try:
                found = json.loads(line) if len(line) <= LONGEST_LINE else None
            except ValueError:
                found = None
            if isinstance(found, dict):
                yield found
            else:
                self.unreadable += 1


class FolderTail:
    """The files of a folder in the order of their names, each once; later ones have greater names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = Lines()
        self.last = ""
        self._seen = 0

    def skip_to_last(self, keep: int) -> int:
        """Pass over all the files there but the last few; how many were passed over."""
        names = self._newer()
        if len(names) > keep:
            self.last = names[-keep - 1]
            return len(names) - keep
        return 0

    def new(self) -> list[dict[str, Any]]:
        """What has come since the last look."""
        found: list[dict[str, Any]] = []
        for name in self._newer():
            found.extend(self.lines.of(self.folder / name))
            self.last = name
            if len(found) >= MANY:
                break
        return found

    def _newer(self) -> list[str]:
        try:
            changed = os.stat(self.folder).st_mtime_ns
        except FileNotFoundError:
            return []
        if changed == self._seen:
            return []
        names = sorted(name for name in _visible(self.folder) if name > self.last)
        # Clocks of file systems are coarse: what has just changed may change again within the same tick.
        settled = not names and time.time_ns() - changed > 2 * 10**9
        self._seen = changed if settled else 0
        return names


class SetTail:
    """The files of a folder whose names have no order, each once: a name seen is remembered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = Lines()
        self._done: dict[str, int] = {}

    def new(self) -> list[dict[str, Any]]:
        """What has come since the last look."""
        found: list[dict[str, Any]] = []
        for name in sorted(_visible(self.folder)):
            run, number = _numbered(name)
            if number > self._done.get(run, -1):
                found.extend(self.lines.of(self.folder / name))
                self._done[run] = number
        return found


def _numbered(name: str) -> tuple[str, int]:
    """Late events are in files named by stream, micro-batch and task; of a task the last is remembered."""
    parts = name.split(".")[0].rsplit("-", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return f"{parts[0]}-{parts[2]}", int(parts[1])
    return name, 0


class SinkTail:
    """The lines that Spark's file sink has committed, in the order of the micro-batches, each once.

    The log has one file a micro-batch, and now and then one that holds all the entries before it too
    (`9.compact`), after which the single ones may be removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = Lines()
        self.next = 0
        self.missing = 0
        self._last: str | None = None

    def new(self) -> list[dict[str, Any]]:
        """What was committed since the last look."""
        found: list[dict[str, Any]] = []
        for batch, path in self._commits():
            try:
                found.extend(self._committed(path))
            except FileNotFoundError:  # removed since it was listed: a compact one has its entries
                break
            self.next = batch + 1
            if len(found) >= MANY:
                break
        return found

    def _commits(self) -> Iterator[tuple[int, Path]]:
        """The log's files that are to be read, in order: all that follow, or from the last that holds all."""
        log = self.folder / LOG
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

    def _committed(self, path: Path) -> Iterator[dict[str, Any]]:
        """The lines of the files that a commit adds."""
        names = []
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            if entry.get("action", "add") == "add":
                # Of the path only the name counts: the folder may have been moved.
                names.append((unquote(str(entry["path"])).rsplit("/", 1)[-1], int(entry.get("size", 1))))
        if path.name.endswith(".compact") and self._last is not None:
            places = [place for place, (name, _) in enumerate(names) if name == self._last]
            names = names[places[-1] + 1 :] if places else names
        for name, size in names:
            self._last = name
            if not size:
                continue
            try:
                yield from self.lines.of(self.folder / name)
            except FileNotFoundError:
                self.missing += 1


class FileTail:
    """The lines of one file that only grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = Lines()
        self._offset = 0

    def new(self) -> list[dict[str, Any]]:
        """The whole lines that were added since the last look."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._offset:  # begun anew
                    self._offset = 0
                file.seek(self._offset)
                added = file.read(8 * LONGEST_LINE)
        except FileNotFoundError:
            return []
        whole = added.rfind(b"\n") + 1
        if not whole and len(added) == 8 * LONGEST_LINE:  # a line without end is nothing to wait for
            whole = len(added)
        self._offset += whole
        return list(self.lines.parsed(added[:whole].split(b"\n")))


def _visible(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries if not entry.name.startswith((".", "_")))
    except FileNotFoundError:
        return
