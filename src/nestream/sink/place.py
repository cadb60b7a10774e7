"""Opens the sink of a stream by name: `-`, a file, a folder, or the address of a socket or of Kafka."""

from __future__ import annotations

import os
from pathlib import Path

from nestream.model.formats import SUFFIXES
from nestream.model.kafka import is_kafka
from nestream.sink.protocol import Sink
from nestream.sink.stream_sinks import Encode, FileSink, FolderSink, ScreenSink, SocketSink, table_lines
from nestream.sink.writer import SinkError

FORMATS = ("jsonl", "parquet")


def is_folder(place: str) -> bool:
    """Whether a place is a folder, existing or not: a name without the suffix of a file of matches."""
    return os.path.isdir(place) or Path(place).suffix.lower() not in SUFFIXES


def is_topic(place: str) -> bool:
    """Whether a place is a Kafka topic. A topic cannot hold a checkpoint, which then needs a folder."""
    return is_kafka(place)


def open_sink(place: str, format: str | None = None, *, encode: Encode = table_lines) -> Sink:
    """The sink of a place. The default is Parquet in a folder, and JSON lines in a file, which grows."""
    if format is not None and format not in FORMATS:
        raise SinkError(f"unknown format {format!r}. The formats of a stream are {', '.join(FORMATS)}")
    lines_alone = place == "-" or "://" in place
    if not lines_alone and is_folder(place):
        if os.path.exists(place) and not os.path.isdir(place):
            raise SinkError(
                f"cannot tell what {place} holds by its suffix. "
                f"Use .jsonl for a file that grows, or name a folder"
            )
        return FolderSink(place, format or "parquet", encode)
    suffix = SUFFIXES.get(Path(place).suffix.lower())
    if format == "parquet" or (not lines_alone and suffix != "jsonl"):
        raise SinkError(
            f"{place} cannot hold {format or suffix} that grows. "
            "Write JSON lines (.jsonl) there, or name a folder"
        )
    if place == "-":
        return ScreenSink(encode)
    if not lines_alone:
        return FileSink(place, encode)
    if is_kafka(place):
        from nestream.sink.kafka import kafka_sink  # loaded only by those who use Kafka

        return kafka_sink(place, encode)
    return SocketSink(place, encode)
