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
    it is read to its end when a new one takes its name. A compressed file does not grow.
    """

    def __init__(self, path: str, *, quoted: bool = False, follows: bool = False) -> None:
        self.path = path
        self.quoted = quoted
        self.offset = 0
        self.line = 1
        """The number of the next line."""
        self._compression = compression_of(path)
        self._follows = follows
        self._file: IO[bytes] | None = None
        self._head = b""
        self._done = False
        """Whether a file that cannot grow was read to its end."""

    @property
    def is_fixed(self) -> bool:
        """Whether the file cannot grow."""
        return self._compression is not None

    def position(self) -> dict[str, Any]:
        """The position, and how the file begins."""
        place = {"offset": self.offset, "line": self.line, "mark": _mark(self._head)}
        return {**place, "done": True} if self._done else place

    def seek(self, position: dict[str, Any]) -> None:
        """Go to a position; raises if the file is a different one."""
        self.offset, self.line = position["offset"], position["line"]
        self._done = position.get("done", False)
        if self._done:
            return
        self._head, size = b"", -1
        try:
            with self._opened() as file:
                file.seek(0)
                self._head = file.read(min(self.offset, _MARKED))
                file.seek(0, os.SEEK_END)
                size = file.tell()
        except OSError:
            pass
        if size < self.offset or _mark(self._head) != position["mark"]:
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
            self._head = file.read(_MARKED)
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
            self._head += found[: _MARKED - self.offset]
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
        replaced = (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino)
        if replaced or there.st_size < self.offset:
            what = "replaced" if replaced else "cut"
            warnings.warn(f"{self.path} was {what}; it is read again from its beginning", stacklevel=2)
            self.close()
            self.offset, self.line, self._head = 0, 1, b""


def _mark(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()[:16]
