"""A text file that may grow: whole lines from a position on, and the position to continue from."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from nestream.source.errors import SourceError
from nestream.source.formats import compression_of, decompressed

BLOCK = 1 << 20
"""How many bytes are read at a time."""
LONGEST = 1 << 26
"""The longest line; a longer one is a mistake."""
_MARKED = 1024
"""How many of the first bytes distinguish a file from another of the same name."""
_IN_MEMORY = 1 << 26


class TextFile:
    """The lines of a file that were not read before.

    With `quoted`, a line ends only outside of quotes, like a CSV record. A followed file stays open, so that
    it is read to its end when a new one takes its name. One that was cut back is continued where it was cut.
    A compressed file does not grow. With `forgiving`, a position in a file that was replaced or cut back
    since is no error: the file is read as if it had been followed.
    """

    __slots__ = (
        "_compression",
        "_done",
        "_file",
        "_follows",
        "_forgiving",
        "_head",
        "_mark",
        "line",
        "offset",
        "path",
        "quoted",
    )  # a folder may have many thousands of files

    def __init__(
        self, path: str, *, quoted: bool = False, follows: bool = False, forgiving: bool = False
    ) -> None:
        self.path = path
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
        self._done = False
        """Whether a file that cannot grow was read to its end."""

    @property
    def is_fixed(self) -> bool:
        """Whether the file cannot grow."""
        return self._compression is not None

    def position(self) -> dict[str, Any]:
        """The position, and how the file begins."""
        mark = self._mark or _hash(self._head)
        place = {"offset": self.offset, "line": self.line, "mark": mark}
        return {**place, "done": True} if self._done else place

    def seek(self, position: dict[str, Any]) -> None:
        """Go to a position; raises if the file is a different one."""
        self.offset, self.line = position["offset"], position["line"]
        self._done = position.get("done", False)
        if self._done:
            return
        head, size = b"", -1
        try:
            with self._opened() as file:
                file.seek(0)
                head = file.read(min(self.offset, _MARKED))
                file.seek(0, os.SEEK_END)
                size = file.tell()
        except OSError:
            pass
        is_same = _hash(head) == position["mark"]
        if is_same:
            self._begins_with(head)
        if size >= self.offset and is_same:
            return
        if self._forgiving and size >= 0:
            self._go_back(size if is_same else 0)
        else:
            raise SourceError(
                f"{self.path} is not the file of the checkpoint: it was replaced, truncated or removed. "
                "Put the old file back, or start over without the checkpoint"
            )

    def skip(self, offset: int) -> None:
        """Skip the lines up to an offset; a compressed file cannot skip."""
        if not offset or self.is_fixed:
            return
        with self._opened() as file:
            file.seek(0)
            self._begins_with(file.read(_MARKED))
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
        with self._opened() as file:
            size = BLOCK
            while True:
                file.seek(self.offset)
                data = file.read(size)
                is_end = len(data) < size
                whole = len(data) if is_end and (to_end or self.is_fixed) else self._whole(data)
                if whole or is_end:
                    break
                if size >= LONGEST:
                    whole = len(data)
                    break
                size *= 4
        found = data[:whole]
        if self.offset < _MARKED:
            self._begins_with(self._head + found[: _MARKED - self.offset])
        self.offset += whole
        self.line += found.count(b"\n")
        self._done = self.is_fixed and not found
        if not found and self._follows:
            self._look_for_another()
        return found

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
        try:
            yield self._file
        finally:
            if not (self._follows or self.is_fixed):
                self.close()

    def _unpacked(self, compression: str) -> IO[bytes]:
        try:
            return decompressed(self.path, compression, _IN_MEMORY)
        except (pa.ArrowException, EOFError, OSError) as error:
            raise SourceError(f"{self.path} is damaged: {error}. Write it again") from error

    def _look_for_another(self) -> None:
        """Continue with a new file of the same name, once the old one is read to its end."""
        assert self._file is not None
        try:
            there = os.stat(self.path)
        except OSError:  # the new one does not exist yet
            return
        held = os.fstat(self._file.fileno())
        if (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino):
            self.close()
            self._go_back(0)
        elif there.st_size < self.offset:
            self._file.seek(0)
            head = self._file.read(min(there.st_size, _MARKED))
            self._go_back(there.st_size if self._head.startswith(head) else 0)

    def _go_back(self, size: int) -> None:
        """Continue after the last whole line of the first bytes: of 0 for a new file."""
        offset, line, head = 0, 1, b""
        if size and not self.quoted:  # whether a quote is open there is known only from the beginning
            with self._opened() as file:
                file.seek(0)
                passed = 0
                while passed < size and (data := file.read(min(BLOCK, size - passed))):
                    line += data.count(b"\n")
                    if b"\n" in data:
                        offset = passed + data.rfind(b"\n") + 1
                    passed += len(data)
                file.seek(0)
                head = file.read(min(offset, _MARKED))
        where = "where it was cut" if offset else "from its beginning"
        warnings.warn(
            f"{self.path} was {'cut back' if size else 'replaced'}; it is read on {where}", stacklevel=2
        )
        self.offset, self.line, self._mark = offset, line, None
        self._begins_with(head)

    def _begins_with(self, head: bytes) -> None:
        """Note the first bytes. A followed file keeps them, to compare them when it is cut back."""
        self._head = head
        if len(head) == _MARKED and not self._follows:
            self._head, self._mark = b"", _hash(head)


def _hash(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()[:16]
