"""A text file that may grow: whole lines from a position on, and the position to continue from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from typing import IO, Any

import pyarrow as pa

from nestream.source.errors import SourceError, first_line
from nestream.source.formats import compression_of, decompressed
from nestream.source.ladder import BEFORE, Ladder, digest

BLOCK = 1 << 20
"""How many bytes are read at a time."""
LONGEST = 1 << 26
"""The longest line; a longer one is a mistake."""
_MARKED = 1024
"""How many of the first bytes distinguish a file from another of the same name."""
_IN_MEMORY = 1 << 26


class RewrittenWarning(UserWarning):
    """A file that was read before was written anew or cut back. It matters each time it happens."""


class Another(Enum):
    """Another file under the name of a followed one."""

    OPEN = auto()
    """It is the file that is read now."""
    PENDING = auto()
    """The one before must be read to its end first: its last line is whole, because nobody completes it."""


class TextFile:
    """The lines of a file that were not read before.

    With `quoted`, a line ends only outside of quotes, like a CSV record. A followed file stays open, so that
    it is read to its end when a new one takes its name. One that was cut back is continued where it was cut,
    or a little before, so that no line is lost. With `forgiving`, a position in a file that was replaced or
    cut back since is no error: the file is read as if it had been followed. If that position has a floor,
    lines before the floor are not read again unless the file was replaced.

    Other files, and compressed ones, are closed in between. One that has other bytes at the beginning or
    before the position when it is opened again is a new file.

    `check` is called with the path and the first lines, and raises to refuse the file; the position then
    stays at its beginning.
    """

    __slots__ = (
        "_check",
        "_compression",
        "_done",
        "_file",
        "_floor",
        "_follows",
        "_forgiving",
        "_head",
        "_ladder",
        "_mark",
        "_tail",
        "inode",
        "line",
        "offset",
        "path",
        "quoted",
    )  # a folder may have many thousands of files

    def __init__(
        self,
        path: str,
        *,
        quoted: bool = False,
        follows: bool = False,
        forgiving: bool = False,
        check: Callable[[str, bytes], None] = lambda path, data: None,
    ) -> None:
        self.path = path
        self._check = check
        self.quoted = quoted
        self.offset = 0
        self.line = 1
        """The number of the next line."""
        self._compression = compression_of(path)
        self._follows, self._forgiving = follows, forgiving
        self._file: IO[bytes] | None = None
        self._head = b""
        """The first bytes, as long as they are needed."""
        self._mark: str | None = None
        """The hash of the first bytes, once there are enough of them."""
        self._tail: str | None = None
        """The hash of the last bytes before the position, if the file is closed in between."""
        self._ladder = Ladder() if follows else None
        self._floor = 0
        """The offset before which all lines are too old to be read again."""
        self._done = False
        """Whether nothing more is expected unless the file changes."""
        self.inode = 0
        """That of the file, if it must not be another one; 0 is any."""

    @property
    def is_begun(self) -> bool:
        """Whether some of it was read."""
        return self.offset > 0

    @property
    def is_fixed(self) -> bool:
        """Whether the file cannot grow."""
        return self._compression is not None

    @property
    def _is_reopened(self) -> bool:
        """Whether the file is closed in between."""
        return self.is_fixed or not self._follows

    def position(self) -> dict[str, Any]:
        """The position, how the file begins and, if it may be cut back, some places before."""
        mark = self._mark or digest(self._head)
        place: dict[str, Any] = {"offset": self.offset, "line": self.line, "mark": mark}
        if self._forgiving and self._ladder is not None:
            place["places"] = [list(one) for one in self._ladder.places]
            place["floor"] = self._floor
        if self._tail is not None:
            place["tail"] = self._tail
        return {**place, "done": True} if self._done else place

    def seek(self, position: dict[str, Any]) -> None:
        """Go to a position; raises if a followed file is a different one."""
        self.offset, self.line = position["offset"], position["line"]
        self._done = position.get("done", False)
        if self._is_reopened:
            self._mark, self._tail = position["mark"], position.get("tail")
            return
        self._ladder = Ladder(position.get("places"))
        self._floor = position.get("floor", 0)
        head, size = b"", -1
        try:
            with self._opened() as file:
                head = _read(file, 0, min(self.offset, _MARKED))
                size = file.seek(0, os.SEEK_END)
        except OSError:
            pass
        if size >= self.offset and digest(head) == position["mark"]:
            self._begins_with(head)
            self._know_places()
        elif self._forgiving and size >= 0:
            self._go_back(size)
        else:
            raise SourceError(
                f"{self.path} is not the file of the checkpoint: it was replaced, truncated or removed. "
                "Put the old file back, or start over without the checkpoint"
            )

    def _know_places(self) -> None:
        """Note places before a position that has none, so that a cut soon after it does not lead to 0."""
        if self._ladder is None or self._ladder.places or not self.offset or self.is_fixed:
            return
        begin = max(0, self.offset - BLOCK)
        with self._opened() as file:
            data = _read(file, begin, self.offset - begin)
        self._ladder.add(data, begin, self.line - data.count(b"\n"), inside=not self.quoted)

    def skip(self, offset: int) -> None:
        """Skip the lines up to an offset; a compressed file cannot skip."""
        if not offset or self.is_fixed:
            return
        with self._opened() as file:
            self._begins_with(_read(file, 0, _MARKED))
            file.seek(offset - 1)
            while data := file.read(BLOCK):
                end = data.find(b"\n") + 1
                offset += (end or len(data)) - 1
                if end:
                    break
                offset += 1
        self.offset, self.line = offset, 2  # the number of the line is unknown

    def take(self, *, to_end: bool) -> bytes:
        """The next whole lines; with `to_end`, also a last one without a line end."""
        if self._done:
            return b""
        was_closed = self._file is None
        with self._opened() as file:
            if was_closed and self._is_reopened:
                self._begin_again_if_other(file)
            size = BLOCK
            while True:
                data = _read(file, self.offset, size)
                is_end = len(data) < size
                whole = len(data) if is_end and (to_end or self.is_fixed) else self._whole(data)
                if whole or is_end:
                    break
                if size >= LONGEST:
                    whole = len(data)
                    break
                size *= 4
            if whole and self._is_rewritten(file):
                self._go_back(file.seek(0, os.SEEK_END))
                return self.take(to_end=to_end)
            found = data[:whole]
            if found and not self.offset:
                self._check(self.path, found)
            if found and self._is_reopened:
                self._tail = digest(_before(file, self.offset + whole))
        if found and self._ladder is not None:
            self._ladder.add(found, self.offset, self.line, inside=not self.quoted)
        if self.offset < _MARKED:
            self._begins_with(self._head + found[: _MARKED - self.offset])
        self.offset += whole
        self.line += found.count(b"\n")
        self._done = self.is_fixed and not found
        if not found and self._follows and not self.is_fixed and (there := self._is_another()):
            return self.take(to_end=to_end or there is Another.PENDING)
        return found

    def _begin_again_if_other(self, file: IO[bytes]) -> None:
        """Begin again if a file that was closed in between is another one now."""
        if not self._begins_alike(file) or not self._has_tail(file):
            self._tail = None
            self._begin_again(b"", 0, 1)
        else:
            self._mark = None
            self._begins_with(_read(file, 0, min(self.offset, _MARKED)))

    def continues(self) -> bool:
        """Whether the file has what was read, so that its lines are not new."""
        with self._opened() as file:
            return self._begins_alike(file) and self._has_tail(file)

    def _begins_alike(self, file: IO[bytes]) -> bool:
        return digest(_read(file, 0, min(self.offset, _MARKED))) == (self._mark or digest(self._head))

    def _has_tail(self, file: IO[bytes]) -> bool:
        return self._tail is None or digest(_before(file, self.offset)) == self._tail

    def changed(self) -> None:
        """Look again for more, also in a file that was given up."""
        self._done = False
        if self.is_fixed:
            self.close()

    def give_up(self) -> None:
        """Expect no more, because the file cannot be read."""
        self._done = True

    def _is_rewritten(self, file: IO[bytes]) -> bool:
        """Whether a followed file was cut back and has grown again since."""
        return self._ladder is not None and not self._ladder.still_there(partial(_read, file))

    def _whole(self, data: bytes) -> int:
        """How many of the bytes are whole lines."""
        end = data.rfind(b"\n") + 1
        if not self.quoted:
            return end
        while end and data.count(b'"', 0, end) % 2:
            end = data.rfind(b"\n", 0, end - 1) + 1
        return end

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """The file, which stays open if it is followed: of many files, only a few are open."""
        if self._file is None:
            if self._compression is None:
                self._file = open(self.path, "rb", buffering=0)
            else:
                self._file = self._unpacked(self._compression)
            if self.inode:
                self._check_inode()
        try:
            yield self._file
        finally:
            if not (self._follows or self.is_fixed):
                self.close()

    def _check_inode(self) -> None:
        assert self._file is not None
        is_plain = self._compression is None
        found = os.fstat(self._file.fileno()) if is_plain else os.stat(self.path)
        try:
            check_inode(self.path, self.inode, found)
        except FileNotFoundError:
            self.close()
            raise

    def _unpacked(self, compression: str) -> IO[bytes]:
        try:
            return decompressed(self.path, compression, _IN_MEMORY)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, EOFError, OSError) as error:
            raise SourceError(f"{self.path} is damaged: {first_line(error)}. Write it again") from error

    def _is_another(self) -> Another | None:
        """Whether there is a new file of the same name, or the file was cut back; if so, go to it.

        A new file is pending as long as the old one has bytes that were written after the last read.
        """
        assert self._file is not None
        try:
            there = os.stat(self.path)
        except OSError:  # the new one does not exist yet
            return None
        held = os.fstat(self._file.fileno())
        if (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino):
            if held.st_size > self.offset:
                return Another.PENDING
            self.close()
            self._go_to_new_file()
        elif there.st_size < self.offset:
            self._go_back(there.st_size)
        else:
            return None
        return Another.OPEN

    def _go_to_new_file(self) -> None:
        """Continue in a new file after the old one was read to its end.

        If it begins like the old one, somebody has written the old lines again: warn that they are read anew.
        """
        with self._opened() as file:
            is_alike = self.offset > 0 and self._begins_alike(file)
        self._ladder = Ladder()
        self._begin_again(b"", 0, 1, warns=is_alike)

    def _go_back(self, size: int) -> None:
        """Continue after the last line that was read and is still there, given the size."""
        offset, line, head = 0, 1, b""
        with self._opened() as file:
            if self._ladder is not None:
                offset, line = self._ladder.go_back(size, partial(_read, file))
                if 0 < offset < self._floor:
                    data = _read(file, offset, min(self._floor, size) - offset)
                    if whole := self._whole(data):
                        data = data[:whole]
                        self._ladder.add(data, offset, line, inside=not self.quoted)
                        offset, line = offset + whole, line + data.count(b"\n")
            head = _read(file, 0, min(offset, _MARKED))
        self._begin_again(head, offset, line)

    def _begin_again(self, head: bytes, offset: int, line: int, *, warns: bool = True) -> None:
        """Continue at an earlier line, or in a new file at its first one, and warn of it."""
        if not warns:
            pass
        elif offset:
            told = f"{self.path} was cut back; it is read on where it was cut"
            warnings.warn(told, RewrittenWarning, stacklevel=2)
        else:
            warn_of_new_file(self.path)
        self.offset, self.line, self._mark = offset, line, None
        self._floor = min(self._floor, offset)  # what is written after the cut is new
        self._begins_with(head)

    def _begins_with(self, head: bytes) -> None:
        """Note the first bytes; once there are enough, only their hash is needed."""
        self._head = head
        if len(head) == _MARKED:
            self._head, self._mark = b"", digest(head)


def warn_of_new_file(path: str) -> None:
    """Warn that a file is another one than before."""
    warnings.warn(
        f"{path} was written anew or cut back; it is read from its beginning, so lines may come again, and "
        "old ones not yet read are lost",
        RewrittenWarning,
        stacklevel=2,
    )


def check_inode(path: str, wanted: int, found: os.stat_result) -> None:
    """Raise as if the file were gone if its name belongs to another one now; 0 is any."""
    if wanted and found.st_ino != wanted:
        raise FileNotFoundError(f"{path} was renamed since it was listed")


def _read(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _before(file: IO[bytes], offset: int) -> bytes:
    """Some bytes before an offset; fewer if the file is shorter."""
    begin = max(0, offset - BEFORE)
    return _read(file, begin, offset - begin)
