"""Avro container files: the schema is in the file, and its blocks are read one after the other.

A block that cannot be read becomes one dead letter, and reading continues at the next sync marker, which
follows every block. The events are kept as Arrow, on disk when large, because they are read more than once.
"""

from __future__ import annotations

import bz2
import io
import lzma
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from nestream.source.avro_types import AvroSchema, avro_library
from nestream.source.errors import SourceError, first_line
from nestream.source.input import LARGE, Unclosed
from nestream.source.typed_file import TypedFile

_MAGIC = b"Obj\x01"
_MARK = 16
"""The length of the sync marker after the header and each block."""
_CHUNK = 1 << 20
_META = {"type": "map", "values": "bytes"}


class _DamagedError(Exception):
    """Bytes that are not what they should be."""


class AvroFile(TypedFile):
    """An Avro container file."""

    def _stored_columns(self) -> tuple[pa.Schema, int]:
        self._kept = tempfile.SpooledTemporaryFile(max_size=LARGE)
        rows = 0
        with self._source.open() as file:
            blocks = _Blocks(file, self._source.where)
            with pa.ipc.new_stream(pa.PythonFile(self._kept, mode="w"), blocks.schema.arrow) as writer:
                for found in blocks:
                    if isinstance(found, str):
                        self._letters.add(0, "avro", found, "")
                    else:
                        rows += found.num_rows
                        writer.write_table(found, max_chunksize=self._batch_rows)
                    self._source.inspected(file.tell())
        return blocks.schema.arrow, rows

    def _stored_batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        self._kept.seek(0)
        with pa.ipc.open_stream(Unclosed(self._kept)) as reader:
            for batch in reader:
                yield batch if columns is None else batch.select(columns)


def stored_columns(file: Any, where: str) -> pa.Schema:
    """The columns of an Avro file, by its header."""
    return _Blocks(file, where).schema.arrow


class _Blocks:
    """The blocks of a file: the rows of each, or what is wrong with it."""

    def __init__(self, file: Any, where: str) -> None:
        self._file = file
        self._library = avro_library()
        if file.read(len(_MAGIC)) != _MAGIC:
            raise SourceError(
                f"{where} is not an Avro container file: it does not begin with Obj. "
                "Write it as one, with its schema, or name the right format"
            )
        try:
            header = self._library.schemaless_reader(file, _META, None)
            self._mark = self._bytes(_MARK)
        except Exception as error:  # any error of the library on bytes that are not Avro
            raise SourceError(
                f"{where} is damaged: {first_line(error)} in its header. Write it again"
            ) from error
        codec = header.get("avro.codec", b"null").decode(errors="replace")
        if codec not in _CODECS:
            known = ", ".join(_CODECS)
            raise SourceError(f"{where} is compressed with {codec}. Write it with one of {known}")
        self._unpacked = _CODECS[codec]
        self.schema = AvroSchema.of(header.get("avro.schema", b""), f"the schema in {where}")

    def __iter__(self) -> Iterator[pa.Table | str]:
        while True:
            begin = self._file.tell()
            if not self._file.read(1):
                return
            self._file.seek(begin)
            try:
                number, size = self._long(), self._long()
                data = self._bytes(size)
                if self._bytes(_MARK) != self._mark:
                    raise _DamagedError("it is not where it should end")
            except (_DamagedError, EOFError) as problem:
                end = self._next_mark(begin)
                yield f"bytes {begin:,} to {end - 1:,} of the file are damaged: {first_line(problem)}"
                continue
            try:
                yield self.schema.table(self._records(number, self._unpacked(data)))
            except Exception as problem:  # any error of the library on bytes that are not Avro
                yield (
                    f"the {number:,} events in bytes {begin:,} to {self._file.tell() - 1:,} of the file "
                    f"cannot be read: {first_line(problem)}"
                )

    def _records(self, number: int, data: bytes) -> list[Any]:
        file = io.BytesIO(data)
        found = [self._library.schemaless_reader(file, self.schema.decoded, None) for _ in range(number)]
        if file.tell() != len(data):
            raise _DamagedError(f"{len(data) - file.tell():,} bytes are left over")
        return found

    def _next_mark(self, begin: int) -> int:
        """Continue after the next sync marker, or at the end of the file; return the offset."""
        self._file.seek(begin)
        before = b""
        while chunk := self._file.read(_CHUNK):
            at = (before + chunk).find(self._mark)
            if at >= 0:
                self._file.seek(self._file.tell() - len(before) - len(chunk) + at + _MARK)
                break
            before = (before + chunk)[-_MARK + 1 :]
        return int(self._file.tell())

    def _bytes(self, size: int) -> bytes:
        data: bytes = self._file.read(size) if size >= 0 else b""
        if size < 0 or len(data) != size:
            raise _DamagedError("it is cut short")
        return data

    def _long(self) -> int:
        """A number as Avro writes it: seven bits per byte, lowest first, and zigzag."""
        value = shift = 0
        while True:
            [byte] = self._bytes(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            if shift > 63:
                raise _DamagedError("a number is too long")


def _snappy(data: bytes) -> bytes:
    packed, checksum = data[:-4], int.from_bytes(data[-4:], "big")
    size = shift = 0
    for byte in packed:  # the uncompressed size comes first
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    plain: bytes = pa.decompress(packed, size, "snappy", asbytes=True)
    if zlib.crc32(plain) != checksum:
        raise _DamagedError("its checksum is wrong")
    return plain


def _zstandard(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read())


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda data: zlib.decompress(data, -15),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}
