"""A folder that the driver and all workers of a stream can use: a path, or an hdfs, s3 or gs address.

Paths are used as they are, so on a cluster they must be on a shared file system. Addresses go through
`pyarrow.fs`, which finds credentials like the libraries of each system. A file appears as a whole: it is
first written under another name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import IO, Any

import pyarrow as pa
from pyarrow import fs

from nestream.model.schema import EventError
from nestream.model.wording import reason, remedy

_SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""The schemes that Hadoop and Arrow name differently."""


class Place:
    """A folder by its path or address; it is sent to the workers."""

    def __init__(self, where: str) -> None:
        scheme, mark, rest = where.partition("://")
        if scheme == "file" and mark:
            scheme, mark, where = "", "", rest
        self.is_local = not mark
        self.where = os.path.abspath(where) if self.is_local else f"{_SCHEMES.get(scheme, scheme)}://{rest}"

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.where.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.where

    def __getstate__(self) -> dict[str, Any]:
        return {"where": self.where, "is_local": self.is_local}

    @cached_property
    def _system(self) -> tuple[fs.FileSystem, str]:
        try:
            if self.is_local:
                return fs.LocalFileSystem(), self.where
            found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(self.where)
            return found
        except (OSError, ValueError, pa.ArrowException) as problem:
            raise EventError(
                f"{self.where} cannot be used: {_first_line(problem)}\n"
                "  hint: use a folder that all workers share, or an address that pyarrow.fs supports: "
                "hdfs://, s3:// or gs://"
            ) from None

    def make(self) -> None:
        """Create the folder if it does not exist."""
        with self._told("make", ""):
            system, root = self._system
            system.create_dir(root, recursive=True)

    def names(self) -> list[str]:
        """The names of the files in the folder."""
        with self._told("list", ""):
            system, root = self._system
            found = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
            return [info.base_name for info in found if info.is_file]

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """The bytes of a file, or a part of them; None if the file does not exist."""
        with self._told("read", name):
            system, root = self._system
            try:
                with system.open_input_file(f"{root}/{name}") as file:
                    file.seek(offset)
                    data: bytes = file.read() if length is None else file.read(length)
                    return data
            except FileNotFoundError:
                return None

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write to, which nobody reads before it is complete."""
        with self._told("write", name):
            system, root = self._system
            if self.is_local:
                with open(f"{root}/{name}", "wb") as file:
                    yield file
            else:
                with system.open_output_stream(f"{root}/{name}") as stream:
                    yield stream

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole, or replace it."""
        beside = f".{name}.{uuid.uuid4().hex[:8]}"
        with self.writing(beside) as file:
            file.write(data)
        self.move(beside, name)

    def move(self, old: str, new: str) -> None:
        """Rename a file; a file of the new name is replaced."""
        with self._told("write", new):
            system, root = self._system
            system.move(f"{root}/{old}", f"{root}/{new}")

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with self._told("remove", name):
            system, root = self._system
            try:
                system.delete_file(f"{root}/{name}")
            except FileNotFoundError:
                return

    @contextmanager
    def _told(self, doing: str, name: str) -> Iterator[None]:
        """Turn an error of the file system into one sentence."""
        try:
            yield
        except (OSError, pa.ArrowException) as problem:
            where = f"{self.where.rstrip('/')}/{name}" if name else self.where
            raise EventError(
                f"cannot {doing} {where}: {_first_line(problem)}\n"
                f"  hint: {remedy(problem)}; the last checkpoint is still good"
            ) from None


def _first_line(problem: BaseException) -> str:
    if isinstance(problem, OSError) and problem.errno:
        return reason(problem)
    said = (str(problem).splitlines() or [type(problem).__name__])[0]
    return f"{said[:1].lower()}{said[1:]}"
