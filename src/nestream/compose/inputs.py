"""Reads events from files, and keeps events that can be read only once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nestream.model.counting import counted
from nestream.model.frames import is_unread
from nestream.model.schema import EventError
from nestream.source import EventFile, EventFiles, SourceError, event_files


def is_place(events: Any) -> bool:
    """Whether the events are in files: the path of a file or a folder, or a pattern."""
    return isinstance(events, str | os.PathLike)


def held(events: Any, time: str, type: str) -> Any:
    """The events in a form that can be read several times; files are read into memory."""
    if is_place(events):
        return _files(events, time, type).read_all()
    if isinstance(events, pa.RecordBatchReader):
        return events.read_all()
    if isinstance(events, Mapping):
        if not all(map(_are_several, events.values())):
            return events  # such as a single event, which is refused when it is read
        return {name: _of_one_type(name, part, time, type) for name, part in events.items()}
    return list(events) if isinstance(events, Iterator) else events


def _are_several(part: Any) -> bool:
    return (
        is_place(part) or isinstance(part, Iterable) or hasattr(part, "__arrow_c_stream__") or is_unread(part)
    )


def batches_of(place: Any, time: str, type: str) -> Iterator[pa.RecordBatch]:
    """The events of files, batch by batch."""
    return iter(_files(place, time, type))


def _of_one_type(name: Any, part: Any, time: str, type: str) -> Any:
    """Events of one type; a file of them needs no type column."""
    if not is_place(part) or not isinstance(name, str):
        return held(part, time, type)
    found = [replace(file, type=name) for file in _named(part)]
    unused = f"{type} of the mapping"  # a column `type` in the files is ignored
    table = _opened(part, found, time, unused).read_all()
    return table.drop_columns([unused])


def _files(place: Any, time: str, type: str) -> EventFiles:
    return _opened(place, _named(place), time, type)


def _named(place: Any) -> list[EventFile]:
    """The files that a path or a pattern names."""
    path = os.fsdecode(place)
    if path == "-":
        raise EventError("`-` means standard input only on the command line\n  hint: pass the path of a file")
    if not os.path.exists(path) and ("(" in path or "\n" in path):
        raise EventError(f"{path[:60]!r} is not the path of a file\n  hint: pass events, not a query")
    with _reading():
        return event_files([path])


def _opened(place: Any, files: list[EventFile], time: str, type: str) -> EventFiles:
    with _reading():
        found = EventFiles(files, time, type)
    if found.malformed:
        first = found.examples[0]
        rows = counted(found.malformed, "malformed row")
        warnings.warn(
            f"{rows} of {os.fsdecode(place)} left out; the first is line {first.line} of {first.file}: "
            f"{first.reason}\n  hint: `nestream run --dead-letter` saves malformed rows",
            stacklevel=2,
        )
    return found


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except SourceError as problem:
        raise EventError(str(problem)) from None
