"""Reads the address of a socket: `tcp://HOST:PORT` or `unix:///PATH`."""

from __future__ import annotations

from pathlib import Path


def read_address(text: str) -> Path | tuple[str, int]:
    """The path of a Unix socket, or a host and a port; raises a ValueError that says what to write."""
    kind, _, rest = text.partition("://")
    if kind == "unix" and rest:
        return Path(rest)
    host, colon, port = rest.rpartition(":")
    if kind != "tcp" or not colon or not port.isdigit() or int(port) > 65_535:
        raise ValueError(
            f"{text!r} is not an address. "
            "Write kafka://HOST:PORT/TOPIC, tcp://HOST:PORT or unix:///PATH, or name a file or a folder"
        )
    return host.strip("[]"), int(port)
