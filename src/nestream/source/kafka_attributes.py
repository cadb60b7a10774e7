"""What a Kafka message has beside its value, as attributes of its event: key, timestamp, topic, headers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from nestream.model.kafka import KafkaPlace

ATTRIBUTES = ("key", "timestamp", "topic")
"""What becomes an attribute under the name in the address; headers keep their own names."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def attributes_of(place: KafkaPlace) -> tuple[dict[str, str], tuple[str, ...]]:
    """What is added to an event: attribute names by what they hold, and headers."""
    names = {what: place.options[what] for what in ATTRIBUTES if what in place.options}
    headers = tuple(name for name in place.options.get("headers", "").split(",") if name)
    every = [*names.values(), *headers]
    if twice := {name for name in every if every.count(name) > 1}:
        raise ValueError(f"cannot use {place.where}: two options name the attribute {twice.pop()!r}")
    return names, headers


class Beside(NamedTuple):
    """What a message has beside its value; the timestamp in milliseconds since 1970."""

    key: bytes | None
    timestamp: int | None
    topic: str
    headers: Iterable[tuple[str, bytes | None]]


def added_to(
    message: Beside, names: Mapping[str, str], headers: Collection[str]
) -> tuple[dict[str, str | None], str | None]:
    """The attributes that a message adds, and what is wrong with it."""
    added: dict[str, str | None] = {}
    try:
        if "key" in names:
            added[names["key"]] = _text(message.key)
        for name, value in message.headers:
            if name in headers:
                added[name] = _text(value)
    except UnicodeDecodeError:
        return added, "its key, or a header, is not UTF-8 text"
    if "topic" in names:
        added[names["topic"]] = message.topic
    if "timestamp" in names:
        if message.timestamp is None:
            return added, "the message has no timestamp"
        try:
            added[names["timestamp"]] = (_EPOCH + timedelta(milliseconds=message.timestamp)).isoformat()
        except OverflowError:
            return added, f"its timestamp is {message.timestamp}, which is beyond the year 9999"
    return added, None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
