"""A source by its name: `-`, a file, a folder, a pattern, or the address of a socket or of Kafka."""

from __future__ import annotations

import os
from collections.abc import Collection

from nestream.model.formats import SUFFIXES
from nestream.model.kafka import is_kafka
from nestream.source.errors import SourceError
from nestream.source.files import Files, is_pattern
from nestream.source.formats import known_format, suffix_of
from nestream.source.pipe import Listener, Pipe
from nestream.source.protocol import Source


def open_source(
    place: str,
    time: str = "ts",
    type: str = "type",
    *,
    format: str | None = None,
    once: bool = False,
    whole: bool = False,
    moments: Collection[str] | None = None,
) -> Source:
    """The events of a place, as they come.

    With `once` the source ends when what is there was read; with `whole` what is there is all there will
    ever be. `moments` are the attributes whose text may be a time; by default all.
    """
    if time == type:
        raise SourceError(f"time and type cannot both be column {time!r}. Name two columns")
    chosen = None if format is None else known_format(format)
    if place == "-" or "://" in place:
        if chosen not in (None, "jsonl"):
            what = "messages of JSON" if is_kafka(place) else "JSON lines, one event a line"
            raise SourceError(f"{place} is read as {what}, and not as {chosen}")
        if place == "-":
            return Pipe(time, type, moments=moments)
        if is_kafka(place):
            from nestream.source.kafka import KafkaSource  # only those who use Kafka load it

            return KafkaSource(place, time, type, once=once, moments=moments)
        return Listener(place, time, type, once=once, moments=moments)
    is_one = not os.path.isdir(place) and not is_pattern(place)
    if is_one and chosen is None and os.path.exists(place) and suffix_of(place) not in SUFFIXES:
        raise SourceError(
            f"cannot tell the format of {place} by its suffix: it is none of {', '.join(SUFFIXES)}. "
            "Rename it, or name the format: csv, jsonl or parquet"
        )
    return Files(place, time, type, format=chosen, once=once, whole=whole, moments=moments)
