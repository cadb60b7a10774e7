"""Queries that pages run: checked, planned, matched, questioned and tried, each within its limits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import nestream
from nestream.console import pool, requests
from nestream.data import sample
from tests.console.served import RULE, Console, JobFolder, event, serving

NESTED = """PATTERN SEQ(Recycle r,
  ! SEQ(Disinfection d, Checking c, d.id = c.id = r.id),
  Operating o, r.id = o.id)
WITHIN 1 hour"""
MOST_ROUNDS = 30
"""How often eight runs are asked for at once, until they come together."""
ENDLESS = "SEQ(" + ", ".join(f"Hall h{n}" for n in range(12)) + ") WITHIN 10 hours"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    made = JobFolder(tmp_path_factory.mktemp("runs") / "job")
    made.events(
        event(1, "Recycle", id=7),
        event(2, "Washing", id=8),
        event(3, "Operating", id=7, room="<script>alert(1)</script>"),
        event(4, "Recycle", id=8),
        event(5, "Washing", id=8),
        event(6, "Operating", id=8),
    )
    made.events(*(event(10 + n, "Hall", id=n) for n in range(200)))
    return made


@pytest.fixture(scope="module")
def console(folder: JobFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    path = tmp_path_factory.mktemp("data") / "mine.csv"
    path.write_text("ts,type,id\n1,A,1\n2,B,1\n3,B,2\n")
    with serving(folder.path, data={"mine.csv": path}) as running:
        yield running


@pytest.fixture
def client(console: Console) -> Iterator[httpx.Client]:
    with console.client() as opened:
        yield opened


def ask(client: httpx.Client, name: str, /, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(f"/api/{name}", json=body).json()
    return answer


def test_diagnostics_have_the_place_that_the_language_gives_them(client: httpx.Client) -> None:
    text = "SEQ(Recycle r, Operating o, r.id = x.id) WITHIN 1 hour"
    answer = ask(client, "check", text=text)
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(text)
    assert answer["ok"] is False
    (one,) = answer["diagnostics"]
    (expected,) = json.loads(json.dumps(raised.value.as_dicts()))
    assert one == {**expected, "fixes": []}
    assert text[one["start"] : one["end"]] == "x.id"


def test_a_check_knows_the_columns_of_the_chosen_events(client: httpx.Client) -> None:
    text = "SEQ(Recycle r, Operating o, r.nowhere = o.nowhere) WITHIN 1 hour"
    assert ask(client, "check", text=text)["ok"] is True
    assert ask(client, "check", text=text, data="hospital")["ok"] is False
    assert ask(client, "check", text=text, data="live")["ok"] is False


def test_a_run_gives_the_matches_of_the_query(client: httpx.Client) -> None:
    answer = ask(client, "run", text=NESTED, data="hospital")
    expected = nestream.query(NESTED).match(sample("hospital")).to_pylist()
    assert answer["total"] == len(expected) > 0
    assert [row["events"][0]["event"]["id"] for row in answer["rows"]] == [one["r"]["id"] for one in expected]
    drawn = answer["timeline"]
    assert {"Recycle", "Operating", "Disinfection", "Checking"} <= set(drawn["lanes"])
    assert all(len(one["intervals"]) == 1 for one in drawn["matches"])


def test_a_run_over_the_live_events_finds_what_is_held(client: httpx.Client) -> None:
    answer = ask(client, "run", text=RULE, data="live")
    (row,) = answer["rows"]
    assert [part["event"]["event"] for part in row["events"]] == [1, 3]
    assert row["events"][1]["event"]["room"] == "<script>alert(1)</script>"


def test_a_plan_is_drawn_nested_and_rewritten_with_the_rows_found(client: httpx.Client) -> None:
    answer = ask(client, "plan", text=NESTED, data="hospital")
    labels = [node["label"] for node in answer["nested"]["nodes"]]
    assert any("Recycle" in label for label in labels)
    root = answer["nested"]["nodes"][0]
    assert root["measured_rows"] == nestream.query(NESTED).count(sample("hospital"))
    assert len(answer["nested"]["edges"]) == len(labels) - 1
    assert answer["rewritten"]["nodes"]


def test_why_names_the_negation_and_the_very_event(client: httpx.Client) -> None:
    answer = ask(client, "why", text=RULE, data="live", picked=[3, 5])
    assert answer["why"]["matched"] is False
    (obstacle,) = answer["why"]["alternatives"][0]["obstacles"]
    assert obstacle["kind"] == "negation"
    assert [answer["why"]["events"][str(row)]["event"] for row in obstacle["events"]] == [5]
    assert ask(client, "why", text=RULE, data="live", picked=[0, 2])["why"]["matched"] is True


@pytest.mark.parametrize("picked", [[], ["1"], [True], [10**9], [-1], None, list(range(51)), [1.5]])
def test_why_takes_only_events_that_there_are(client: httpx.Client, picked: Any) -> None:
    assert ask(client, "why", text=RULE, data="live", picked=picked)["ok"] is False


def test_files_are_named_on_the_command_line_and_never_by_a_page(client: httpx.Client) -> None:
    assert ask(client, "run", text="SEQ(A a, B b) WITHIN 5", data="mine.csv")["total"] == 2
    for name in (
        "/etc/passwd",
        "../mine.csv",
        "samples/hospital.csv",
        "hospital.csv",
        ["hospital"],
        {"a": 1},
    ):
        answer = client.post("/api/run", json={"text": RULE, "data": name})
        assert answer.status_code == 400
        assert "no data set" in answer.json()["error"]


@pytest.mark.parametrize("name", ["check", "plan", "run", "why", "timeline", "events", "trial"])
@pytest.mark.parametrize("body", [{}, {"text": 1}, {"text": "x" * 20_001}, {"text": RULE, "data": 7}])
def test_a_request_that_makes_no_sense_is_told_so(client: httpx.Client, name: str, body: Any) -> None:
    if name == "events":
        body = {"data": body.get("data", 7)}
    if name in ("check", "plan", "trial") and body.get("data"):
        body = {"text": None}
    answer = client.post(f"/api/{name}", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_run_that_takes_too_long_is_stopped_and_the_next_one_works(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SECONDS", 2.0)
    with serving(folder.path) as console, console.client() as client:
        _until(lambda: client.get("/api/counters").json()["events"] == 206)
        answer = ask(client, "run", text=ENDLESS, data="live")
        said = answer["stopped"] if answer["ok"] else answer["error"]  # with or without a first match
        assert "longer than" in said or "memory" in said
        _until(lambda: ask(client, "run", text=RULE, data="live").get("total") == 1)


@pytest.mark.slow
def test_only_so_many_runs_wait(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_WAITING", 2)
    with serving(folder.path) as console, console.client() as client:
        ask(client, "check", text=RULE)
        refused: list[dict[str, Any]] = []
        for _ in range(MOST_ROUNDS):  # until they come together, which a busy machine may keep them from
            with ThreadPoolExecutor(8) as threads:
                asked = threads.map(lambda _: ask(client, "plan", text=NESTED, data="hospital"), range(8))
                answers = list(asked)
            refused = [answer for answer in answers if not answer["ok"]]
            if refused:
                break
        assert 0 < len(refused) < 8, f"{len(refused)} of 8 runs at once were refused in {MOST_ROUNDS} rounds"
        assert all("Too many" in answer["error"] for answer in refused)


def test_a_query_on_trial_finds_what_comes_and_is_told_apart(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    folder.events(event(1, "Recycle", id=7), event(2, "Operating", id=7))
    with serving(folder.path) as console, console.client() as client:
        _until(lambda: client.get("/api/counters").json()["events"] == 2)
        assert ask(client, "trial", text=RULE, name="trial", before=True)["ok"] is True
        folder.events(event(3, "Recycle", id=8), event(4, "Operating", id=8), event(60, "Hall"))
        found = _trial(client, lambda trial: trial["matches"] == 2)
        assert found["events"] == 5
        assert found["busy"] > 0
        assert sum(found["held"]["leaves"].values()) > 0
        assert client.get("/api/counters").json()["matches"] == 0
        assert ask(client, "trial/stop", name="trial")["ok"] is True
        assert _snapshot(client)["trials"] == []


def test_a_trial_takes_every_event_once_though_they_come_while_it_starts(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.02):
            folder.events(*(event(folder.files, "Hall", id=number) for number in range(7)))

    writer = threading.Thread(target=write)
    with serving(folder.path) as console, console.client() as client:
        writer.start()
        try:
            _until(lambda: client.get("/api/counters").json()["events"] > 20)
            assert ask(client, "trial", text="SEQ(Hall h) WITHIN 5 seconds", before=True)["ok"] is True
            _trial(client, lambda trial: trial["events"] > 50)  # some came while it started, some after
        finally:
            stop.set()
            writer.join()
        written = 7 * folder.files
        _trial(client, lambda trial: trial["events"] >= written)
        folder.events(event(folder.files, "Hall", id=7))  # comes after whatever would be taken again
        found = _trial(client, lambda trial: trial["events"] > written)
        assert found["events"] == client.get("/api/counters").json()["events"] == written + 1


def test_a_trial_that_is_no_query_is_refused_and_there_are_only_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MOST_TRIALS", 1)
    folder = JobFolder(tmp_path / "job")
    with serving(folder.path) as console, console.client() as client:
        assert ask(client, "trial", text="SEQ(", name="one")["diagnostics"]
        for number in range(requests.MOST_TRIALS):
            assert ask(client, "trial", text=RULE, name=str(number))["ok"] is True
        assert ask(client, "trial", text=RULE, name="more")["ok"] is False


def _snapshot(client: httpx.Client) -> dict[str, Any]:
    with client.stream("GET", "/api/stream") as line:
        for text in line.iter_lines():
            if text.startswith("data: "):
                found: dict[str, Any] = json.loads(text[6:])
                return found
    raise AssertionError("the line ended")


def _trial(client: httpx.Client, enough: Any) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def look() -> bool:
        found[:] = _snapshot(client)["trials"]
        return bool(found) and bool(enough(found[0]))

    _until(look)
    return found[0]


def _until(holds: Any, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.1)
