"""Writes matches to a Kafka topic: each is a message, a JSON object under the key of the match.

Exactly once: the matches since the last checkpoint are part of the position, so the checkpoint holds them.
They are sent after it is saved, in one transaction, which also records its own number with the brokers. After
a failure, that number shows whether the transaction was committed; if not, it is sent again.
"""

from __future__ import annotations

import time as clock
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pyarrow as pa

from nestream.model.kafka import (
    KafkaPlace,
    client_log,
    kafka_client,
    kafka_reason,
    make_topic,
    read_kafka,
    within,
)
from nestream.sink.match_key import match_key
from nestream.sink.protocol import Position, Sink
from nestream.sink.stream_sinks import Encode, PassingSink, table_lines
from nestream.sink.writer import SinkError

OPTIONS = ("delivery", "config")
ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
LONGEST = 300.0
"""How many seconds brokers may be away."""
_PAUSE = 0.5
"""The seconds before a retry."""
_STEP = 10.0
"""The timeout that one call gets."""
_DEADLINE = 15.0
"""The seconds after which a call that ignores its timeout is given up, and its client replaced."""


def kafka_sink(address: str, encode: Encode = table_lines) -> Sink:
    """The sink of an address, which sets how messages are delivered."""
    try:
        place = read_kafka(address, OPTIONS)
        delivery = place.options.get("delivery", ONCE)
        if delivery not in (ONCE, AT_LEAST_ONCE):
            raise ValueError(
                f"cannot use {place.where}: delivery is {delivery!r}. "
                f"Write delivery={ONCE} or delivery={AT_LEAST_ONCE}"
            )
        if len(place.topics) > 1:
            raise ValueError(f"cannot use {place.where}: matches go to one topic. Name one")
        kafka_client()
        place.settings()
    except ValueError as error:
        raise SinkError(str(error)) from None
    return KafkaSink(place, encode) if delivery == ONCE else EagerKafkaSink(place, encode)


def lines_of(text: str) -> list[str]:
    """The lines of a text that ends with the last of them."""
    return text.split("\n")[:-1]


class _Topic:
    """A topic that messages are sent to."""

    def __init__(self, place: KafkaPlace) -> None:
        self._kafka = kafka_client()
        self._place = place
        self.where = place.where
        self._topic = place.topics[0]
        self._producer: Any = None
        self._failed: Any = None
        """The error of the last message that was not delivered."""

    def _make_topic(self) -> None:
        """Create the topic if it does not exist, with the brokers' defaults."""
        try:
            make_topic(self._place)
        except ValueError as error:
            raise SinkError(str(error)) from None
        except self._kafka.KafkaException as error:
            raise self._cannot(error.args[0]) from None

    def _client(self, **settings: Any) -> Any:
        known = {"linger.ms": 5, **self._place.settings(), "enable.idempotence": True, **settings}
        self._failed = None
        return self._kafka.Producer(known, logger=client_log())

    def _send(self, line: str) -> None:
        """Pass a message to the client; wait if it has too many."""
        while True:
            try:
                self._producer.produce(self._topic, line.encode(), match_key(line), on_delivery=self._told)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _told(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = error

    def _is_final(self, error: Any) -> bool:
        """Whether a retry is of no use."""
        kinds = self._kafka.KafkaError
        return error.code() in (
            kinds.MSG_SIZE_TOO_LARGE,
            kinds.TOPIC_AUTHORIZATION_FAILED,
            kinds.GROUP_AUTHORIZATION_FAILED,
            kinds.CLUSTER_AUTHORIZATION_FAILED,
            kinds.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            kinds._AUTHENTICATION,
        )

    def _cannot(self, error: Any) -> SinkError:
        hint = ""
        if error.code() == self._kafka.KafkaError.MSG_SIZE_TOO_LARGE:
            hint = ". Raise message.max.bytes in the file of config=, and max.message.bytes of the topic"
        return SinkError(f"cannot write to {self.where}: {kafka_reason(error)}{hint}")

    def _leave(self) -> None:
        """Disconnect from the brokers; what was not sent stays unsent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(self._kafka.KafkaException):  # another call of it hangs
                within(_DEADLINE, producer.purge)


class Transactions(_Topic):
    """A topic that gets numbered groups of messages, each group once, for readers of committed messages.

    The identifier belongs to one sender: no two share it.
    """

    def __init__(self, place: KafkaPlace, identifier: str) -> None:
        super().__init__(place)
        self.identifier = identifier
        settings = {**place.settings(), "group.id": identifier, "enable.auto.commit": False}
        self._group = self._kafka.Consumer(settings, logger=client_log())
        self._sent = -1
        """The number of the last group sent from here."""
        self._make_topic()

    def publish(self, number: int, lines: list[str]) -> None:
        """Send a group in one transaction; wait for brokers that are away for a while.

        After a failure, the last group may be passed again: it is sent if the brokers do not have it. So a
        failed attempt is repeated as by a restart: a new producer ends what the old one has begun, even if a
        call of the old one still hangs, and the brokers say whether they have the group.
        """
        if number <= self._sent:
            return
        end = clock.monotonic() + LONGEST
        while True:
            try:
                if self._producer is None:
                    self._producer = self._client(**{"transactional.id": self.identifier})
                    within(_DEADLINE, self._producer.init_transactions, _STEP)  # ends what was in progress
                    if lines and self._committed() >= number:
                        return
                if lines:
                    self._transact(number, lines, end)
                    self._sent = number
                return
            except self._kafka.KafkaException as error:
                problem = self._failed or error.args[0]
                self._leave()
                if self._is_final(problem):
                    raise self._cannot(problem) from None
                if clock.monotonic() > end:
                    raise SinkError(
                        f"cannot write to {self.where}: for {LONGEST / 60:g} minutes, no broker took the "
                        f"matches ({kafka_reason(problem)}). The checkpoint has them: the same command "
                        "continues"
                    ) from None
                clock.sleep(_PAUSE)

    def has(self, number: int) -> bool:
        """Whether the brokers have the group of a number."""
        try:
            return number <= self._sent or self._committed() >= number
        except self._kafka.KafkaException as error:
            raise self._cannot(error.args[0]) from None

    def _transact(self, number: int, lines: list[str], end: float) -> None:
        producer = self._producer
        within(_DEADLINE, producer.begin_transaction)
        for line in lines:
            self._send(line)
        noted = self._kafka.TopicPartition(self._topic, 0, number)
        group = within(_DEADLINE, self._group.consumer_group_metadata)
        within(_DEADLINE, producer.send_offsets_to_transaction, [noted], group, _STEP)
        while True:
            try:
                within(_DEADLINE, producer.commit_transaction, _STEP)
                return
            except self._kafka.KafkaException as error:
                if not error.args[0].retriable() or clock.monotonic() > end:
                    raise

    def _committed(self) -> int:
        """The number of the last group that the brokers have; below 0 if they have none."""
        asked = [self._kafka.TopicPartition(self._topic, 0)]
        [found] = within(_DEADLINE, self._group.committed, asked, timeout=_STEP)
        return int(found.offset)

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._leave()
        with suppress(self._kafka.KafkaException):  # a call of it hangs
            within(_DEADLINE, self._group.close)


class KafkaSink:
    """A topic that has each match once: the checkpoint holds the matches that are sent after it."""

    repeats = False

    def __init__(self, place: KafkaPlace, encode: Encode) -> None:
        self.where = place.where
        self._place, self._encode = place, encode
        self._topic: Transactions | None = None
        self._number = 0
        """The number of the last transaction."""
        self._held: list[str] = []
        self._prepared: list[str] = []

    def restore(self, position: Position | None) -> None:
        """Send what the checkpoint has, unless that was done."""
        if position is not None:
            self._number, self._prepared = position["number"], list(position["rows"])
        identifier = f"nestream-{uuid4().hex[:16]}" if position is None else position["id"]
        self._topic = Transactions(self._place, identifier)
        self._topic.publish(self._number, self._prepared)
        self._prepared = []

    def write(self, rows: pa.Table) -> None:
        """Hold the matches for the next checkpoint."""
        self._held += lines_of(self._encode(rows))

    def prepare(self) -> Position:
        """The matches, which the checkpoint keeps."""
        assert self._topic is not None
        if self._held:
            self._prepared, self._held = self._prepared + self._held, []
            self._number += 1
        return {"id": self._topic.identifier, "number": self._number, "rows": self._prepared}

    def sync(self, position: Position) -> None:
        """Nothing to do: the checkpoint makes them durable."""

    def commit(self, position: Position) -> None:
        """Send the matches, now that the checkpoint has them."""
        assert self._topic is not None
        if self._prepared:
            self._topic.publish(self._number, self._prepared)
            self._prepared = []

    def close(self) -> None:
        """Disconnect from the brokers."""
        if self._topic is not None:
            self._topic.close()


class EagerKafkaSink(_Topic, PassingSink):
    """A topic that gets each match as soon as it is decided, and after a failure possibly again."""

    def __init__(self, place: KafkaPlace, encode: Encode) -> None:
        super().__init__(place)
        self._encode = encode

    def restore(self, position: Position | None) -> None:
        """Nothing can be undone."""
        self._make_topic()
        self._producer = self._client()

    def write(self, rows: pa.Table) -> None:
        """Send the matches."""
        try:
            for line in lines_of(self._encode(rows)):
                self._send(line)
        except self._kafka.KafkaException as error:
            raise self._cannot(error.args[0]) from None
        self._producer.poll(0)
        self._check()

    def prepare(self) -> Position:
        """Wait until the brokers have all that was sent."""
        end = clock.monotonic() + LONGEST
        while self._producer.flush(_STEP):
            if clock.monotonic() > end:
                raise SinkError(
                    f"cannot write to {self.where}: no broker takes the matches. Start the brokers"
                )
        self._check()
        return {}

    def _check(self) -> None:
        if self._failed is not None:
            raise self._cannot(self._failed)

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._leave()
