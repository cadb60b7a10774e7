"""Reads JSON lines that cannot be read again: standard input, and connections to a TCP or Unix socket."""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import sys
from contextlib import suppress
from pathlib import Path

from nestream.model.address import read_address
from nestream.model.wording import reason
from nestream.source.errors import SourceError
from nestream.source.json_events import JsonEvents
from nestream.source.protocol import Batch, Position
from nestream.source.text_file import BLOCK, LONGEST


class _Lines:
    """What has arrived from one writer and is not a whole line yet."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> list[bytes]:
        """The lines that are now complete."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest.append(data)
            self._size += len(data)
            return self.end() if self._size > LONGEST else []
        whole = b"".join([*self._rest, data[: end - 1]])
        rest = data[end:]
        self._rest, self._size = ([rest] if rest else []), len(rest)
        return whole.split(b"\n")

    def end(self) -> list[bytes]:
        """The last line, which has no line end."""
        rest, self._rest, self._size = self._rest, [], 0
        return [b"".join(rest)] if rest else []


class _Passing:
    """Lines that cannot be read again."""

    repeatable = False

    def __init__(self, events: JsonEvents) -> None:
        self._events = events
        self._line = 1
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the writer has closed the pipe or, with `once`, all connections."""
        return self._ended

    def position(self) -> Position:
        """What the attributes hold; the lines themselves are gone."""
        return {"json": self._events.position()}

    def seek(self, position: Position) -> None:
        """Continue with what arrives now."""
        self._events.seek(position["json"])

    def commit(self, position: Position) -> None:
        """Nothing to do: nobody is notified."""


class Pipe(_Passing):
    """Standard input, up to its end."""

    where = "standard input"

    def __init__(self, events: JsonEvents) -> None:
        super().__init__(events)
        self._lines = _Lines()
        self._descriptor = sys.stdin.fileno()
        _widen(self._descriptor)
        self._selector = selectors.DefaultSelector()
        try:
            self._selector.register(self._descriptor, selectors.EVENT_READ)
        except PermissionError:  # a plain file, which is always ready
            self._selector.close()
            self._selector = None  # type: ignore[assignment]

    def read(self, wait: float) -> Batch | None:
        """The lines that have arrived, or None."""
        if self._ended or (self._selector is not None and not self._selector.select(wait)):
            return None
        data = os.read(self._descriptor, BLOCK)
        self._ended = not data
        lines = self._lines.add(data) if data else self._lines.end()
        if not lines:
            return None
        first, self._line = self._line, self._line + len(lines)
        return self._events.batch(self.where, lines, first)

    def close(self) -> None:
        """Stop reading."""
        if self._selector is not None:
            self._selector.close()


def _widen(pipe: int) -> None:
    """Let a pipe hold as much as one read takes, so that a reader that falls behind catches up (Linux)."""
    with suppress(OSError, AttributeError):  # not a pipe, or too wide for this user
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BLOCK)


class Listener(_Passing):
    """A socket that accepts connections, which send lines. With `once`, it ends when the last one closes."""

    def __init__(self, address: str, events: JsonEvents, *, once: bool = False) -> None:
        super().__init__(events)
        self.where, self._once = address, once
        self._path, self._server = _listening(address)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._open: dict[socket.socket, _Lines] = {}

    def read(self, wait: float) -> Batch | None:
        """The lines that have arrived on all connections, or None."""
        lines: list[bytes] = []
        for key, _ in self._selector.select(wait):
            if key.fileobj is self._server:
                connection, _ = self._server.accept()
                connection.setblocking(False)
                self._selector.register(connection, selectors.EVENT_READ)
                self._open[connection] = _Lines()
            else:
                lines += self._received(key.fileobj)  # type: ignore[arg-type]
        if not lines:
            return None
        first, self._line = self._line, self._line + len(lines)
        # a connection may begin in the middle of the data
        return self._events.batch(self.where, lines, first, inside=True)

    def _received(self, connection: socket.socket) -> list[bytes]:
        try:
            data = connection.recv(BLOCK)
        except BlockingIOError:
            return []
        except OSError:  # the other side is gone
            data = b""
        if data:
            return self._open[connection].add(data)
        lines = self._open.pop(connection).end()
        self._selector.unregister(connection)
        connection.close()
        self._ended = self._once and not self._open
        return lines

    def close(self) -> None:
        """Accept no more connections."""
        self._selector.close()
        for connection in self._open:
            connection.close()
        self._server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _listening(address: str) -> tuple[Path | None, socket.socket]:
    try:
        place = read_address(address)
        if not isinstance(place, Path):
            return None, socket.create_server(place)
        if place.is_socket():  # left behind by a killed process, unless somebody answers
            _refuse_answered(place)
            place.unlink()
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(place))
        server.listen()
        return place, server
    except ValueError as error:
        raise SourceError(str(error)) from None
    except OSError as error:
        raise SourceError(f"cannot listen on {address}: {reason(error)}. Choose another address") from error


def _refuse_answered(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return
    raise SourceError(f"cannot listen on {path}: another process does. Choose another address")
