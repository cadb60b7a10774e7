"""Reads events from Kafka topics: the value of each message is a JSON object, or an Avro record.

This process reads the partitions alone, without a consumer group. Its position is the offset of each
partition, which the checkpoint holds with the ids of the topics; the offsets reported to the brokers are only
for monitoring.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from nestream.model.kafka import (
    PATIENCE,
    KafkaPlace,
    TopicIds,
    check_same_topics,
    check_topics,
    consumer_of,
    kafka_client,
    kafka_reason,
    read_kafka,
    topics_of,
)
from nestream.source.dead_letter import RAW_LIMIT, DeadLetter
from nestream.source.errors import SourceError
from nestream.source.json_events import JsonEvents
from nestream.source.kafka_attributes import ATTRIBUTES, Beside, added_to, attributes_of
from nestream.source.partitions import Partitions
from nestream.source.protocol import Batch, Position

if TYPE_CHECKING:
    from nestream.source.avro_messages import AvroEvents

OPTIONS = (*ATTRIBUTES, "headers", "start", "missing", "group", "config")
MOST = 10_000
"""The number of messages read at once."""
MOST_HELD = 50_000
"""A partition that is this many events ahead of the others is paused."""
REFRESH = 5.0
"""The seconds between two looks at the topics: whether they are still there, and have new partitions."""
NEWEST = 10_000
"""How many existing messages of each partition are read, if only the newest are wanted."""
OPEN = 10.0
"""How many seconds `once` waits for someone else's transaction to end."""
LEAVING = 2.0
"""How many seconds brokers have to accept the last report."""


@dataclass
class _Partition:
    topic: str
    number: int
    next: int
    """The offset of the next message."""
    end: int | None
    """Where reading ends; None if it continues."""
    at_end: bool = False
    """Whether there was nothing more at the last read."""
    paused: bool = False
    stuck: float | None = None
    """Since when nothing has arrived, although the end is not reached."""

    @property
    def where(self) -> str:
        return f"topic {self.topic}, partition {self.number}"

    @property
    def is_finished(self) -> bool:
        return self.end is not None and self.next >= self.end


class KafkaSource:
    """The messages of topics. With `once` it ends where the topics ended when it began.

    With `newest`, it begins with the last few messages of each partition.
    """

    repeatable = True

    def __init__(
        self,
        address: str,
        events: JsonEvents | AvroEvents,
        *,
        once: bool = False,
        newest: bool = False,
    ) -> None:
        try:
            self._kafka = kafka_client()
            self._place = read_kafka(address, OPTIONS)
            self._names, self._headers = attributes_of(self._place)
            _check_choice(self._place, "start", ("beginning", "end"))
            _check_choice(self._place, "missing", ("stop", "skip"))
            self._group = self._place.options.get("group") or f"nestream-{uuid4().hex[:8]}"
            self._consumer = self._client()
            self._topics = self._found()
            self._asking = TopicIds(self._place)
            self._ids = self._asking.now()
        except ValueError as error:
            raise SourceError(str(error)) from None
        self.where = self._place.where
        self._once, self._newest = once, newest
        self._events = events
        if "timestamp" in self._names:
            events.add_moment(self._names["timestamp"])
        self._partitions: list[_Partition] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._waiting = Partitions(events.time)
        self._looked = clock.monotonic()
        self._missing: set[str] = set()
        """The topics that the last look did not find."""
        self._reported: object = None
        self._is_confirmed = True

    def _client(self) -> Any:
        settings = {"group.id": self._group, "enable.auto.offset.store": False, "on_commit": self._confirm}
        return consumer_of(self._place, **settings)

    def _found(self) -> Mapping[str, Any]:
        known = topics_of(self._consumer, self._place)
        check_topics(self._place, known)
        return {topic: known[topic] for topic in self._place.topics}

    # -- the place -----------------------------------------------------------------------------------------

    def seek(self, position: Position) -> None:
        """Continue from the offsets of a checkpoint; new partitions start at their beginning."""
        cluster = self._cluster()
        if position["cluster"] != cluster:
            raise SourceError(
                f"{self.where} is not in the cluster of the checkpoint. "
                "Name the same brokers, or start over without the checkpoint"
            )
        self._ids = self._same(position.get("ids", {}), self._ids)  # earlier versions saved none
        if "group" not in self._place.options and position["group"] != self._group:
            self._group = position["group"]
            self._consumer.close()
            self._consumer = self._client()
        self._events.seek(position["json"])
        self._begin(position["offsets"])

    def _same(self, before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
        """The ids of the topics; raises if one is another one than before."""
        try:
            return check_same_topics(before, now)
        except ValueError as error:
            raise SourceError(str(error)) from None

    def _begin(self, saved: Mapping[str, Mapping[str, int]] | None) -> None:
        for topic, found in self._topics.items():
            offsets = None if saved is None else saved.get(topic, {})
            for number in offsets or ():
                if int(number) not in found.partitions:
                    raise SourceError(
                        f"topic {topic} no longer has partition {number}, so it is not the one that the "
                        "checkpoint reads. Start over without the checkpoint"
                    )
            for number in sorted(found.partitions):
                self._add(topic, number, offsets)
        self._consumer.assign([self._assigned(one) for one in self._partitions])

    def _add(self, topic: str, number: int, saved: Mapping[str, int] | None) -> _Partition:
        """Read another partition: from its saved offset, its beginning, or with `start=end` its end."""
        low, high = self._bounds(topic, number)
        at_start = high if self._place.options.get("start") == "end" else low
        if self._newest:
            at_start = max(at_start, high - NEWEST)
        offset = at_start if saved is None else saved.get(str(number), low)
        partition = _Partition(topic, number, offset, high if self._once else None)
        self._numbers[topic, number] = len(self._partitions)
        self._partitions.append(partition)
        self._waiting.grow()
        self._check(partition, low, high)
        return partition

    def _check(self, partition: _Partition, low: int, high: int) -> None:
        """Raise if messages are gone, unless they may be skipped; then they are counted."""
        if partition.next > high:
            raise SourceError(
                f"{partition.where} ends at offset {high:,}, before offset {partition.next:,} of the "
                "checkpoint: it was emptied or recreated. Start over without the checkpoint"
            )
        if partition.next >= low:
            return
        gone = f"offsets {partition.next:,} to {low - 1:,} are gone: removed before they were read"
        if self._place.options.get("missing") != "skip":
            raise SourceError(
                f"{partition.where}: {gone}. Keep messages for longer (retention.ms of the topic). "
                "To continue without them, add missing=skip to the address"
            )
        letter = DeadLetter(partition.where, 0, gone, "")
        self._waiting.add_dead(self._numbers[partition.topic, partition.number], partition.next, letter)
        partition.next = low

    def _bounds(self, topic: str, number: int) -> tuple[int, int]:
        """The first existing offset, and the one after the last."""
        place = self._kafka.TopicPartition(topic, number)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=PATIENCE)
        except self._kafka.KafkaException as error:
            raise SourceError(
                f"cannot read topic {topic}, partition {number}: {kafka_reason(error)}"
            ) from None
        return low, high

    def _assigned(self, partition: _Partition) -> Any:
        return self._kafka.TopicPartition(partition.topic, partition.number, partition.next)

    def _cluster(self) -> str:
        return str(self._consumer.cluster_id(timeout=PATIENCE))

    def position(self) -> Position:
        """The offset of the next message of each partition, after those that were returned."""
        if not self._partitions:
            self._begin(None)
        held = self._waiting.first_held()
        offsets: dict[str, dict[str, int]] = {topic: {} for topic in self._place.topics}
        for at, partition in enumerate(self._partitions):
            offsets[partition.topic][str(partition.number)] = held.get(at, partition.next)
        return {
            "cluster": self._cluster(),
            "group": self._group,
            "ids": self._ids,
            "offsets": offsets,
            "json": self._events.position(),
        }

    def commit(self, position: Position) -> None:
        """Report the offsets to the brokers, for tools that show the lag."""
        if position["offsets"] == self._reported:
            return
        self._reported, self._is_confirmed = position["offsets"], False
        offsets = [
            self._kafka.TopicPartition(topic, int(number), offset)
            for topic, partitions in position["offsets"].items()
            for number, offset in partitions.items()
        ]
        with suppress(self._kafka.KafkaException):  # nothing depends on it
            self._consumer.commit(offsets=offsets, asynchronous=True)

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """With `once`, whether everything that was there at the beginning was read."""
        is_read = bool(self._partitions) and all(one.is_finished for one in self._partitions)
        return is_read and not self._waiting.held().any()

    def read(self, wait: float) -> Batch | None:
        """The messages that have arrived; those of several partitions in time order."""
        if not self._partitions:
            self._begin(None)
        if clock.monotonic() > self._looked + REFRESH:
            self._look_at_topics()
        if (ids := self._asking.answer()) is not None:
            self._ids = self._same(self._ids, ids)
        first = self._consumer.poll(wait)
        if first is not None:
            self._take([first, *self._consumer.consume(MOST, timeout=0)])
        if self._once:
            self._leave_open_transactions()
        batch = self._waiting.take([at for at, one in enumerate(self._partitions) if self._has_more(one)])
        self._pause()
        return batch

    def _leave_open_transactions(self) -> None:
        """Stop at messages that are not committed: they are for the next run."""
        now = clock.monotonic()
        for partition in self._partitions:
            if partition.is_finished or not partition.at_end:
                partition.stuck = None
            elif partition.stuck is None:
                partition.stuck = now
            elif now > partition.stuck + OPEN:
                assert partition.end is not None
                warnings.warn(
                    f"{partition.where}: offsets {partition.next:,} to {partition.end - 1:,} belong to a "
                    "transaction that is still open; they are left to the next run",
                    stacklevel=2,
                )
                partition.end = partition.next

    def _has_more(self, partition: _Partition) -> bool:
        if partition.is_finished or partition.at_end:
            return False
        place = self._kafka.TopicPartition(partition.topic, partition.number)
        _, high = self._consumer.get_watermark_offsets(place, cached=True)
        partition.at_end = 0 <= high <= partition.next
        return not partition.at_end

    def _take(self, messages: Sequence[Any]) -> None:
        taken, of, offsets = [], [], []
        for message in messages:
            at = self._numbers[message.topic(), message.partition()]
            partition, offset = self._partitions[at], message.offset()
            if message.error() is not None:
                self._told(partition, message.error(), offset)
            elif partition.end is None or offset < partition.end:
                partition.next, partition.at_end = offset + 1, False
                taken.append(message)
                of.append(at)
                offsets.append(offset)
        if not taken:
            return
        problems: dict[int, str] = {}
        lines: list[bytes] = [message.value() or b"" for message in taken]
        added: list[Mapping[str, str | None]] = []
        for place, line in enumerate(lines):
            if (problem := self._events.problem(line)) is not None:
                problems[place], lines[place] = problem, b""
        if self._names or self._headers:
            for place, message in enumerate(taken):
                kind, moment = message.timestamp()
                beside = Beside(
                    message.key(), moment if kind else None, message.topic(), message.headers() or ()
                )
                more, problem = added_to(beside, self._names, self._headers)
                added.append(more)
                if problem is not None:
                    problems[place], lines[place] = problem, b""
        batch = self._events.batch(self.where, lines, 2, added)  # 2: none is the beginning of a text
        problems.update({letter.line - 2: letter.reason for letter in batch.dead})
        is_event = np.ones(len(taken), bool)
        for place, problem in sorted(problems.items()):
            is_event[place] = False
            where = f"{self._partitions[of[place]].where}, offset {offsets[place]:,}"
            raw = (taken[place].value() or b"").decode(errors="backslashreplace")[:RAW_LIMIT]
            self._waiting.add_dead(of[place], offsets[place], DeadLetter(where, 0, problem, raw))
        self._waiting.add(batch.events, np.array(of)[is_event], np.array(offsets)[is_event])

    def _told(self, partition: _Partition, error: Any, offset: int) -> None:
        """What a client reports between the messages."""
        code, kinds = error.code(), self._kafka.KafkaError
        if code == kinds._PARTITION_EOF:
            partition.next, partition.at_end = max(partition.next, offset), True
        elif code in (kinds._AUTO_OFFSET_RESET, kinds.OFFSET_OUT_OF_RANGE):
            self._check(partition, *self._bounds(partition.topic, partition.number))
            self._consumer.incremental_unassign([self._assigned(partition)])
            self._consumer.incremental_assign([self._assigned(partition)])
        elif not error.retriable():
            raise SourceError(f"cannot read {partition.where}: {kafka_reason(error)}")

    def _pause(self) -> None:
        """Pause partitions whose events wait for others, or that reached their end."""
        held = self._waiting.held()
        for at, partition in enumerate(self._partitions):
            is_ahead = held[at] > (MOST_HELD // 2 if partition.paused else MOST_HELD)
            paused = partition.is_finished or bool(is_ahead)
            if paused != partition.paused:
                partition.paused = paused
                change = self._consumer.pause if paused else self._consumer.resume
                change([self._kafka.TopicPartition(partition.topic, partition.number)])

    def _look_at_topics(self) -> None:
        """Check that the topics are still there; read new partitions."""
        self._looked = clock.monotonic()
        try:
            known = self._consumer.list_topics(timeout=1).topics
        except self._kafka.KafkaException:  # the client reconnects by itself
            return
        self._asking.ask()
        before, self._missing = self._missing, {*self._place.topics}.difference(known)
        for topic in before & self._missing:  # a broker that has just started may not know all topics at once
            raise SourceError(
                f"topic {topic} was deleted while it was read, and a checkpoint belongs to the deleted one. "
                "If it is created again, start over without the checkpoint"
            )
        if not self._once:
            self._add_partitions(known)

    def _add_partitions(self, known: Mapping[str, Any]) -> None:
        """Read new partitions from their beginning: all their events are new."""
        for topic in self._place.topics:
            for number in sorted(known[topic].partitions) if topic in known else ():
                if (topic, number) not in self._numbers:
                    new = self._add(topic, number, {})
                    self._consumer.incremental_assign([self._assigned(new)])

    def _confirm(self, error: Any, partitions: Any) -> None:
        self._is_confirmed = True

    def close(self) -> None:
        """Disconnect from the brokers, once they have the last report or cannot be reached."""
        end = clock.monotonic() + LEAVING
        while not self._is_confirmed and clock.monotonic() < end:
            self._consumer.poll(0.02)
        self._consumer.close()


def _check_choice(place: KafkaPlace, option: str, choices: Iterable[str]) -> None:
    value = place.options.get(option)
    if value is not None and value not in choices:
        listed = " or ".join(f"{option}={choice}" for choice in choices)
        raise ValueError(f"cannot use {place.where}: {option} is {value!r}. Write {listed}")
