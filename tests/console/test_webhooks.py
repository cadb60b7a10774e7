"""Webhooks against a real receiver: every new match of its severities arrives, in order."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nestream.console import Job, JobError, webhooks
from nestream.console.watch import Watch
from nestream.job.checkpoint import replace_file
from tests.console.pipeline import wait
from tests.console.served import RULE, JobFolder, event, match, serving

LOW = RULE.replace("high", "low")


class Receiver:
    """A server that keeps what it is sent, and answers as it is told."""

    def __init__(self, port: int = 0) -> None:
        self.got: list[dict[str, Any]] = []
        self.status = 200
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests += 1
                if outer.status == 200:
                    outer.got += body["matches"]
                self.send_response(outer.status)
                if outer.status == 302:
                    self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]

    @contextmanager
    def listening(self) -> Iterator[Receiver]:
        thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()

    @property
    def numbers(self) -> list[int]:
        return [one["events"][0]["event"]["id"] for one in self.got]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "LOOK", 0.05)
    monkeypatch.setattr(webhooks, "FIRST_RETRY", 0.05)
    monkeypatch.setattr(webhooks, "LAST_RETRY", 0.1)


def hooked(path: Path, *hooks: Any) -> JobFolder:
    folder = JobFolder(path, rules={"dirty": RULE, "untidy": LOW})
    described = json.loads((path / "job.json").read_text())
    (path / "job.json").write_text(json.dumps({**described, "webhooks": list(hooks)}))
    return folder


def found(query: str, number: int) -> dict[str, Any]:
    return match(query, o=event(number % 3000, "Operating", id=number))


def test_new_matches_of_its_severities_are_sent_and_older_ones_are_not(tmp_path: Path) -> None:
    with Receiver().listening() as receiver:
        address = f"http://127.0.0.1:{receiver.port}/secret"
        folder = hooked(tmp_path / "job", {"url": address, "severities": ["high"]})
        folder.matches(found("dirty", 1))
        with serving(folder.path), _after_the_first_look(folder):
            folder.matches(found("dirty", 2), found("untidy", 3), found("dirty", 4))
            wait(lambda: len(receiver.got) == 2, 60)
        assert receiver.numbers == [2, 4]
        assert {one["title"] for one in receiver.got} == {"Used without washing"}
        assert all(one["severity"] == "high" and len(one["id"]) == 16 for one in receiver.got)


@contextmanager
def _after_the_first_look(folder: JobFolder) -> Iterator[None]:
    """What was there before the webhook is known by now."""
    wait(lambda: any((folder.path / "webhooks").glob("*.json")), 60)
    yield


def test_nothing_is_lost_while_the_receiver_is_away_and_health_says_so(tmp_path: Path) -> None:
    gone = Receiver()
    gone.server.server_close()
    folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{gone.port}/secret"})
    many = list(range(1, 3 * webhooks.MOST_IN_REQUEST))
    with serving(folder.path) as console, console.client() as client, _after_the_first_look(folder):

        def told() -> dict[str, Any]:
            (one,) = client.get("/api/snapshot").json()["data"]["health"]["webhooks"]
            assert isinstance(one, dict)
            return one

        folder.matches(*(found("dirty", number) for number in many))
        wait(lambda: told()["failures"] > 2, 60)
        assert told()["where"] == f"http://127.0.0.1:{gone.port}"
        assert "secret" not in json.dumps(told())
        assert told()["waiting"] == len(many)
        with Receiver(gone.port).listening() as back:
            back.status = 503
            wait(lambda: told()["error"] == "it answered 503", 60)
            back.status = 200
            wait(lambda: told()["sent"] == len(many), 60)
            assert back.numbers == many
            assert (told()["failures"], told()["error"], told()["waiting"]) == (0, None, 0)


def test_nothing_is_lost_when_a_position_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, full = replace_file, threading.Event()

    def save_if_there_is_room(*arguments: Any, **how: Any) -> None:
        if full.is_set():
            full.clear()
            raise OSError(28, "No space left on device")
        save(*arguments, **how)

    monkeypatch.setattr(webhooks, "replace_file", save_if_there_is_room)
    many = list(range(1, 2 * webhooks.MOST_IN_REQUEST + 2))
    with Receiver().listening() as receiver:
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        with serving(folder.path), _after_the_first_look(folder):
            full.set()
            folder.matches(*(found("dirty", number) for number in many))
            wait(lambda: receiver.numbers[-1:] == many[-1:], 60)
        assert not full.is_set()
        assert sorted(set(receiver.numbers)) == many


def test_a_console_that_is_started_again_goes_on_where_it_was(tmp_path: Path) -> None:
    with Receiver().listening() as receiver:
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        with serving(folder.path), _after_the_first_look(folder):
            folder.matches(found("dirty", 1))
            wait(lambda: receiver.numbers == [1], 60)
            receiver.status = 500
            seen = receiver.requests
            folder.matches(found("dirty", 2))
            wait(lambda: receiver.requests > seen, 60)
        folder.matches(found("dirty", 3))
        receiver.status = 200
        with serving(folder.path):
            wait(lambda: len(receiver.got) == 3, 60)
        assert receiver.numbers == [1, 2, 3]


def test_a_console_that_is_started_from_another_folder_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Receiver().listening() as receiver:
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        monkeypatch.chdir(tmp_path)
        with serving(Path("job")), _after_the_first_look(folder):
            pass
        folder.matches(found("dirty", 1))
        monkeypatch.chdir(folder.path)
        with serving(Path()):
            wait(lambda: receiver.numbers == [1], 60)


def growing(folder: JobFolder) -> Path:
    """The sink of the job as one file."""
    described = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**described, "matches": "matches.jsonl"}))
    path = folder.path / "matches.jsonl"
    path.touch()
    return path


def lines(*numbers: int) -> str:
    return "".join(json.dumps(found("dirty", number)) + "\n" for number in numbers)


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.mark.filterwarnings("ignore:.*it is read on:UserWarning")
def test_a_sink_that_is_cut_back_is_not_sent_again_from_its_beginning(tmp_path: Path) -> None:
    with Receiver().listening() as receiver:
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        path = growing(folder)

        def position() -> int:
            (kept,) = (folder.path / "webhooks").glob("*.json")
            (file,) = json.loads(kept.read_text())["position"]["files"].values() or [{"offset": 0}]
            return int(file["offset"])

        def are_sent(last: int) -> bool:
            return receiver.numbers[-1:] == [last] and position() == path.stat().st_size

        with serving(folder.path), _after_the_first_look(folder):
            add(path, lines(*range(1, 41)))
            wait(lambda: are_sent(40), 60)
            os.truncate(path, len(lines(*range(1, 31))))
            add(path, lines(41))
            wait(lambda: are_sent(41), 60)
        os.truncate(path, len(lines(*range(1, 21))))
        add(path, lines(42))
        with serving(folder.path):
            wait(lambda: are_sent(42), 60)
        assert {*receiver.numbers} == {*range(1, 43)}
        assert len(receiver.numbers) < 42 + 25  # some before the cut come again, as it is found from afar


@pytest.mark.filterwarnings("ignore:.*it is read on:UserWarning")
def test_matches_from_before_the_webhook_are_not_sent_when_the_sink_is_cut_back(tmp_path: Path) -> None:
    with Receiver().listening() as receiver:
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        path = growing(folder)
        add(path, lines(*range(1, 101)))
        with serving(folder.path), _after_the_first_look(folder):
            add(path, lines(101))
            wait(lambda: receiver.numbers == [101], 60)
            os.truncate(path, len(lines(*range(1, 99))))
            add(path, lines(*range(201, 211)))
            wait(lambda: receiver.numbers[-1:] == [210], 60)
        assert min(receiver.numbers) == 101


@pytest.mark.filterwarnings("ignore:.*it is read on:UserWarning")
def test_a_sink_that_is_replaced_while_the_console_is_stopped_is_sent_from_its_beginning(
    tmp_path: Path,
) -> None:
    with Receiver().listening() as receiver:
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        path = growing(folder)
        with serving(folder.path), _after_the_first_look(folder):
            add(path, lines(1, 2))
            wait(lambda: receiver.numbers == [1, 2], 60)
        path.rename(folder.path / "matches.jsonl.1")
        path.write_text(lines(3))
        with serving(folder.path):
            wait(lambda: receiver.numbers == [1, 2, 3], 60)


def test_a_redirect_is_a_failure_as_it_would_lose_the_matches(tmp_path: Path) -> None:
    with Receiver().listening() as receiver:
        receiver.status = 302
        folder = hooked(tmp_path / "job", {"url": f"http://127.0.0.1:{receiver.port}/"})
        with serving(folder.path) as console, console.client() as client, _after_the_first_look(folder):
            folder.matches(found("dirty", 1))

            def error() -> Any:
                return client.get("/api/snapshot").json()["data"]["health"]["webhooks"][0]["error"]

            wait(lambda: error() == "it answered 302", 60)


def test_there_are_none_unless_job_json_names_them(tmp_path: Path) -> None:
    watch = Watch(Job.read(JobFolder(tmp_path / "job").path))
    assert watch.senders == []
    watch.close()


@pytest.mark.parametrize(
    "wrong",
    [
        "http://x/",
        {"url": "ftp://x/"},
        {"url": 7},
        {"address": "http://x/"},
        {"url": "https://host:port/x"},
        {"url": "http://x/", "severities": ["huge"]},
        {"url": "http://x/", "severities": []},
        {"url": "http://x/", "severities": [["high"]]},
    ],
)
def test_a_webhook_that_cannot_be_used_is_refused_with_what_to_write(tmp_path: Path, wrong: Any) -> None:
    folder = hooked(tmp_path / "job", wrong)
    with pytest.raises(JobError, match="hint"):
        Job.read(folder.path)
