"""Opens a source by name: `-`, a file, a folder, a pattern, or the address of a socket or of Kafka."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from nestream.model.formats import SUFFIXES, Format
from nestream.model.kafka import is_kafka
from nestream.source.errors import SourceError
from nestream.source.files import DAY, Files
from nestream.source.formats import known_format, listed_formats, suffix_of
from nestream.source.json_events import JsonEvents
from nestream.source.listing import is_pattern
from nestream.source.pipe import Listener, Pipe
from nestream.source.protocol import Source

if TYPE_CHECKING:
    from nestream.source.avro_messages import AvroEvents


def open_source(
    place: str,
    time: str = "ts",
    type: str | None = "type",
    *,
    format: str | None = None,
    schemas: Sequence[str] = (),
    once: bool = False,
    whole: bool = False,
    moments: Collection[str] | None = None,
    newest: bool = False,
    forgiving: bool = False,
    keeps: float = DAY,
) -> Source:
    """The events of a place, as they arrive.

    `schemas` are the files with the schemas of Avro messages, each `FILE` or `ID=FILE` with its id in a
    registry. With `once`, the source ends when all existing data was read; with `whole`, no more data will
    ever arrive. `moments` are the attributes whose text may be a time; by default all. With `newest`, only
    the last part of existing data is read, and then what arrives. With `type=None`, rows need no type. With
    `forgiving`, a source that seeks a position in a text file that was replaced since reads the new file, and
    one that was cut back it continues where it was cut; otherwise it refuses the position. The
    position in a file of a folder is kept for `keeps` seconds after the file is gone.
    """
    if time == type:
        raise SourceError(f"time and type cannot both be column {time!r}. Name two columns")
    chosen = None if format is None else known_format(format)
    if is_kafka(place):
        from nestream.source.kafka import KafkaSource  # loaded only by those who use Kafka

        events = message_events(place, time, type, chosen, schemas, moments)
        return KafkaSource(place, events, once=once, newest=newest)
    if schemas:
        raise SourceError(
            f"only Avro messages in Kafka need a schema, and {place} is not a topic. Leave the schema out: "
            "an Avro file has its own"
        )
    if place == "-" or "://" in place:
        if chosen not in (None, "jsonl"):
            raise SourceError(f"{place} is read as JSON lines, one event a line, and not as {chosen}")
        lines = JsonEvents(time, type, moments)
        return Pipe(lines) if place == "-" else Listener(place, lines, once=once)
    is_one = not os.path.isdir(place) and not is_pattern(place)
    if is_one and chosen is None and os.path.exists(place) and suffix_of(place) not in SUFFIXES:
        raise SourceError(
            f"cannot tell the format of {place} by its suffix: it is none of {', '.join(SUFFIXES)}. "
            f"Rename it, or name the format: {listed_formats()}"
        )
    how: dict[str, Any] = {"moments": moments, "newest": newest, "forgiving": forgiving, "keeps": keeps}
    return Files(place, time, type, format=chosen, once=once, whole=whole, **how)


def message_events(
    place: str,
    time: str,
    type: str | None,
    format: Format | None,
    schemas: Sequence[str],
    moments: Collection[str] | None,
) -> JsonEvents | AvroEvents:
    """What converts the messages of topics to events."""
    if not is_avro(place, format, schemas):
        return JsonEvents(time, type, moments)
    if type is None:
        raise SourceError(f"messages of Avro are events, and {place} is read as rows without a type")
    from nestream.source.avro_messages import AvroDecoder, AvroEvents  # loaded only by those who use Avro

    return AvroEvents(time, type, AvroDecoder.of(schemas))


def is_avro(place: str, format: str | None, schemas: Sequence[str]) -> bool:
    """Whether messages are Avro and not JSON; raises if a format and schemas do not fit together."""
    if format not in (None, "jsonl", "avro"):
        raise SourceError(f"{place} cannot be read as {format}: messages are JSON or Avro")
    if format == "avro" and not schemas:
        raise SourceError(
            f"{place} cannot be read as Avro without its schema. Name the file that has it, "
            "--schema FILE.avsc, or --schema ID=FILE.avsc with the id that it has in a schema registry"
        )
    if schemas and format != "avro":
        raise SourceError("only Avro messages need a schema. Add --input-format avro")
    return format == "avro"
