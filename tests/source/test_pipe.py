"""Lines that come through a pipe."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from nestream.source import open_source


@pytest.mark.skipif(sys.platform != "linux", reason="only there a pipe can be widened")
def test_a_reader_that_has_fallen_behind_reads_more_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    lines = b"".join(b'{"ts": %d, "type": "A"}\n' % n for n in range(10_000))
    assert len(lines) > 200_000  # three times what a pipe holds by itself
    with os.fdopen(out) as end:
        monkeypatch.setattr(sys, "stdin", end)
        source = open_source("-")
        os.set_blocking(into, False)
        assert os.write(into, lines) == len(lines)
        os.close(into)
        batch = source.read(1)
        assert batch is not None
        assert len(batch.events) == 10_000
        assert source.read(1) is None
        source.close()


def test_the_lines_of_a_socket_are_numbered_over_all_connections(tmp_path: Path) -> None:
    address = f"unix://{tmp_path / 'socket'}"
    source = open_source(address)
    dead = []
    for text in (b'{"ts": 1, "type": "A"}\n{"ts": 2, "type": "A"}\n', b"nonsense\n"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(tmp_path / "socket"))
            connection.sendall(text)
        while (batch := source.read(5)) is None:
            pass
        dead += [letter.line for letter in batch.dead]
    source.close()
    assert dead == [3]


def test_a_connection_that_begins_with_an_array_does_not_end_the_stream(tmp_path: Path) -> None:
    source = open_source(f"unix://{tmp_path / 'socket'}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(tmp_path / "socket"))
        connection.sendall(b'[1]\n{"ts": 2, "type": "A"}\n')
    while (batch := source.read(5)) is None:
        pass
    source.close()
    assert len(batch.events) == 1
    assert [(letter.line, letter.reason) for letter in batch.dead] == [
        (1, "expected a JSON object, found an array")
    ]
