"""Topics as a source: what becomes an event, what a dead letter, and where reading goes on."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import TopicPartition

import nestream.model.kafka
import nestream.source.kafka
from nestream.job import CheckpointError, Job, Progress, State
from nestream.source import Source, SourceError, open_source
from tests.job.feed import QUERY, expected, random_events
from tests.kafka.broker import Broker
from tests.kafka.jobs import event, job_of, rows, run


def test_a_job_goes_on_from_its_offsets_and_reports_them_to_the_broker(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic()
    broker.send(topic, event(1, "A", 7), event(2, "A", 8))
    assert run(broker.url(topic) + "?group=watch", tmp_path).matches == 0
    broker.send(topic, event(3, "B", 7))
    progress = run(broker.url(topic) + "?group=watch", tmp_path)
    assert (progress.events, progress.matches) == (3, 1)
    assert [row["id"] for row in rows(tmp_path / "out.jsonl")] == [7]
    assert run(broker.url(topic) + "?group=watch", tmp_path).events == 3
    assert broker.reported("watch", topic) == [3]


def test_a_checkpoint_goes_on_with_other_brokers_of_its_cluster_but_not_with_other_topics(
    broker: Broker, tmp_path: Path
) -> None:
    topic, other = broker.topic(), broker.topic()
    broker.send(topic, event(1, "A", 7))
    run(broker.url(topic), tmp_path)
    broker.send(topic, event(2, "B", 7))
    assert run(f"kafka://localhost:{broker.port},{broker.address}/{topic}", tmp_path).matches == 1
    with pytest.raises(CheckpointError, match=f"reads events from topic {topic}, not from topic {other}"):
        run(broker.url(other), tmp_path)
    source = open_source(broker.url(topic))
    with pytest.raises(SourceError, match="is not in the cluster of the checkpoint"):
        source.seek({**source.position(), "cluster": "another"})
    source.close()


def test_a_backlog_of_several_partitions_comes_in_the_order_of_its_times(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nestream.source.kafka, "MOST", 500)  # so that one partition comes before another
    monkeypatch.setattr(nestream.source.kafka, "MOST_HELD", 1500)
    topic, events = broker.topic(3), sorted(random_events(1, 6000), key=lambda one: one["ts"])
    events = [{**one, "ts": n} for n, one in enumerate(events)]
    randomness = random.Random(1)
    with broker.producer() as producer:
        for one in events:
            producer.produce(topic, json.dumps(one), partition=randomness.randrange(3))
    progress = run(broker.url(topic), tmp_path, QUERY)
    assert (progress.events, progress.late) == (6000, 0)
    found = sorted((row["first"], row["last"]) for row in rows(tmp_path / "out.jsonl"))
    assert found == expected(events)


def test_a_message_that_is_no_event_is_a_dead_letter_with_its_offset(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    broker.send(topic, event(1, "A", 1), '{"ts": 2', "[1]", None, '{"type": "A"}', b"\xff\xfe", partition=1)
    broker.send(topic, b"\0\0\0\0\x07abc", partition=1)
    broker.send(topic, event(2, "B", 1), key=b"\xff", partition=1)
    broker.send(topic, event(3, "B", 1), key=b"k", partition=1)
    progress = run(broker.url(topic) + "?key=key", tmp_path)
    assert (progress.events, progress.malformed, progress.matches) == (9, 7, 1)
    where = f"topic {topic}, partition 1, offset"
    letters = [(row["reason"], row["raw"]) for row in rows(tmp_path / "aside.jsonl")]
    assert letters == [
        (f"{where} 1: invalid JSON at column 9: expecting ',' delimiter", '{"ts": 2'),
        (f"{where} 2: expected a JSON object, found an array", "[1]"),
        (f"{where} 3: the message has no value", ""),
        (f"{where} 4: time is missing: no `ts`", '{"type": "A"}'),
        (f"{where} 5: not valid UTF-8 at byte 1 of the line", "\\xff\\xfe"),
        (
            f"{where} 6: its value begins with a zero byte, as that of a schema registry does. "
            "If it is Avro, read it with --input-format avro --schema ID=FILE.avsc",
            "\0\0\0\0\x07abc",
        ),
        (f"{where} 7: its key, or a header, is not UTF-8 text", event(2, "B", 1)),
    ]


def test_key_headers_timestamp_and_topic_are_attributes_where_that_is_asked(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic()
    with broker.producer() as producer:
        for at, kind in ((1_700_000_000_123, "A"), (1_700_000_001_000, "B")):
            value = json.dumps({"type": kind, "topic": "replaced"})
            headers: Any = [("tenant", b"north"), ("other", b"\xff")]
            producer.produce(topic, value, key=b"k1", timestamp=at, headers=headers)
    text = "SEQ(A a, B b, a.customer = b.customer) WITHIN 5 s"
    text += " RETURN a.ts AS first, a.customer AS customer, a.tenant AS tenant, a.topic AS topic"
    options = "?timestamp=ts&key=customer&headers=tenant,missing&topic=topic"
    assert run(broker.url(topic) + options, tmp_path, text).matches == 1
    [match] = rows(tmp_path / "out.jsonl")
    assert match["first"] == "2023-11-14T22:13:20.123Z"
    assert (match["customer"], match["tenant"], match["topic"]) == ("k1", "north", topic)
    assert (match["match_start"], match["match_end"]) == (match["first"], "2023-11-14T22:13:21Z")


def test_the_topic_may_be_the_type(broker: Broker, tmp_path: Path) -> None:
    orders, payments = broker.topic(), broker.topic()
    broker.send(orders, '{"ts": 1, "id": 5}')
    broker.send(payments, '{"ts": 2, "id": 5}')
    text = f"SEQ({orders} o, {payments} p, o.id = p.id) WITHIN 10"
    assert run(f"{broker.url(orders)},{payments}?topic=type", tmp_path, text).matches == 1


def test_only_what_comes_is_read_where_that_is_asked(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, event(1, "A", 7))
    assert run(broker.url(topic) + "?start=end", tmp_path).events == 0
    broker.send(topic, event(2, "A", 8), event(3, "B", 8))
    assert run(broker.url(topic) + "?start=end", tmp_path).events == 2


class Running:
    """A job that runs on in a thread."""

    def __init__(self, job: Job) -> None:
        self.job, self._stop = job, Event()
        self.failed: list[BaseException] = []
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        self.wait_for(lambda progress: progress.state is State.RUNNING)

    def _run(self) -> None:
        try:
            self.job.run(self._stop)
        except BaseException as problem:
            self.failed.append(problem)

    def wait_for(self, reached: Callable[[Progress], bool]) -> None:
        end = time.monotonic() + 60
        while not reached(self.job.progress):
            assert self._thread.is_alive(), self.failed
            assert time.monotonic() < end, self.job.progress
            time.sleep(0.01)

    def wait_for_events(self, number: int) -> None:
        self.wait_for(lambda progress: progress.events >= number)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self.failed


def test_partitions_that_are_added_are_read_from_their_beginning(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nestream.source.kafka, "REFRESH", 0.2)
    topic = broker.topic()
    broker.send(topic, event(1, "A", 7))
    running = Running(job_of(broker.url(topic) + "?start=end", tmp_path, once=False))
    broker.send(topic, event(2, "A", 8))
    running.wait_for_events(1)
    broker.grow(topic, 2)
    broker.send(topic, event(3, "B", 8), partition=1)
    running.wait_for_events(2)
    running.stop()
    broker.grow(topic, 3)
    broker.send(topic, event(4, "B", 8), partition=2)
    assert run(broker.url(topic) + "?start=end", tmp_path).matches == 2


def test_reading_once_ends_before_a_transaction_that_stays_open(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    with broker.producer(**{"transactional.id": topic}) as producer:
        producer.init_transactions(30)
        for n in range(2):
            producer.begin_transaction()
            producer.produce(topic, event(n, "AB"[n], 7), partition=0)
            if n == 0:
                producer.commit_transaction(30)
        producer.flush(30)
        assert run(broker.url(topic), tmp_path).events == 1
        producer.commit_transaction(30)
    progress = run(broker.url(topic), tmp_path)
    assert (progress.events, progress.matches) == (2, 1)


def test_reading_ends_where_the_topic_ended_at_the_start_also_after_transactions(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic()
    with broker.producer(**{"transactional.id": topic}) as producer:
        producer.init_transactions(30)
        for ts, is_kept in ((1, True), (2, False), (3, True), (4, False)):
            producer.begin_transaction()
            producer.produce(topic, event(ts, "A", 7))
            producer.flush(30)
            (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    progress = run(broker.url(topic) + "?group=after-transactions", tmp_path)
    assert progress.events == 2  # what was aborted is never seen
    assert broker.reported("after-transactions", topic) == [8]


def test_messages_that_are_gone_stop_the_job_unless_they_may_be_skipped(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic()
    broker.send(topic, event(1, "A", 7))
    run(broker.url(topic), tmp_path)
    broker.send(topic, *(event(ts, "A", 7) for ts in range(2, 6)), event(6, "B", 7))
    broker.remove_before(topic, 4)
    with pytest.raises(SourceError, match=r"offsets 1 to 3 are gone.*add missing=skip to the address"):
        run(broker.url(topic), tmp_path)
    progress = run(broker.url(topic) + "?missing=skip", tmp_path)
    assert (progress.events, progress.malformed, progress.matches) == (4, 1, 2)
    [letter] = rows(tmp_path / "aside.jsonl")
    assert letter["reason"].startswith(f"topic {topic}, partition 0: offsets 1 to 3 are gone")


def test_messages_that_go_while_the_job_runs_stop_it(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic()
    source = open_source(broker.url(topic))
    source.position()
    assert source.read(0.5) is None
    consumer: Any = source._consumer  # type: ignore[attr-defined]
    place = TopicPartition(topic, 0)
    consumer.pause([place])
    broker.send(topic, *(event(ts, "A", 7) for ts in range(5)))
    broker.remove_before(topic, 4)
    consumer.resume([place])
    with pytest.raises(SourceError, match="partition 0: offsets 0 to 3 are gone"):
        read_on(source)
    source.close()


def read_on(source: Source) -> None:
    """Read until the source has something to say."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        source.read(0.1)


def test_a_topic_that_was_made_anew_is_refused(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.send(topic, event(1, "A", 7), event(2, "A", 8))
    run(broker.url(topic), tmp_path)
    broker.remove_before(topic, 2)
    source = open_source(broker.url(topic))
    position = source.position()
    position["offsets"] = {topic: {"0": 9}}
    with pytest.raises(SourceError, match=r"ends at offset 2, before offset 9 of the checkpoint"):
        source.seek(position)
    source.close()


def test_a_topic_that_is_not_there_is_refused_and_not_made(broker: Broker) -> None:
    topic = broker.topic()
    with pytest.raises(SourceError, match=rf"there is no topic {topic}x at .*Did you mean {topic}\?"):
        open_source(broker.url(topic + "x"))
    with pytest.raises(SourceError, match=r"there is no topic nobody at .*Create it"):
        open_source(broker.url("nobody"))
    assert "nobody" not in broker.admin.list_topics(timeout=30).topics


def test_a_broker_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nestream.model.kafka, "PATIENCE", 0.5)
    (tmp_path / "settings").write_text("client.id=me\n")
    with pytest.raises(SourceError, match=r"Start it, or correct the address or its config=$"):
        open_source(f"kafka://127.0.0.1:1/orders?config={tmp_path / 'settings'}")
    with pytest.raises(
        SourceError, match=r"no Kafka broker answers at 127\.0\.0\.1:1\. Start it, or .*address$"
    ):
        open_source("kafka://127.0.0.1:1/orders")


def test_without_the_client_the_message_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SourceError, match=r"Kafka needs the package confluent-kafka(.|\n)*pip install"):
        open_source("kafka://127.0.0.1/orders")
