"""Files as a source: one that grows, those of a folder, or those that a pattern matches."""

from __future__ import annotations

import glob
import os
import time as clock
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from nestream.model.formats import SUFFIXES, Format
from nestream.source.dead_letter import DeadLetter
from nestream.source.errors import SourceError
from nestream.source.formats import files_below, suffix_of
from nestream.source.input import cannot_read
from nestream.source.parts import Columns, JsonPart, Part, part_of
from nestream.source.protocol import Batch, Position

POLL = 0.005
"""How many seconds pass between two checks of files without new data."""
_SHARE = 10
"""Checking takes at most this fraction of the time."""
UNFINISHED = 5.0
"""For how many seconds after its last change an unreadable file of a folder may still be incomplete."""
NEWEST = 16 << 20
"""The number of bytes read from existing files, if only the newest are wanted."""
DAY = 24 * 3600.0
"""How many seconds the position in a file of a folder is kept after the file is gone."""
_WILD = frozenset("*?[")


class Files:
    """The files of a place: existing ones, by the time of their last change, then those that arrive or grow.

    With `once`, the source ends when all existing data was read. With `whole`, a last line without a line end
    counts, because nobody will complete it. With `newest`, only the last megabytes of existing data are read:
    whole files, or the end of a single text file. With `forgiving`, a position in a text file that was
    replaced or cut back since is no error. The position in a file of a folder is kept for `keeps` seconds
    after the file is gone, across restarts too: if it comes back, it is continued. What is held grows with
    the files that exist or are gone for less, by less than a kilobyte each.
    """

    repeatable = True

    def __init__(
        self,
        place: str,
        time: str,
        type: str | None,
        *,
        format: Format | None = None,
        once: bool = False,
        whole: bool = False,
        moments: Collection[str] | None = None,
        newest: bool = False,
        forgiving: bool = False,
        keeps: float = DAY,
    ) -> None:
        self.where = place
        self._forgiving, self._keeps = forgiving, keeps
        self._format, self._once, self._whole = format, once, whole
        self._alone = not os.path.isdir(place) and not is_pattern(place)
        if self._alone:
            _check_file(place)
        self._columns = Columns(time, type, moments)
        self._parts: dict[str, Part] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        """The sizes and modification times of files that have nothing more for now."""
        self._queue: list[str] = []
        self._changed: dict[str, tuple[int, int]] = {}
        """The sizes and modification times of the files of the queue."""
        self._again: set[str] = set()
        """The files of the queue that had nothing more before."""
        self._gone: dict[str, float] = {}
        """Since when files with a position are gone."""
        self._idle = POLL
        self._looked = 0.0
        self._ended = False
        self._skips = newest

    @property
    def ended(self) -> bool:
        """With `once`, whether everything was read."""
        return self._ended

    def read(self, wait: float) -> Batch | None:
        """Return more events, or None if nothing arrives in time."""
        until = clock.monotonic() + wait
        while True:
            found = self._next()
            if found is not None:
                return found
            if self._once:
                self._ended = True
                return None
            left = until - clock.monotonic()
            if left <= 0:
                return None
            clock.sleep(min(self._idle, left))

    def _next(self) -> Batch | None:
        """The next batch of the files; each is read to its end before the next one."""
        if not self._queue:
            if clock.monotonic() < self._looked + self._idle:
                return None
            self._look()
        while self._queue:
            path = self._queue[0]
            part = self._parts.get(path)
            if part is None:
                part = self._parts[path] = self._part(path)
            try:
                if path in self._again:
                    self._again.discard(path)
                    self._seen.pop(path, None)
                    part.changed()
                found = part.read(to_end=self._whole)
                if found is None:
                    self._seen[path] = self._changed[path]
            except FileNotFoundError:
                found = None  # it was removed since it was listed; its position is kept
            except SourceError as problem:
                if self._alone:
                    raise
                found = self._unreadable(path, part, problem)
            except OSError as error:
                raise cannot_read(path, error) from error
            if found is not None:
                return found
            self._queue.pop(0)
            if not self._alone:
                part.close()
        return None

    def _unreadable(self, path: str, part: Part, problem: SourceError) -> Batch | None:
        """A file that cannot be read, as a dead letter; None if it is gone or may be incomplete."""
        found = _state(path)
        if found is None or (not self._whole and clock.time() - found[1] / 1e9 < UNFINISHED):
            return None
        part.give_up()
        return Batch(pa.table({}), [DeadLetter(path, 0, str(problem), "")])

    def _look(self) -> None:
        """List the files that are new or have changed."""
        begin = clock.monotonic()
        listed = {path: found for path in self._paths() if (found := _state(path)) is not None}
        if not self._alone and listed:  # if all are gone, the folder may be out of reach
            self._forget(listed)
        self._changed = {path: found for path, found in listed.items() if self._seen.get(path) != found}
        self._queue = sorted(self._changed, key=lambda path: (self._changed[path][1], path))
        self._again = self._parts.keys() & self._changed.keys()
        if self._skips:
            self._skip_to_newest()
        self._looked = clock.monotonic()
        self._idle = max(POLL, _SHARE * (self._looked - begin))

    def _forget(self, listed: Collection[str]) -> None:
        """Forget the files that are gone for long enough."""
        now = clock.time()
        known = self._parts.keys() | self._seen.keys()
        self._gone = {path: self._gone.get(path, now) for path in known.difference(listed)}
        for path in [path for path, since in self._gone.items() if now - since >= self._keeps]:
            del self._gone[path]
            self._seen.pop(path, None)
            if (part := self._parts.pop(path, None)) is not None:
                part.close()

    def _part(self, path: str) -> Part:
        return part_of(
            path, self._format_of(path), self._columns, alone=self._alone, forgiving=self._forgiving
        )

    def _skip_to_newest(self) -> None:
        """Skip existing data except the last part."""
        self._skips, size = False, 0
        if self._alone:
            for path in self._queue:
                part = self._parts[path] = self._part(path)
                if isinstance(part, JsonPart):
                    part.skip(max(0, self._changed[path][0] - NEWEST))
            return
        for number, path in enumerate(reversed(self._queue)):
            size += self._changed[path][0]
            if number and size > NEWEST:
                skipped = self._queue[: len(self._queue) - number]
                self._seen |= {one: self._changed[one] for one in skipped}
                self._queue = self._queue[len(skipped) :]
                return

    def _paths(self) -> Iterator[str]:
        if self._alone:
            yield os.path.abspath(self.where)
            return
        for path in matching_files(self.where):
            if self._format is not None or suffix_of(path) in SUFFIXES:
                yield os.path.abspath(path)

    def _format_of(self, path: str) -> Format:
        return self._format or SUFFIXES[suffix_of(path)]

    def position(self) -> Position:
        """The position in each file; of one that does not grow also its state, to see if it changes."""
        files = {}
        for path, part in self._parts.items():
            seen = self._seen.get(path) if part.is_fixed else None
            files[path] = part.position() if seen is None else {**part.position(), "seen": list(seen)}
        return {"files": files, "columns": self._columns.position(), "gone": dict(self._gone)}

    def seek(self, position: Position) -> None:
        """Continue in each file."""
        self._columns.seek(position["columns"])
        self._gone = dict(position.get("gone", {}))
        self._skips = False
        for path, place in position["files"].items():
            part = self._parts[path] = self._part(path)
            part.seek(place)
            if "seen" in place:
                size, changed = place["seen"]
                self._seen[path] = size, changed

    def commit(self, position: Position) -> None:
        """Nothing to do: files stay as they are."""

    def close(self) -> None:
        """Close all files."""
        for part in self._parts.values():
            part.close()


def as_beginning(position: Position) -> Position:
    """A position as a beginning: when a file is cut back, a forgiving source stays behind it."""
    if "files" not in position:
        return position
    files = {path: {**place, "floor": place.get("offset", 0)} for path, place in position["files"].items()}
    return {**position, "files": files}


def is_pattern(place: str) -> bool:
    """Whether a place is a pattern."""
    return bool(_WILD & set(place)) and not os.path.exists(place)


def matching_files(place: str) -> list[str]:
    """The files of a folder, or those that a pattern matches."""
    if os.path.isdir(place):
        return [str(path) for path in files_below(place)]
    hidden = () if os.path.basename(place).startswith(("_", ".")) else ("_", ".")
    found = (path for path in glob.glob(place, recursive=True) if os.path.isfile(path))
    return sorted(path for path in found if not os.path.basename(path).startswith(hidden))


def _check_file(place: str) -> None:
    try:
        with open(place, "rb"):
            pass
    except OSError as error:
        raise cannot_read(place, error) from error
    if not Path(place).is_file():
        raise SourceError(
            f"cannot read {place} as a stream: it is not a plain file. Read it as - through a pipe"
        )


def _state(path: str) -> tuple[int, int] | None:
    """The size and the modification time of a file; None if it is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot_read(path, error) from error
    return found.st_size, found.st_mtime_ns
