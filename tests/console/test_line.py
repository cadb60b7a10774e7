"""The line of live messages: a browser that comes back misses nothing, and none makes it hold more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from nestream.console import hub as hubs
from nestream.console.app import Line
from nestream.console.hub import Hub, dumps
from nestream.console.live import RECENT_EVENTS, RECENT_MATCHES, Live
from nestream.console.ward import Ward
from tests.console.served import Console, JobFolder, event, match, serving
from tests.loops import in_a_loop


def told(chunk: bytes) -> list[tuple[str, str, Any]]:
    """The id, kind and data of each message."""
    found = []
    for part in chunk.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


def after(hub: Hub, last: str | None) -> list[tuple[str, str, Any]]:
    """What a browser that comes with this id gets at once."""

    async def first() -> bytes:
        line = hub.follow(last)
        chunk = await asyncio.wait_for(anext(line), 10)
        await line.aclose()
        return chunk

    return told(in_a_loop(first()))


def filled(many: int) -> Hub:
    hub = Hub(lambda: {"all": True})
    for number in range(many):
        hub.publish("update", {"number": number})
    return hub


def test_a_new_browser_begins_with_a_snapshot() -> None:
    ((_, kind, data),) = after(filled(3), None)
    assert (kind, data) == ("snapshot", {"all": True})


def test_a_browser_that_comes_back_gets_what_it_missed() -> None:
    hub = filled(10)
    found = after(hub, f"{hub.run}-7")
    assert [data["number"] for _, _, data in found] == [7, 8, 9]
    assert found[-1][0] == f"{hub.run}-10"


@pytest.mark.parametrize("last", ["", "x", "x-1", "{run}-", "{run}-99", "{run}--1", "{run}-٣"])
def test_an_id_that_is_not_of_this_line_gives_a_snapshot(last: str) -> None:
    hub = filled(3)
    assert after(hub, last.format(run=hub.run))[0][1] == "snapshot"


def test_what_is_no_longer_kept_gives_a_snapshot() -> None:
    hub = filled(hubs.MOST_MESSAGES + 10)
    assert after(hub, f"{hub.run}-5")[0][1] == "snapshot"
    assert after(hub, f"{hub.run}-{hub.number - 5}")[0][1] == "update"


def test_the_messages_kept_are_bounded_in_bytes() -> None:
    hub = Hub(dict)
    for _ in range(100):
        hub.publish("update", {"text": "x" * (1 << 20)})
    assert sum(len(message) for _, message in hub._ring) <= hubs.MOST_BYTES


def test_messages_are_json_that_browsers_read() -> None:
    assert json.loads(dumps({"a": float("nan"), "b": [float("inf")]})) == {"a": "nan", "b": ["inf"]}
    assert "\n" not in dumps({"a": "one\ntwo\r\u2028"})


def test_matches_that_come_together_are_told_in_the_order_of_their_times() -> None:
    rows = [match("dirty", o=event(second, "A")) for second in (30, 10, 20)]
    told = Live().take_matches(rows)
    assert [one["number"] for one in told] == [1, 2, 3]
    assert [one["end"] for one in told] == sorted(one["end"] for one in told)


def test_what_is_held_of_a_job_is_bounded() -> None:
    live = Live()
    live.take_events([event(number % 3000, "A", id=number) for number in range(3 * RECENT_EVENTS)])
    rows = [
        match("dirty", o=event(n % 3000, "A", wID=n, room=f"room {n}")) for n in range(3 * RECENT_MATCHES)
    ]
    live.take_matches(rows)
    assert len(live.events) == RECENT_EVENTS
    assert len(live.matches) == RECENT_MATCHES
    assert live.events_in == 3 * RECENT_EVENTS
    rooms = live.facets.tallies["room"].counts
    assert live.matches_in == sum(rooms.values()) == 3 * RECENT_MATCHES
    assert len(rooms) <= 1001
    assert all(len(level) <= 180 for level in live.rates.levels)
    long = {f"field {n}": "x" * 10_000 for n in range(1000)}
    live.take_events([long])
    assert len(dumps(live.events[-1])) < 50_000


def test_workers_beyond_those_that_are_shown_are_told_of() -> None:
    live = Live(ward=Ward("wID", "room", most=2))
    live.take_events([event(number, "Hall", wID=number % 3, room="OR-1") for number in range(6)])
    assert (live.totals()["workers"], live.totals()["left_out"]) == (2, 2)


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path / "job")


@pytest.fixture
def console(folder: JobFolder) -> Iterator[Console]:
    with serving(folder.path) as running:
        yield running


PATIENCE = 120


def listen(client: httpx.Client, last: str | None, enough: Any) -> list[tuple[str, str, Any]]:
    """The messages of a line up to one that is enough."""
    found: list[tuple[str, str, Any]] = []
    with client.stream("GET", "/api/stream", headers={"last-event-id": last or ""}, timeout=PATIENCE) as line:
        text = ""
        for part in line.iter_text():
            text += part
            whole, _, text = text.rpartition("\n\n")
            found += told(whole.encode())
            if any(enough(message) for message in found):
                return found
    raise AssertionError("the line ended")


def test_a_match_is_told_once_it_is_committed(console: Console, folder: JobFolder) -> None:
    with console.client() as client:
        listen(client, None, lambda message: message[1] == "snapshot")
        folder.matches(match("dirty", o=event(5, "Operating", id=7, room="OR-1", wID=3)))
        found = listen(client, None, lambda message: message[2].get("matches"))
    (one,) = found[-1][2]["matches"]
    assert (one["title"], one["severity"], one["places"]) == ("Used without washing", "high", ["OR-1"])


def test_over_any_number_of_breaks_every_match_is_received_once(console: Console, folder: JobFolder) -> None:
    received: list[int] = []
    last = None
    with console.client() as client:
        for batch in range(6):
            some = [match("dirty", o=event(n, "Operating", id=n)) for n in range(250 if batch == 3 else 5)]
            folder.matches(*some)
            total = 5 * (batch + 1) + (245 if batch >= 3 else 0)

            def is_last(message: tuple[str, str, Any], total: int = total) -> bool:
                return any(one["number"] == total for one in message[2].get("matches", ()))

            for number, _, data in listen(client, last, is_last):
                last = number
                received += [one["number"] for one in data.get("matches", ())]
    assert received == list(range(1, 276))


def test_a_line_that_is_cut_before_its_first_message_is_counted_off() -> None:
    hub = Hub(dict)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {}

    async def cut(_: Any) -> None:
        raise OSError("the browser is gone")

    assert [hub.enter() for _ in range(hubs.MOST_BROWSERS + 1)] == [True] * hubs.MOST_BROWSERS + [False]
    with pytest.raises(ClientDisconnect):
        in_a_loop(Line(hub, None)({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, cut))
    assert hub.browsers == hubs.MOST_BROWSERS - 1
    assert hub.enter()


def test_more_browsers_than_are_served_are_turned_away(console: Console) -> None:
    with console.client() as client, ExitStack() as open_lines:
        kept = []
        for _ in range(hubs.MOST_BROWSERS):
            line = open_lines.enter_context(client.stream("GET", "/api/stream"))
            assert line.status_code == 200
            kept.append(line.iter_bytes())  # an iterator that is let go closes its line
            next(kept[-1])
        with client.stream("GET", "/api/stream") as one_more:
            assert one_more.status_code == 503
