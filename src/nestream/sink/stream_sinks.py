"""The sinks of a stream: a file that grows, a folder of files, standard output, or a socket."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from nestream.model.address import read_address
from nestream.model.wording import reason, remedy
from nestream.sink.json_text import json_lines
from nestream.sink.protocol import Position
from nestream.sink.writer import SinkError

Encode = Callable[[pa.Table], str]
PART = "part-"
_SUFFIXES = {"jsonl": "json", "parquet": "parquet"}


def table_lines(rows: pa.Table) -> str:
    """One JSON object per line."""
    return "".join(json_lines(batch) for batch in rows.to_batches())


def first_column(rows: pa.Table) -> str:
    """The lines of a table that already holds lines of text."""
    return "".join(f"{line}\n" for line in rows.column(0).to_pylist())


class FileSink:
    """A growing file of JSON lines. After a failure, it is cut back to the checkpoint."""

    repeats = False

    def __init__(self, path: str, encode: Encode = table_lines) -> None:
        self.where = path
        self._encode = encode
        self._file: IO[bytes] | None = None

    def restore(self, position: Position | None) -> None:
        """Open the file at a position; an existing file is only continued."""
        path = Path(self.where)
        size = path.stat().st_size if path.exists() else 0
        wanted = 0 if position is None else int(position["size"])
        if position is None and size:
            raise SinkError(
                f"{self.where} exists, and there is no checkpoint to continue from. "
                "Choose another path, or remove it"
            )
        if size < wanted:
            raise SinkError(
                f"{self.where} is shorter than the checkpoint says: {size:,} of {wanted:,} bytes. "
                "Put the file back, or start over without the checkpoint"
            )
        try:
            self._file = open(path, "ab")
            self._file.truncate(wanted)
        except OSError as error:
            raise cannot_write(self.where, error) from error

    def write(self, rows: pa.Table) -> None:
        """Append the rows; readers that follow the file see them at once."""
        assert self._file is not None
        try:
            self._file.write(self._encode(rows).encode())
            self._file.flush()
        except OSError as error:
            raise cannot_write(self.where, error) from error

    def prepare(self) -> Position:
        """The size of the file."""
        assert self._file is not None
        return {"size": os.fstat(self._file.fileno()).st_size}

    def sync(self, position: Position) -> None:
        """Wait for the disk."""
        assert self._file is not None
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.where, error) from error

    def commit(self, position: Position) -> None:
        """Nothing to do: the rows are already there."""

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # a failed write is retried here, and was already reported
                self._file.close()


class FolderSink:
    """A folder of files, one for each checkpoint with rows; each appears as a whole, once."""

    repeats = False

    def __init__(self, folder: str, format: str = "parquet", encode: Encode = table_lines) -> None:
        self.where = folder
        self._encode = encode
        self._folder = Path(folder)
        self._format = format
        self._held: list[pa.Table] = []
        self._number = 0
        self._prepared: list[str] = []
        self._unwritten: dict[str, pa.Table] = {}

    def restore(self, position: Position | None) -> None:
        """Publish what the checkpoint contains, and remove what came after it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if position is not None:
                self._number = int(position["number"])
                self._publish(position["prepared"])
            elif any(self._folder.glob(f"{PART}*")):
                raise SinkError(
                    f"{self.where} has matches, and there is no checkpoint to continue from. "
                    "Choose another folder, or empty it"
                )
            for unfinished in self._folder.glob(f".{PART}*"):
                unfinished.unlink()
        except OSError as error:
            raise cannot_write(self.where, error) from error

    def write(self, rows: pa.Table) -> None:
        """Hold the rows for the next checkpoint."""
        if rows.num_rows:
            self._held.append(rows)

    def prepare(self) -> Position:
        """The names of the files for the rows."""
        held, self._held = self._held, []
        for rows in _alike(held):
            name = f"{PART}{self._number:08}.{_SUFFIXES[self._format]}"
            self._number += 1
            self._prepared.append(name)
            self._unwritten[name] = rows
        return {"number": self._number, "prepared": list(self._prepared)}

    def sync(self, position: Position) -> None:
        """Write the rows to hidden files."""
        for name in position["prepared"]:
            rows = self._unwritten.pop(name)
            try:
                with open(self._folder / f".{name}", "wb") as file:
                    if self._format == "parquet":
                        pq.write_table(rows, file, compression="zstd")
                    else:
                        file.write(self._encode(rows).encode())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise cannot_write(self.where, error) from error

    def commit(self, position: Position) -> None:
        """Give the files their final names."""
        try:
            self._publish(position["prepared"])
        except OSError as error:
            raise cannot_write(self.where, error) from error
        self._prepared = []

    def _publish(self, names: list[str]) -> None:
        for name in names:
            hidden = self._folder / f".{name}"
            if hidden.exists():
                os.replace(hidden, self._folder / name)
            elif not (self._folder / name).exists():
                raise SinkError(
                    f"{self._folder / name} of the last checkpoint is missing, and so is {hidden.name}. "
                    "Restore folder and checkpoint from copies of the same moment; if another program took "
                    "the file away, put an empty file of that name there"
                )

    def close(self) -> None:
        """Nothing to do: nothing is open."""


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """Join consecutive tables with the same columns."""
    found: list[list[pa.Table]] = []
    for table in tables:
        if found and found[-1][0].schema.equals(table.schema):
            found[-1].append(table)
        else:
            found.append([table])
    return [pa.concat_tables(group) for group in found]


class PassingSink:
    """A sink that passes rows on at once: there is no position, and nothing can be undone."""

    repeats = True

    def restore(self, position: Position | None) -> None:
        """Nothing to do: rows that were passed on stay."""

    def prepare(self) -> Position:
        """The position, which is empty."""
        return {}

    def sync(self, position: Position) -> None:
        """Nothing to do: the rows were passed on when they were written."""

    def commit(self, position: Position) -> None:
        """Nothing to do: the rows were passed on when they were written."""

    def close(self) -> None:
        """Nothing to do: there is no connection."""


class ScreenSink(PassingSink):
    """Standard output."""

    where = "standard output"

    def __init__(self, encode: Encode = table_lines) -> None:
        self._encode = encode

    def write(self, rows: pa.Table) -> None:
        """Print the rows at once."""
        sys.stdout.write(self._encode(rows))
        sys.stdout.flush()


class SocketSink(PassingSink):
    """A TCP or Unix socket that another program listens on; each row is a line of JSON."""

    def __init__(self, address: str, encode: Encode = table_lines) -> None:
        self.where = address
        self._encode = encode
        try:
            place = read_address(address)
            if isinstance(place, Path):
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._socket.connect(str(place))
            else:
                self._socket = socket.create_connection(place, timeout=30)
        except ValueError as error:
            raise SinkError(str(error)) from None
        except OSError as error:
            raise cannot_write(address, error) from error

    def write(self, rows: pa.Table) -> None:
        """Send the rows."""
        try:
            self._socket.sendall(self._encode(rows).encode())
        except OSError as error:
            raise cannot_write(self.where, error) from error

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def cannot_write(where: str, error: OSError) -> SinkError:
    """Turn an error of the operating system into a sentence."""
    advice = "start the program that reads it, or choose another place" if "://" in where else remedy(error)
    return SinkError(f"cannot write {where}: {reason(error)}. {advice[:1].upper()}{advice[1:]}")
