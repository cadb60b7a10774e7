"""The state of buckets as files beside the checkpoint: what is new in a micro-batch is written once.

A bucket writes one file for each micro-batch: its new chunks, its header, and an index that locates all of
its chunks, including those in earlier files. The commit of the micro-batch names the index of each bucket. A
file that no index names any more is removed after the next commit. Each part has a checksum, because Arrow
would trust whatever the bytes contain.
"""

from __future__ import annotations

import json
import uuid
import zlib
from dataclasses import dataclass
from typing import Any

from nestream.runtime.spark.stream_place import Place
from nestream.runtime.state import StateError


@dataclass(frozen=True)
class Part:
    """Where some bytes are, and their checksum."""

    file: str
    offset: int
    length: int
    checksum: int

    def plain(self) -> list[Any]:
        """The part as JSON data."""
        return [self.file, self.offset, self.length, self.checksum]


@dataclass(frozen=True)
class Version:
    """The state of a bucket after a micro-batch."""

    token: str
    """What an engine kept by a worker must have to be of exactly this version."""
    index: Part
    files: tuple[str, ...]
    """The files that hold it."""
    rows: int
    """How many events it holds."""
    size: int
    """Their size in bytes."""

    def plain(self) -> dict[str, Any]:
        """The version as JSON data."""
        return {**vars(self), "index": self.index.plain()}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Version:
        """The version from JSON data."""
        return cls(**plain | {"index": Part(*plain["index"]), "files": tuple(plain["files"])})


class FileCells:
    """The header and the chunks of one bucket: those of a version, and the changes since."""

    def __init__(self, place: Place, version: Version | None) -> None:
        self._place = place
        self._version = version
        self._header: bytes | None = None
        self._kept: dict[int, Part] | None = None if version is not None else {}
        self._new: dict[int, bytes] = {}

    def _read(self, part: Part) -> bytes:
        found = self._place.read(part.file, part.offset, part.length)
        if found is None or len(found) != part.length or zlib.crc32(found) != part.checksum:
            what = "is missing" if found is None else "is damaged or cut short"
            raise StateError(
                f"the state file {self._place}/{part.file} {what}\n"
                "  hint: restore the checkpoint from a copy, or remove it together with the matches to "
                "start over"
            )
        return found

    def _index(self) -> dict[int, Part]:
        if self._kept is None:
            assert self._version is not None
            read = json.loads(self._read(self._version.index))
            self._kept = {int(number): Part(*part) for number, part in read["chunks"].items()}
            if self._header is None:
                self._header = self._read(Part(*read["header"]))
        return self._kept

    def header(self) -> bytes | None:
        """The header; None if nothing is stored."""
        self._index()
        return self._header

    def set_header(self, data: bytes) -> None:
        """Write the header."""
        self._index()
        self._header = data

    def chunk(self, number: int) -> bytes:
        """Read a chunk."""
        return self._new[number] if number in self._new else self._read(self._index()[number])

    def set_chunk(self, number: int, data: bytes) -> None:
        """Write a chunk."""
        self._new[number] = data

    def remove_chunk(self, number: int) -> None:
        """Remove a chunk."""
        if self._new.pop(number, None) is None:
            del self._index()[number]

    def clear(self) -> None:
        """Remove everything."""
        self._header, self._kept, self._new = None, {}, {}

    def write(self, prefix: str, token: str, rows: int) -> Version:
        """Write what is new to a new file: a task that runs again writes another one."""
        assert self._header is not None
        name = f"{prefix}-{uuid.uuid4().hex[:12]}"
        chunks = self._index()
        offset = 0

        def placed(data: bytes) -> Part:
            nonlocal offset
            part = Part(name, offset, len(data), zlib.crc32(data))
            offset += len(data)
            return part

        chunks |= {number: placed(data) for number, data in self._new.items()}
        header = placed(self._header)
        plain = {"header": header.plain(), "chunks": {n: part.plain() for n, part in chunks.items()}}
        index = json.dumps(plain).encode()
        with self._place.writing(name) as file:
            for data in (*self._new.values(), self._header, index):
                file.write(data)
        self._new = {}
        files = dict.fromkeys([name, *(part.file for part in chunks.values())])
        size = header.length + sum(part.length for part in chunks.values())
        return Version(token, placed(index), tuple(files), rows, size)
