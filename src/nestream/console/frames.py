"""Messages between the console and its worker processes: a length and a JSON text, on pipes."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import IO, Any

from nestream.console.hub import dumps

_LENGTH = struct.Struct(">I")
LARGEST = 64 << 20


def frame(value: Any) -> bytes:
    """The bytes of a message."""
    data = dumps(value).encode()
    return _LENGTH.pack(len(data)) + data


def read_frame(pipe: IO[bytes]) -> Any:
    """The next message; None at the end."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return json.loads(pipe.read(_LENGTH.unpack(head)[0]))


async def receive_frame(reader: asyncio.StreamReader) -> Any:
    """The next message; raises IncompleteReadError if the process has ended."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > LARGEST:
        raise asyncio.IncompleteReadError(b"", length)
    return json.loads(await reader.readexactly(length))
