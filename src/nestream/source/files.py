"""Files as a source: one that grows, those of a folder, or those that a pattern matches."""

from __future__ import annotations

import os
import time as clock
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from nestream.model.formats import SUFFIXES, Format
from nestream.source.dead_letter import DeadLetter
from nestream.source.errors import SourceError, without_path
from nestream.source.formats import compression_of, suffix_of
from nestream.source.input import cannot_read
from nestream.source.listing import is_pattern, matching_files
from nestream.source.parts import Columns, JsonPart, Part, part_of
from nestream.source.protocol import Batch, Position
from nestream.source.renamed import Away, Known, State, follow_names, newest, state_of
from nestream.source.text_file import warn_of_new_file

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


class Files:
    """The files of a place: existing ones, by the time of their last change, then those that arrive or grow.

    With `once`, the source ends when all existing data was read, and warns of last lines without a line end,
    which are not read. With `whole`, such a line counts, because nobody will complete it. With `newest`,
    only the last megabytes of existing data are read: whole files, or the end of a single text file. With
    `forgiving`, a position in a text file that was replaced or cut back since is no error.

    A file of a folder that is renamed is continued under its new name. Its position is kept for `keeps`
    seconds after the file is gone, across restarts too: if it comes back, under any name, it is continued.
    What is held grows with the files that exist or are gone for less, by less than a kilobyte each; of those
    that were replaced, only the last of each name are kept.
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
        self._known: dict[str, Known] = {}
        self._away: list[Away] = []
        self._queue: list[str] = []
        self._changed: dict[str, State] = {}
        """The states of the files of the queue."""
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
                self._warn_of_unfinished()
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
            known = self._known.setdefault(path, Known())
            if known.part is None:
                known.part = self._part(path)
            part = known.part
            if not self._alone:
                part.inode = known.inode = self._changed[path].inode
            try:
                if path in self._again:
                    self._again.discard(path)
                    known.seen = None
                    part.changed()
                found = part.read(to_end=self._whole)
                if found is None:
                    known.seen = self._changed[path].seen
            except FileNotFoundError:
                found = None  # it was removed or renamed since it was listed; its position is kept
            except SourceError as problem:
                if self._alone:
                    raise
                found = self._unreadable(path, known, part, problem)
            except OSError as error:
                raise cannot_read(path, error) from error
            if found is not None:
                return found
            self._queue.pop(0)
            if not self._alone:
                part.close()
        return None

    def _warn_of_unfinished(self) -> None:
        """Warn of last lines that were not read, because they have no line end."""
        found = (
            [] if self._whole else sorted(filter(self._is_unfinished, self._known.keys() - self._gone.keys()))
        )
        if found:
            name = self.where if self._alone else found[0]
            others = f" and {len(found) - 1} more" if len(found) > 1 else ""
            warnings.warn(
                f"{name}{others} {'end' if others else 'ends'} in an unfinished line, which is left for the "
                "next run; --flush reads it",
                stacklevel=2,
            )

    def _is_unfinished(self, path: str) -> bool:
        known = self._known[path]
        if known.part is None or known.part.is_fixed or known.seen is None:
            return False
        place = known.part.position()
        return not place.get("done") and place["offset"] < known.seen[0]

    def _unreadable(self, path: str, known: Known, part: Part, problem: SourceError) -> Batch | None:
        """A file that cannot be read, as a dead letter; None if it is gone or may be incomplete.

        With `once` nobody looks again. The first lines of a file that grows do not change any more.
        """
        found = state_of(path)
        if found is None:
            return None
        if part.is_fixed and not self._once and clock.time() - found.changed / 1e9 < UNFINISHED:
            return None
        part.give_up()
        known.seen = self._changed[path].seen
        return Batch(pa.table({}), [DeadLetter(path, 0, without_path(problem, path), "")])

    def _look(self) -> None:
        """List the files that are new or have changed."""
        begin = clock.monotonic()
        listed = self._listed()
        if not self._alone:
            listed = self._follow_names(listed)
        if not self._alone and listed:  # if all are gone, the folder may be out of reach
            self._forget(listed)
        known = self._known
        self._changed = {
            path: state
            for path, state in listed.items()
            if path not in known or known[path].seen != state.seen
        }
        self._queue = sorted(self._changed, key=lambda path: (self._changed[path].changed, path))
        self._again = {path for path in self._changed if path in known and known[path].part is not None}
        if self._skips:
            self._skip_to_newest()
        self._looked = clock.monotonic()
        self._idle = max(POLL, _SHARE * (self._looked - begin))

    def _listed(self) -> dict[str, State]:
        return {path: found for path in self._paths() if (found := state_of(path)) is not None}

    def _follow_names(self, listed: dict[str, State]) -> dict[str, State]:
        """Continue renamed files under their new names; return the files, each under one name."""
        now = clock.time()
        names = follow_names(listed, self._known, self._away, self._moved, now)
        if names.replaced:  # the old files may have been renamed while the names were listed
            names = follow_names(self._listed(), self._known, self._away, self._moved, now)
        for path in names.replaced:
            warn_of_new_file(path)
        self._known, self._away = names.known, names.away
        return names.present

    def _moved(self, path: str, state: State, before: str, known: Known) -> Known | None:
        """What is known of a file, under this name, if it has what was read of it."""
        is_untouched = known.seen == state.seen
        if known.part is None:
            return Known(None, known.seen, state.inode) if is_untouched else None
        if self._format_of(path) != self._format_of(before) or compression_of(path) != compression_of(before):
            return None
        part = self._part(path)
        part.seek(known.part.position())
        part.inode = state.inode
        if not is_untouched and not part.is_begun:
            return None  # of nothing, any file has all
        if not is_untouched and path != before and known.seen is not None and known.seen[0] == state.size:
            return None  # a rename keeps the time of the last change
        if not (is_untouched and part.is_fixed):
            try:
                if not part.continues():
                    return None
            except (FileNotFoundError, PermissionError, SourceError):
                return None  # if it is there, reading it says why it cannot be read
            finally:
                part.close()
        return Known(part, known.seen, state.inode)

    def _forget(self, listed: Collection[str]) -> None:
        """Forget the files that are gone for long enough."""
        now = clock.time()
        self._gone = {path: self._gone.get(path, now) for path in self._known.keys() - listed}
        for path in [path for path, since in self._gone.items() if now - since >= self._keeps]:
            del self._gone[path]
            if (part := self._known.pop(path).part) is not None:
                part.close()
        self._away = newest([gone for gone in self._away if now - gone.since < self._keeps])

    def _part(self, path: str) -> Part:
        return part_of(
            path, self._format_of(path), self._columns, alone=self._alone, forgiving=self._forgiving
        )

    def _skip_to_newest(self) -> None:
        """Skip existing data except the last part."""
        self._skips, size = False, 0
        if self._alone:
            for path in self._queue:
                part = self._part(path)
                self._known[path] = Known(part)
                if isinstance(part, JsonPart):
                    part.skip(max(0, self._changed[path].size - NEWEST))
            return
        for number, path in enumerate(reversed(self._queue)):
            size += self._changed[path].size
            if number and size > NEWEST:
                skipped = self._queue[: len(self._queue) - number]
                for one in skipped:
                    self._known[one] = Known(None, self._changed[one].seen, self._changed[one].inode)
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
        """The position in each file, and the state of one that had nothing more, to see if it changes."""
        return {
            "files": {
                path: _place_of(known.part, known)
                for path, known in self._known.items()
                if known.part is not None
            },
            "columns": self._columns.position(),
            "gone": dict(self._gone),
            "away": [
                {"path": path, "since": since, "place": _place_of(known.part, known)}
                for path, since, known in self._away
                if known.part is not None
            ],
        }

    def seek(self, position: Position) -> None:
        """Continue in each file."""
        self._columns.seek(position["columns"])
        self._gone = dict(position.get("gone", {}))
        self._skips = False
        self._known = {path: self._known_at(path, place) for path, place in position["files"].items()}
        self._away = [
            Away(gone["path"], gone["since"], self._known_at(gone["path"], gone["place"]))
            for gone in position.get("away", ())
        ]

    def _known_at(self, path: str, place: Position) -> Known:
        part = self._part(path)
        part.seek(place)
        seen: tuple[int, int] | None = None
        if "seen" in place:
            seen = (place["seen"][0], place["seen"][1])
        if self._whole and not (part.is_fixed or place.get("done")):
            seen = None  # a last line without a line end counts now
        return Known(part, seen, place.get("inode", 0))

    def commit(self, position: Position) -> None:
        """Nothing to do: files stay as they are."""

    def close(self) -> None:
        """Close all files."""
        for known in self._known.values():
            if known.part is not None:
                known.part.close()


def _place_of(part: Part, known: Known) -> Position:
    place = {**part.position(), "inode": known.inode} if known.inode else part.position()
    return place if known.seen is None else {**place, "seen": list(known.seen)}


def as_beginning(position: Position) -> Position:
    """A position as a beginning: when a file is cut back, a forgiving source stays behind it."""
    if "files" not in position:
        return position
    files = {path: {**place, "floor": place.get("offset", 0)} for path, place in position["files"].items()}
    return {**position, "files": files}


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
