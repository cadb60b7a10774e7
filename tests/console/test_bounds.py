"""What the console holds does not grow with the events, the matches or the time of a job."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path

import pytest

from nestream.console import Job, hub, live
from nestream.console.watch import Watch
from nestream.source import files
from tests.console.served import JobFolder, event, match

SLACK = 60_000
"""Bytes: dictionaries and rings are not always equally full."""
OWN = [tracemalloc.Filter(True, f"*/{place}/*.py") for place in ("nestream", "json")]
"""Where memory is allocated for what arrives; other tests may have started threads that load libraries."""


def test_after_a_while_nothing_grows_with_what_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "POLL", 0.0)
    monkeypatch.setattr(files, "_SHARE", 0)
    monkeypatch.setattr(live, "RECENT_EVENTS", 200)
    monkeypatch.setattr(live, "RECENT_MATCHES", 80)
    monkeypatch.setattr(live, "RECENT_LATE", 10)
    monkeypatch.setattr(hub, "MOST_MESSAGES", 20)
    monkeypatch.setattr("nestream.console.counts.MOST_KEYS", 50)
    monkeypatch.setattr("nestream.console.counts.BUCKETS", 10)
    monkeypatch.setattr("nestream.console.health.LEVELS", ((1, 10), (15, 10), (300, 10)))
    folder = JobFolder(tmp_path / "job", title="Ward", width=1, height=1, rooms=[])
    watch = Watch(Job.read(folder.path))

    def round(number: int) -> None:
        many = [
            event(number % 3600, "Operating", id=20 * number + at, wID=at, room=f"room {at}")
            for at in range(20)
        ]
        folder.events(*many)
        folder.matches(*(match("dirty", o=one) for one in many[:5]))
        late = {"reason": "late", "number": number}
        (folder.path / "late" / f"part-{number}.json").write_text(json.dumps(late) + "\n")
        folder.progress(batches=number, events=20 * number, by_rule={"dirty": 5 * number})
        for part in ("events", "late", "matches"):  # as those who write them remove what is old
            for old in sorted((folder.path / part).iterdir(), key=lambda path: path.stat().st_mtime)[:-5]:
                old.unlink()
        watch._sampled = 0.0
        message, _, _ = watch.look()
        watch._tell(message)

    def held(first: int, last: int) -> int:
        for number in range(first, last):
            round(number)
        gc.collect()
        found = tracemalloc.take_snapshot().filter_traces(OWN).statistics("filename")
        return sum(one.size for one in found)

    tracemalloc.start()
    try:
        before = held(0, 30)
        after = held(30, 120)
    finally:
        tracemalloc.stop()
    assert (watch.live.events_in, watch.live.matches_in) == (120 * 20, 120 * 5)
    assert watch.problems == {}
    assert after - before < SLACK
