"""Pieces and samples of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream.engine.operator import Matches
from nestream.engine.pieces import sample
from nestream.runtime.local import LocalRun


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 300, 483, 1_000])
def test_a_sample_is_spread_evenly_and_so_are_its_first_rows(count: int) -> None:
    rows = np.arange(count, dtype=np.int32)
    some = sample(rows, 256)
    assert sorted(some.tolist()) == rows[:: max(1, count // 256)].tolist()
    if count >= 300:
        gaps = np.diff(np.sort(some[:8]), prepend=0, append=count)
        assert gaps.max() < count / 4


def test_few_matches_of_few_last_events_are_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table has a cost, and several would be built by threads."""
    built: list[int] = []
    table = LocalRun.table

    def watched(run: LocalRun, found: Matches) -> pa.Table:
        built.append(found.count)
        return table(run, found)

    monkeypatch.setattr(LocalRun, "table", watched)
    events = pa.table({"ts": range(101), "type": ["A"] * 100 + ["B"], "id": range(101)})
    assert nestream.query("SEQ(A a, B b) WITHIN 200 EVENTS").match(events).num_rows == 100
    assert built == [100]
