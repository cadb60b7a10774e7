"""A job between topics that is killed at any moment, and its broker: nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.job.feed import LATENESS, Row, ending, expected, lines, random_events
from tests.job.test_kills import Killed
from tests.kafka.broker import PATIENCE, QUIET, Broker, Follower
from tests.kafka.conftest import made_broker

EVENTS = 1500
"""Events for each kill."""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker that may be killed."""
    broker = made_broker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


class Feed:
    """Sends the lines of events to the partitions of their keys, a few at a time."""

    def __init__(self, broker: Broker, topic: str, partitions: int, text: list[bytes]) -> None:
        patient = {"enable.idempotence": True, "message.timeout.ms": 0}  # a message never expires
        self._producer = Producer({"bootstrap.servers": broker.address, **patient}, logger=QUIET)
        self._topic, self._partitions = topic, partitions
        self._text = text
        self._lost: list[KafkaError] = []

    def send(self, number: int, pause: float = 0.0) -> None:
        some, self._text = self._text[:number], self._text[number:]
        for at, line in enumerate(some):
            is_event = line.startswith(b"{")
            partition = json.loads(line)["id"] % self._partitions if is_event else 0
            self._producer.produce(
                self._topic, line.strip(), partition=partition, on_delivery=self._note_a_loss
            )
            if at % 23 == 0:
                self._producer.poll(pause)

    def end(self) -> None:
        self.send(len(self._text))
        assert self._producer.flush(PATIENCE) == 0
        assert not self._lost

    def _note_a_loss(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._lost.append(error)


def survive(
    broker: Broker,
    folder: Path,
    seed: int,
    kills: int,
    *,
    partitions: int = 1,
    hit: Callable[[Killed, random.Random], None],
) -> None:
    """Feed a job, let it be hit again and again, and compare with the matches of all events."""
    randomness = random.Random(seed)
    events = random_events(seed, EVENTS * (kills + 1))
    last: Row = ending(events)
    text = list(lines(events, seed))
    malformed = len(text) - len(events)
    source, sink, aside = broker.topic(partitions), broker.topic(2), broker.topic()
    lateness = LATENESS if partitions == 1 else len(events)  # partitions run apart as they are read
    last["ts"] += lateness
    feed = Feed(broker, source, partitions, [*text, json.dumps(last).encode()])
    job = Killed(broker.url(source), broker.url(sink), folder, broker.url(aside), lateness)
    share = len(text) // (kills + 1)
    job.start(interval=0.05)
    for _ in range(kills):
        feeder = Thread(target=feed.send, args=[share, 0.004])
        feeder.start()
        hit(job, randomness)
        feeder.join()
    feed.end()
    wanted = expected([*events, last])
    follower = Follower(broker.address, sink)
    job.wait_for(lambda: follower.count() >= len(wanted))
    follower.close()
    job.stop()
    messages = broker.read(sink)
    found = [json.loads(message.value()) for message in messages]
    assert sorted((row["first"], row["last"]) for row in found) == wanted
    assert len({message.key() for message in messages}) == len(wanted)
    letters = [json.loads(value)["raw"] for value in broker.values(aside)]
    assert len(letters) == len(set(letters)) == malformed
    print(f"hit {kills} times: {len(wanted):,} matches and {malformed} dead letters, each once")


def kill_the_job(job: Killed, randomness: random.Random) -> None:
    """Kill the job some time after it began, or while it begins, and start it again."""
    if randomness.random() < 0.8:
        before = job.told()
        job.wait_for(lambda: job.told() != before)
    time.sleep(randomness.random() * 0.3)
    job.kill()
    job.start(interval=randomness.choice([0.01, 0.3]))


@pytest.mark.slow
def test_a_job_between_topics_that_is_killed_writes_every_match_once(broker: Broker, tmp_path: Path) -> None:
    survive(broker, tmp_path, 1, 1, hit=kill_the_job)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_twenty_kills_of_the_job_lose_nothing_and_repeat_nothing(
    broker: Broker, tmp_path: Path, partitions: int
) -> None:
    survive(broker, tmp_path, 2, 20, partitions=partitions, hit=kill_the_job)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_twenty_kills_of_the_broker_lose_nothing_and_repeat_nothing(
    own_broker: Broker, tmp_path: Path, partitions: int
) -> None:
    def kill_the_broker(job: Killed, randomness: random.Random) -> None:
        """Kill or stop the broker, sometimes the job with it, and start it again after a while."""
        time.sleep(randomness.random())
        is_killed = randomness.random() < 0.3
        (own_broker.kill if randomness.random() < 0.7 else own_broker.stop)()
        if is_killed:
            job.kill()
        time.sleep(randomness.choice([0, 0.5, 3]))
        own_broker.start()
        if is_killed:
            job.start(interval=0.05)

    survive(own_broker, tmp_path, 3, 20, partitions=partitions, hit=kill_the_broker)
