"""A console in this process, on a real port, and a job's folder whose parts a test writes itself."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx

from nestream.console import serve

T = TypeVar("T")

RULE = """// title: Used without washing
// severity: high
PATTERN SEQ(Recycle r, !(Washing w, w.id = r.id), Operating o, r.id = o.id)
WITHIN 1 hour
"""


@dataclass
class Console:
    """A running console: its address with the token, and without."""

    address: str

    @property
    def token(self) -> str:
        return self.address.split("token=")[1]

    @property
    def base(self) -> str:
        return self.address.split("/?")[0]

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A client that has opened the printed address, as a browser does."""
        with httpx.Client(base_url=self.base, headers={"origin": self.base}, timeout=300) as client:
            client.get(f"/?token={self.token}", follow_redirects=True).raise_for_status()
            yield client


@contextmanager
def serving(job: Path | None = None, **settings: Any) -> Iterator[Console]:
    """A console until the end of the block."""
    addresses: queue.Queue[str] = queue.Queue()
    stop = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            serve(job, ready=addresses.put, stop=stop, **settings)
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield Console(addresses.get(timeout=120))
    finally:
        stop.set()
        thread.join(120)
        assert not failed
        assert not thread.is_alive()


class JobFolder:
    """A job whose parts are written by hand, in the form that the pipeline gives them."""

    def __init__(self, path: Path, rules: dict[str, str] | None = None, **floor: Any) -> None:
        self.path = path
        for part in ("rules", "events", "matches", "late"):
            (path / part).mkdir(parents=True)
        for name, text in (rules or {"dirty": RULE}).items():
            (path / "rules" / f"{name}.neel").write_text(text)
        parts = {part: part for part in ("rules", "events", "matches", "late")}
        about = {
            "title": "test",
            "trigger": 1.0,
            "watermark": "1 seconds",
            "progress": "progress.json",
            "entity": "wID",
            "place": "room",
            **parts,
        }
        if floor:
            about["plan"] = "floor.json"
            (path / "floor.json").write_text(json.dumps(floor))
        (path / "job.json").write_text(json.dumps(about))
        self.files = 0
        self.batches = 0

    def events(self, *events: dict[str, Any]) -> None:
        """One more file of events, whole at once."""
        hidden = self.path / "events" / ".writing"
        hidden.write_text("".join(json.dumps(event) + "\n" for event in events))
        os.replace(hidden, self.path / "events" / f"part-{self.files:08}.jsonl")
        self.files += 1

    def uncommitted(self, *matches: dict[str, Any]) -> Path:
        """A file of matches of a micro-batch that is not, or not yet, committed."""
        path = self.path / "matches" / f".part-{self.batches:08}.json.{len(matches)}"
        path.write_text("".join(json.dumps(match) + "\n" for match in matches))
        return path

    def matches(self, *matches: dict[str, Any]) -> Path:
        """A micro-batch as a stream commits it; one without matches has no file."""
        name = self.path / "matches" / f"part-{self.batches:08}.json"
        if matches:
            os.replace(self.uncommitted(*matches), name)
        self.batches += 1
        return name

    def progress(self, **told: Any) -> None:
        """What the job says of itself now."""
        written = datetime.now(UTC).isoformat()
        (self.path / "progress.json").write_text(json.dumps({"written": written, "state": "running", **told}))


def event(number: int, kind: str, **attributes: Any) -> dict[str, Any]:
    """An event, so many seconds after the start."""
    ts = f"2026-01-05T07:{number // 60:02}:{number % 60:02}.000Z"
    return {"event": number, "ts": ts, "type": kind, "id": None, "wID": None, "room": None, **attributes}


def match(query: str, **events: dict[str, Any]) -> dict[str, Any]:
    """A match as the sink of a set has it."""
    parts = [{"variable": name, "event": one} for name, one in events.items()]
    times = [one["ts"] for one in events.values()]
    return {"query": query, "match_start": min(times), "match_end": max(times), "events": parts, "values": {}}
