"""Saved state: another process goes on from it, a wrong one is refused, and what is held stays bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.runtime import state
from nestream.runtime.state import StateError
from nestream.runtime.stream import Stream

FLAT = "SEQ(A a, B b, a.id = b.id) WITHIN 10"
QUERIES = {
    "flat": FLAT,
    "trailing negation": "SEQ(A a, !(B b, b.id = a.id)) WITHIN 10",
    "leading and trailing negation": "SEQ(!C c, A a, !B b) WITHIN 1",
    "conjunction": "AND(A a, B b, !(C c, c.id = 0)) WITHIN 6",
    "distinct": "SEQ(A a, B b) WITHIN 8 RETURN a",
    "count window": "SEQ(A a, B b, !C c) WITHIN 9 EVENTS",
}


def start(text: str = FLAT, **options: Any) -> Stream:
    stream: Stream = nestream.query(text).stream(**options)
    return stream


def events(count: int, kinds: str = "ABCZA", ids: int = 3) -> list[dict[str, Any]]:
    return [{"ts": n, "type": kinds[(n * 7 + n // 5) % len(kinds)], "id": n * 5 % ids} for n in range(count)]


def test_a_saved_state_spells_one_hour_as_it_always_did() -> None:
    query = nestream.query("SEQ(A a, B b, b.ts - a.ts > 1 minute) WITHIN 1 hour")
    assert query.identity("time", "auto") == (
        "PATTERN SEQ(A a, B b, b.ts - a.ts > 1 minutes)\nWITHIN 1 hours\nORDER time"
    )


# -- saving and restoring ----------------------------------------------------------------------------------

OTHER_PROCESS = """
import json, sys
import nestream
text, path, events = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
stream = nestream.query(text).stream().restore(open(path, "rb").read())
matches = [match for event in events for match in stream.push(event)] + stream.finish()
print(json.dumps([matches, stream.describe()["events_in"]]))
"""


@pytest.mark.parametrize("name", ["flat", "leading and trailing negation", "distinct"])
def test_another_process_goes_on_from_a_saved_state(name: str, tmp_path: Path) -> None:
    text, rows = QUERIES[name], events(40)
    stream = start(text)
    before = [match for row in rows[:23] for match in stream.push(row)]
    path = tmp_path / "state"
    path.write_bytes(stream.save())
    answer = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, text, str(path), json.dumps(rows[23:])],
        capture_output=True,
        text=True,
        check=True,
    )
    after, events_in = json.loads(answer.stdout)
    expected = nestream.query(text).match(rows).to_pylist()
    assert sorted(map(repr, before + after)) == sorted(map(repr, expected))
    assert events_in == 40


@pytest.mark.parametrize("name", QUERIES)
def test_restoring_after_any_event_changes_nothing(name: str) -> None:
    text, rows = QUERIES[name], events(30)
    expected = sorted(map(repr, nestream.query(text).match(rows).to_pylist()))
    assert expected
    stream, found = start(text), []
    for row in rows:
        found += stream.push(row)
        stream = start(text).restore(stream.save())
    assert sorted(map(repr, found + stream.finish())) == expected


def test_a_stream_that_has_seen_nothing_can_be_saved() -> None:
    stream = start().restore(start().save())
    stream.push({"ts": 1, "type": "A", "id": 1})
    assert len(stream.push({"ts": 2, "type": "B", "id": 1})) == 1


def test_the_counts_and_the_events_that_wait_are_saved_too() -> None:
    stream = start(lateness=5)
    for row in ({"ts": 9, "type": "A", "id": 1}, {"ts": 1, "type": "A", "id": 1}, {"type": "A", "id": 1}):
        stream.push(row)
    again = start(lateness=5).restore(stream.save())
    assert again.describe() == stream.describe()
    assert (again.late_count, again.dead_count, again.describe()["waiting"]) == (1, 1, 1)
    again.push({"ts": 10, "type": "B", "id": 1})
    assert len(again.finish()) == 1


def test_a_finished_stream_stays_finished() -> None:
    stream = start()
    stream.push({"ts": 1, "type": "A", "id": 1})
    stream.finish()
    with pytest.raises(ValueError, match="finished"):
        start().restore(stream.save()).push({"ts": 2, "type": "B", "id": 1})


# -- a state that cannot be used ---------------------------------------------------------------------------


def saved() -> bytes:
    stream = start()
    for row in events(10):
        stream.push(row)
    return stream.save()


def test_the_state_of_another_query_is_refused_and_both_are_shown() -> None:
    with pytest.raises(StateError) as refused:
        start("SEQ(A a, C c) WITHIN 10").restore(saved())
    assert "belongs to another query" in str(refused.value)
    assert "B b" in str(refused.value)
    assert "C c" in str(refused.value)


def test_the_same_query_in_another_layout_goes_on() -> None:
    laid_out = "PATTERN SEQ(A a,\n B b,\n a.id = b.id)\nWITHIN 10"
    assert start(laid_out).restore(saved()).describe()["events_in"] == 10


def test_the_order_is_part_of_the_query() -> None:
    with pytest.raises(StateError, match="another query"):
        start(order="arrival").restore(saved())


def test_another_format_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(state, "FORMAT", 99)
        data = saved()
    with pytest.raises(StateError, match="format version 99, but this nestream reads version 1"):
        start().restore(data)


@pytest.mark.parametrize("data", [b"", b"nestream state\n", b"PAR1" * 40, b"\x00" * 500])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(StateError):
        start().restore(data)


def test_a_state_with_any_byte_changed_or_missing_is_refused() -> None:
    data = saved()
    for place in range(0, len(data), 11):
        with pytest.raises(StateError):
            start().restore(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with pytest.raises(StateError):
            start().restore(data[:place])


# -- what is held ------------------------------------------------------------------------------------------


def test_the_description_tells_what_is_held() -> None:
    stream = start("SEQ(A a, !(C c, c.x > 5), B b) WITHIN 10")
    for row in (
        {"ts": 1, "type": "A", "x": 1},
        {"ts": 2, "type": "C", "x": 9},
        {"ts": 3, "type": "C", "x": 1},
        {"ts": 4, "type": "Z", "x": 1},
        {"ts": 5, "type": "B", "x": 1},
    ):
        stream.push(row)
    held = stream.describe()
    assert held["leaves"] == {"A a": 1, "B b": 1, "C c": 1}  # the C with a small x cannot take part
    assert held["events"] == 3
    assert held["bytes"] > 0
    assert (held["oldest"], held["watermark"], held["position"]) == (1, 5, 5)
    assert (held["events_in"], held["matches_out"], held["late"], held["dead_letters"]) == (5, 0, 0, 0)


def test_describing_a_stream_that_has_seen_nothing_is_possible() -> None:
    assert start().describe()["events"] == 0


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("batch", [1, 100])
def test_over_a_long_stream_no_more_is_held_than_the_windows_need(name: str, batch: int) -> None:
    stream = start(QUERIES[name])
    most = 0
    rows = events(30 * max(batch, 20))
    for first in range(0, len(rows), batch):
        stream.push_batch(rows[first : first + batch])
        most = max(most, stream.describe()["events"])
    windows = 2  # a negation before the match and one after it
    slack = 4 / 3  # events leave when a quarter of what is held can
    assert most <= (windows * 11 + 1) * slack + batch
    assert len(stream.save()) < 20_000


def test_expired_events_leave_even_where_no_event_of_the_query_comes_any_more() -> None:
    stream = start()
    for row in events(50, "A"):
        stream.push(row)
    assert stream.describe()["events"] > 0
    stream.push_batch([{"ts": 1000, "type": "Z", "id": 1}])
    assert stream.describe()["events"] == 0
    assert stream.describe()["oldest"] is None


def test_only_the_columns_that_the_query_uses_are_held() -> None:
    wide = {f"c{number}": ["x" * 1000] * 5 for number in range(20)}
    table = pa.table({"ts": range(5), "type": ["A"] * 5, "id": [1] * 5, **wide})
    sizes: Sequence[int] = []
    for returned in ("", " RETURN a.id AS tool"):
        stream = start(FLAT + returned)
        stream.push_batch(table)
        sizes = [*sizes, stream.describe()["bytes"]]
    assert sizes[0] > 100_000
    assert sizes[1] < 1000


def test_a_distinct_output_forgets_what_can_no_longer_come() -> None:
    stream = start("SEQ(A a, B b) WITHIN 5 RETURN a")
    for row in events(2000, "AB"):
        stream.push(row)
    assert len(stream.save()) < 10_000
