"""Lines that come through a pipe."""

from __future__ import annotations

import os
import sys

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
