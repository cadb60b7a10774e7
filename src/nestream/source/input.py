"""The input as bytes: a file or standard input, its format, and how much has been read."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from nestream.model.formats import SUFFIXES, Format
from nestream.model.wording import reason
from nestream.source.errors import SourceError, first_line
from nestream.source.formats import compression_of, decompressed, known_format, listed_formats, suffix_of

Progress = Callable[[int, int, int], None]
"""Called with (rows read, bytes read, total bytes)."""

LARGE = 256 * 1024 * 1024
"""From this many bytes on, an input is not held in memory if that can be avoided."""
_IN_MEMORY = 64 * 1024 * 1024


class Input:
    """One input that can be read several times.

    Standard input and decompressed files are kept: on disk when large.
    """

    def __init__(self, path: str | os.PathLike[str], format: str | None, progress: Progress | None) -> None:
        self.name = os.fspath(path)
        self.format = _format(self.name, format)
        self._kept: IO[bytes] | None = None
        if self.name == "-":
            self._kept = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)
            while piece := sys.stdin.buffer.read(1 << 20):
                self._kept.write(piece)
            self.size = self._kept.tell()
        else:
            self.size = _readable_size(Path(self.name))
            compression = compression_of(self.name)
            if compression is not None and self.size:
                self._kept = _unpacked(self.name, compression)
                self.size = self._kept.tell()
        if self.size == 0 and self.format != "jsonl":
            needed = "a header line with the columns' names" if self.format == "csv" else "the columns' names"
            raise SourceError(f"{self.where} is empty. It needs {needed}, also without events")
        self._progress = progress
        self._furthest = 0

    @property
    def is_large(self) -> bool:
        """Whether the input should not be held in memory."""
        return self.size >= LARGE

    @property
    def where(self) -> str:
        """The name of the input in messages."""
        return "standard input" if self.name == "-" else self.name

    def open(self) -> IO[bytes]:
        """The bytes from the beginning."""
        if self._kept is not None:
            self._kept.seek(0)
            return cast(IO[bytes], Unclosed(self._kept))
        try:
            return open(self.name, "rb")
        except OSError as error:
            raise cannot_read(self.where, error) from error

    def inspected(self, position: int) -> None:
        """Progress of finding types and malformed rows: the first half."""
        self._report(0, position // 2)

    def delivered(self, rows: int, position: int) -> None:
        """Progress of delivering events: the second half."""
        self._report(rows, (self.size + min(position, self.size)) // 2)

    def _report(self, rows: int, position: int) -> None:
        if self._progress is not None:
            self._furthest = max(self._furthest, min(position, self.size))
            self._progress(rows, self._furthest, self.size)


class Fragment(Input):
    """Some bytes that were already read, as an input."""

    def __init__(self, name: str, format: Format, data: bytes) -> None:
        self.name, self.format = name, format
        self.size = len(data)
        self._kept = io.BytesIO(data)
        self._progress = None
        self._furthest = 0


class Unclosed(io.RawIOBase):
    """A copy of the input, which outlives each reading of it."""

    def __init__(self, kept: IO[bytes]) -> None:
        self._kept = kept

    def read(self, size: int = -1) -> bytes:
        return self._kept.read(size)

    def readline(self, size: int | None = -1) -> bytes:
        return self._kept.readline(-1 if size is None else size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._kept.seek(offset, whence)
        return self._kept.tell()

    def tell(self) -> int:
        return self._kept.tell()


def cannot_read(where: str, error: OSError) -> SourceError:
    """Turn an error of the operating system into a sentence."""
    hint = {
        FileNotFoundError: "Check the path",
        PermissionError: "Ask its owner for read permission",
        IsADirectoryError: "Name one file in it",
    }.get(type(error), "Check the path and the disk")
    return SourceError(f"cannot read {where}: {reason(error)}. {hint}")


def _readable_size(path: Path) -> int:
    try:
        if path.is_dir():
            raise IsADirectoryError(21, os.strerror(21))
        with open(path, "rb") as file:
            return os.fstat(file.fileno()).st_size or len(file.peek(1))
    except OSError as error:
        raise cannot_read(str(path), error) from error
    except ValueError as error:  # a NUL in the path
        raise SourceError(f"cannot read {str(path)!r}: {error}. Check the path") from error


def _unpacked(name: str, compression: str) -> IO[bytes]:
    try:
        return decompressed(name, compression, _IN_MEMORY)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{name} is not a {compression} file, or is damaged: {first_line(error)}. Write it again"
        ) from error


def _format(name: str, wanted: str | None) -> Format:
    if wanted is not None:
        return known_format(wanted)
    if name == "-":
        raise SourceError(f"standard input has no suffix. Name its format: {listed_formats()}")
    suffix = suffix_of(name)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if not os.path.exists(name):
        raise SourceError(f"cannot read {name}: no such file or directory. Check the path")
    if os.path.isdir(name):
        raise SourceError(f"cannot read {name}: is a directory. Name one file in it")
    told = f"the suffix {suffix!r} is" if suffix else "it has no suffix, which is"
    raise SourceError(
        f"cannot tell the format of {name}: {told} none of {', '.join(SUFFIXES)}. "
        f"Rename it, or name the format: {listed_formats()}"
    )
