"""Server-sent events: one stream of messages that every browser follows from its own position.

Messages are kept in a ring, bounded in number and bytes, and numbered. A browser that reconnects names the
last message it has and gets those after it, or a snapshot if they are gone. One that reads too slowly is
treated as if it had reconnected. So memory does not depend on how many browsers there are or how fast they
read.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

MOST_MESSAGES = 500
MOST_BYTES = 8 << 20
"""Two minutes of messages: whoever was away for longer gets a snapshot."""
MOST_BROWSERS = 64
"""All tabs of a browser share one connection, if they can."""
HEARTBEAT = 15.0
"""After this many silent seconds a comment is sent, so that a dead connection is noticed."""


class Hub:
    """The stream of messages."""

    def __init__(self, snapshot: Callable[[], dict[str, Any]]) -> None:
        self.run = secrets.token_hex(4)
        """Distinguishes this stream from that of another start of the server."""
        self.number = 0
        self.browsers = 0
        self._snapshot = snapshot
        self._ring: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self._closed = False

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Send a message to all browsers."""
        self.number += 1
        message = self._message(self.number, kind, data)
        self._ring.append((self.number, message))
        self._bytes += len(message)
        while len(self._ring) > MOST_MESSAGES or (self._bytes > MOST_BYTES and len(self._ring) > 1):
            self._bytes -= len(self._ring.popleft()[1])
        self._wake()

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        woken, self._more = self._more, asyncio.Event()
        woken.set()

    def _message(self, number: int, kind: str, data: dict[str, Any]) -> bytes:
        # JSON has line breaks only inside strings, where they are escaped.
        return f"id: {self.run}-{number}\nevent: {kind}\ndata: {dumps(data)}\n\n".encode()

    def _known(self, last: str | None) -> int | None:
        """The number of the last message a browser has; None if it must begin with a snapshot."""
        run, _, number = (last or "").partition("-")
        if run != self.run or not (number.isascii() and number.isdecimal()) or int(number) > self.number:
            return None
        first = self._ring[0][0] if self._ring else self.number + 1
        return int(number) if int(number) >= first - 1 else None

    def enter(self) -> bool:
        """Count one more browser, if there is room; whoever enters must `leave`."""
        if self.browsers >= MOST_BROWSERS:
            return False
        self.browsers += 1
        return True

    def leave(self) -> None:
        """Count one browser less."""
        self.browsers -= 1

    def snapshot(self) -> dict[str, Any]:
        """What a joining tab begins with: the whole state, and the number of the last message."""
        return {"number": self.number, "run": self.run, "data": self._snapshot()}

    async def follow(self, last: str | None) -> AsyncGenerator[bytes, None]:
        """The messages after the last one that the browser has, for as long as it listens."""
        at = self._known(last)
        while not self._closed:
            if at is None:
                at = self.number
                yield self._message(at, "snapshot", self._snapshot())
            first = self._ring[0][0] if self._ring else self.number + 1
            if at < first - 1:  # fell behind what is kept
                at = None
                continue
            more = self._more
            waiting = [message for number, message in self._ring if number > at]
            if waiting:
                at = self.number
                yield b"".join(waiting)
                continue
            try:
                await asyncio.wait_for(more.wait(), HEARTBEAT)
            except TimeoutError:
                yield b": still here\n\n"


def dumps(value: Any) -> str:
    """JSON that every browser can parse: no NaN, and times and other types as text."""
    try:
        return json.dumps(value, default=str, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(value), default=str, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
