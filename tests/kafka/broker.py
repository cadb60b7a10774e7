"""A broker of Kafka in KRaft mode, from the jars of Maven Central, that tests start, restart and kill."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import logging
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from benchmarks.events import cache_folder
from benchmarks.maven import fetch_jars

JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PATIENCE = 120.0
QUIET = logging.getLogger("tests.kafka")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""


def jars(pom: Path) -> Path:
    """The folder with the jars of a pom.xml, fetched once for all tests."""
    mark = hashlib.sha256(pom.read_bytes()).hexdigest()[:8]
    place = cache_folder("kafka") / f"{pom.stem}-{mark}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_suffix(".lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            unfinished = place.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            fetch_jars(pom, unfinished)
            os.replace(unfinished, place)
    return place


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Broker:
    """One broker that is its own controller, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._jars = jars(Path(__file__).with_name("broker.xml"))
        self._settings = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._settings.write_text(
            SETTINGS.format(port=self.port, controller=free_port(), folder=folder), encoding="utf-8"
        )
        cluster = base64.urlsafe_b64encode(b"nestream" + os.urandom(8)).rstrip(b"=").decode()
        assert self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c").wait(PATIENCE) == 0

    def _java(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [*JAVA, "-cp", f"{self._jars}/*", name, *arguments, str(self._settings)]
        with (self._folder / "log.txt").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        self._process = self._java("kafka.Kafka")
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.admin.list_topics(timeout=1)
                return
            except KafkaException:
                if self._process.poll() is not None or time.monotonic() > end:
                    said = (self._folder / "log.txt").read_text()[-2000:]
                    raise AssertionError(f"the broker does not start:\n{said}") from None

    def stop(self) -> None:
        """Stop the broker as an operator does."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End the broker at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    # -- what tests do with it -----------------------------------------------------------------------------

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address}, logger=QUIET)

    def topic(self, partitions: int = 1, name: str = "", **config: str) -> str:
        """A new topic, with a name of its own if none is given."""
        name = name or f"t{uuid.uuid4().hex[:8]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until everybody is told."""
        self.admin.delete_topics([topic])[topic].result(30)
        end = time.monotonic() + PATIENCE
        while topic in self.admin.list_topics(timeout=30).topics:
            assert time.monotonic() < end
            time.sleep(0.05)

    def recreate(self, topic: str, **config: Any) -> None:
        """Delete a topic, and make another one of the same name."""
        self.delete(topic)
        self.topic(name=topic, **config)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, and wait until everybody is told of them."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        end = time.monotonic() + PATIENCE
        while len(self.admin.list_topics(topic, timeout=30).topics[topic].partitions) < partitions:
            assert time.monotonic() < end
            time.sleep(0.05)

    def remove_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Remove the first messages, as retention does."""
        place = TopicPartition(topic, partition, offset)
        self.admin.delete_records([place])[place].result(30)

    def url(self, topic: str) -> str:
        return f"kafka://{self.address}/{topic}"

    @contextmanager
    def producer(self, **settings: Any) -> Iterator[Producer]:
        """A producer whose messages are there at the end of the block, in the order of sending."""
        known = {"bootstrap.servers": self.address, "enable.idempotence": True, **settings}
        producer = Producer(known, logger=QUIET)
        yield producer
        assert producer.flush(60) == 0

    def send(self, topic: str, *values: bytes | str | None, partition: int = 0, **more: Any) -> None:
        """Send messages to one partition."""
        with self.producer() as producer:
            for value in values:
                producer.produce(topic, value, partition=partition, **more)

    def read(self, topic: str) -> list[Any]:
        """All committed messages of a topic that are there now."""
        follower = Follower(self.address, topic)
        while len(follower.ended) < follower.partitions:
            follower.count(0.2)
        follower.close()
        return follower.found

    def values(self, topic: str) -> list[bytes]:
        """The values of all messages."""
        return [message.value() for message in self.read(topic)]

    def reported(self, group: str, topic: str, partitions: Sequence[int] = (0,)) -> list[int]:
        """The offsets that a group has reported."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group}, logger=QUIET)
        found = consumer.committed([TopicPartition(topic, number) for number in partitions], timeout=30)
        consumer.close()
        return [one.offset for one in found]


class Follower:
    """Reads the committed messages of a topic as they come."""

    def __init__(self, address: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            },
            logger=QUIET,
        )
        numbers = self._consumer.list_topics(topic, timeout=30).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
        self.partitions = len(numbers)
        self.found: list[Any] = []
        self.ended: set[int | None] = set()
        """The partitions whose end was reached."""

    def count(self, wait: float = 0.0) -> int:
        """How many messages have come by now."""
        for message in self._consumer.consume(10_000, timeout=wait):
            error = message.error()
            if error is None:
                self.found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self.ended.add(message.partition())
        return len(self.found)

    def close(self) -> None:
        self._consumer.close()
