"""Embedded jobs on topics, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any

import nestream
from nestream.job import Checkpoint, Job, Progress
from nestream.sink import first_column, open_sink
from nestream.source import open_source

PAIRS = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id"


def event(ts: Any, type: str, id: Any, **more: Any) -> str:
    """An event as JSON."""
    return json.dumps({"ts": ts, "type": type, "id": id, **more})


def job_of(
    source: str,
    folder: Path,
    text: str = PAIRS,
    *,
    once: bool = True,
    sink: str | None = None,
    **options: Any,
) -> Job:
    """A job with its checkpoint, and by default its matches, in a folder."""
    query = nestream.query(text)
    lateness = options.pop("lateness", 0)
    aside = options.pop("aside", str(folder / "aside.jsonl"))
    return Job(
        lambda **handlers: query.stream(lateness=lateness, **handlers),
        open_source(source, once=once),
        open_sink(sink or str(folder / "out.jsonl")),
        aside=open_sink(aside, "jsonl", encode=first_column),
        checkpoint=Checkpoint(folder / "checkpoint"),
        lateness=lateness,
        **options,
    )


def run(source: str, folder: Path, text: str = PAIRS, **options: Any) -> Progress:
    """Run a job over what is there."""
    return job_of(source, folder, text, **options).run(Event())


def rows(path: Path) -> list[Any]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
