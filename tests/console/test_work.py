"""Work with matches: what people say of them is kept, and exported with them as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nestream.console import Job, readers
from nestream.console.annotations import FILE, Annotations
from nestream.console.export import Export
from nestream.console.watch import Watch
from tests.console.pipeline import wait
from tests.console.served import Console, JobFolder, event, match, serving

HOSTILE = 'a "quoted", text\nof two lines; =1+1'
MANY = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    made = JobFolder(tmp_path_factory.mktemp("work") / "job")
    rows = [
        match("dirty", r=event(n, "Recycle", id=n, room=HOSTILE), o=event(n + 1, "Operating", id=n))
        for n in range(MANY)
    ]
    rows[3]["events"].append(rows[3]["events"][1])  # a group
    made.matches(*rows)
    return made


@pytest.fixture(scope="module")
def console(folder: JobFolder) -> Iterator[Console]:
    with serving(folder.path) as running:
        yield running


@pytest.fixture
def client(console: Console) -> Iterator[httpx.Client]:
    with console.client() as opened:
        wait(lambda: opened.get("/api/counters").json()["matches"] == MANY, 120)
        yield opened


def say(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.post("/api/annotate", json=body)


def matches(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/snapshot").json()["data"]["matches"]
    return found


def test_what_is_said_of_a_match_is_kept_and_taken_back_and_every_console_sees_it(
    client: httpx.Client, folder: JobFolder
) -> None:
    one = matches(client)[0]["id"]
    assert say(client, id=one, status="acknowledged").json()["annotations"][one]["status"] == "acknowledged"
    assert say(client, id=one, comment="  it was a drill  ").json()["ok"] is True
    assert say(client, id=one, status="false alarm").json()["ok"] is True
    with serving(folder.path) as other, other.client() as another:
        wait(lambda: another.get("/api/counters").json()["matches"] == MANY, 120)
        said = another.get("/api/snapshot").json()["data"]["annotations"][one]
        assert (said["status"], [each["text"] for each in said["comments"]]) == (
            "false alarm",
            ["it was a drill"],
        )
        assert say(another, id=one, status=None).json()["annotations"][one]["status"] is None
    wait(lambda: client.get("/api/snapshot").json()["data"]["annotations"][one]["status"] is None, 60)
    lines = [json.loads(line) for line in (folder.path / FILE).read_text().splitlines()]
    assert [line["match"] for line in lines] == [one] * 4
    assert lines[0]["rule"] == "dirty"


@pytest.mark.parametrize(
    "body",
    [{}, {"status": "gone"}, {"status": 1}, {"comment": ""}, {"comment": " "}, {"comment": "x" * 2001}],
)
def test_what_makes_no_sense_of_a_match_is_refused(client: httpx.Client, body: dict[str, Any]) -> None:
    assert say(client, id=matches(client)[0]["id"], **body).status_code == 400


def test_a_match_that_is_not_in_the_sink_cannot_be_said_anything_of(client: httpx.Client) -> None:
    answer = say(client, id="0" * 16, status="acknowledged").json()
    assert (answer["ok"], "no match" in answer["error"]) == (False, True)


def test_a_line_that_was_cut_off_or_damaged_loses_no_other(tmp_path: Path) -> None:
    row = {"id": "a", "query": "q", "start": 1, "end": 2}
    writer = Annotations(tmp_path)
    writer.add(row, status="acknowledged")
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"match": "b", "at"')
    reader = Annotations(tmp_path)
    assert reader.look()["a"]["status"] == "acknowledged"
    writer.add({**row, "id": "c"}, comment="more")
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"match": ["d"], "at": "now"}\n')
    writer.add({**row, "id": "e"}, comment="still more")
    assert list(reader.look()) == ["c", "e"]
    assert reader.problem == "2 lines of annotations.jsonl cannot be read, and the others count"
    (tmp_path / FILE).write_text("")
    assert reader.look() == {}
    assert not reader.problem


def test_annotations_that_cannot_be_read_are_reported_on_the_page(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job")
    (folder.path / FILE).write_text("damaged\n")
    watch = Watch(Job.read(folder.path))
    watch.look()
    assert watch.snapshot()["problems"] == {
        "annotations": "one line of annotations.jsonl cannot be read, and the others count"
    }
    (folder.path / FILE).unlink()
    (folder.path / FILE).write_text("")
    watch.look_aside()
    assert watch.snapshot()["problems"] == {}


def test_exports_hold_up_no_live_update_and_too_many_are_refused(
    client: httpx.Client, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, begun, go_on = Export.write, threading.Semaphore(0), threading.Event()

    def slowly(self: Export, path: Path, format: str) -> int:
        begun.release()
        assert go_on.wait(300)
        return write(self, path, format)

    monkeypatch.setattr(Export, "write", slowly)
    most = readers.THREADS + readers.MOST_WAITING

    def export(_: int) -> int:
        with console.client() as own:
            return own.get("/api/export?format=csv").status_code

    with ThreadPoolExecutor(most + 3) as threads:
        answers = [threads.submit(export, number) for number in range(most + 3)]
        for _ in range(readers.THREADS):
            assert begun.acquire(timeout=60)
        wait(lambda: sum(answer.done() for answer in answers) == 3, 60)
        before = client.get("/api/counters").json()["messages"]
        wait(lambda: client.get("/api/counters").json()["messages"] > before + 1, 60)
        go_on.set()
        assert sorted(answer.result() for answer in answers) == [200] * most + [503] * 3


def test_the_export_has_every_match_with_its_events_and_what_was_said(client: httpx.Client) -> None:
    last = matches(client)[-1]["id"]
    say(client, id=last, status="false alarm")
    say(client, id=last, comment=HOSTILE)
    answer = client.get("/api/export?format=csv")
    assert "matches.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert len(rows) == MANY
    (said,) = [row for row in rows if row["id"] == last]
    assert (said["status"], said["comments"]) == ("false alarm", HOSTILE)
    assert (said["r.room"], said["o.id"], said["severity"]) == (HOSTILE, str(MANY - 1), "high")
    assert json.loads(rows[3]["o.id"]) == [3, 3]
    table = pq.read_table(io.BytesIO(client.get("/api/export?format=parquet").content))
    assert table.column("id").to_pylist() == [row["id"] for row in rows]
    assert table.schema.field("match_end").type == pa.timestamp("us", "UTC")
    assert table.schema.field("r.id").type == pa.int64()
    assert table.column("r.ts")[2].as_py() == datetime(2026, 1, 5, 7, 0, 2, tzinfo=UTC)


def test_the_export_of_a_filter_has_those_matches_alone(client: httpx.Client) -> None:
    wanted = [match["id"] for match in matches(client)[4:7]]
    for format in ("csv", "parquet"):
        answer = client.post("/api/export", json={"format": format, "ids": wanted})
        if format == "csv":
            found = [row["id"] for row in csv.DictReader(io.StringIO(answer.text, newline=""))]
        else:
            found = pq.read_table(io.BytesIO(answer.content)).column("id").to_pylist()
        assert found == wanted
    empty = client.post("/api/export", json={"format": "parquet", "ids": []})
    assert pq.read_table(io.BytesIO(empty.content)).num_rows == 0


@pytest.mark.parametrize("body", [{}, {"format": "xlsx"}, {"format": "csv", "ids": 7}, {"format": ["csv"]}])
def test_an_export_that_makes_no_sense_is_told_so(client: httpx.Client, body: dict[str, Any]) -> None:
    answer = client.post("/api/export", json=body)
    assert (answer.status_code, bool(answer.json()["error"])) == (400, True)
