"""Opens the sink of a stream by name: `-`, a file, a folder, or the address of a socket or of Kafka."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nestream.model.formats import SUFFIXES
from nestream.model.kafka import KafkaPlace, is_kafka, read_kafka
from nestream.sink.protocol import Sink
from nestream.sink.stream_sinks import Encode, FileSink, FolderSink, ScreenSink, SocketSink, table_lines
from nestream.sink.writer import SinkError

FORMATS = ("jsonl", "parquet")
_HERE = re.compile(r"^(127\.0\.0\.1|\[::1\]):")


def is_folder(place: str) -> bool:
    """Whether a place is a folder, existing or not: a name without the suffix of a file of matches."""
    return os.path.isdir(place) or Path(place).suffix.lower() not in SUFFIXES


def is_topic(place: str) -> bool:
    """Whether a place is a Kafka topic. A topic cannot hold a checkpoint, which then needs a folder."""
    return is_kafka(place)


def share_a_topic(one: str, other: str) -> bool:
    """Whether two places are addresses that name the same topic at the same broker."""
    if not is_kafka(one) or not is_kafka(other):
        return False
    try:
        first, second = (read_kafka(place.partition("?")[0], ()) for place in (one, other))
    except ValueError:  # refused when it is opened
        return False
    return bool({*first.topics} & {*second.topics} and _hosts(first) & _hosts(second))


def _hosts(place: KafkaPlace) -> set[str]:
    """The brokers, with one name for this machine."""
    return {_HERE.sub("localhost:", broker) for broker in place.brokers.lower().split(",")}


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
