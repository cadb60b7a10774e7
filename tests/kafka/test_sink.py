"""A topic as a sink: matches under their keys, each once, and dead letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nestream.model.kafka
from nestream.model.kafka import make_topic, read_kafka
from nestream.sink import SinkError, open_sink
from nestream.sink.match_key import match_key
from tests.kafka.broker import Broker
from tests.kafka.jobs import PAIRS, event, run


def table(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def ids(broker: Broker, topic: str) -> list[int]:
    return sorted(json.loads(value)["id"] for value in broker.values(topic))


def test_matches_are_messages_under_the_key_of_the_match(broker: Broker, tmp_path: Path) -> None:
    events, matches, aside = broker.topic(), broker.topic(3), broker.topic()
    broker.send(events, event(1, "A", 7), event(2, "A", 8), "no event", event(3, "B", 7), event(2, "B", 8))
    progress = run(broker.url(events), tmp_path, sink=broker.url(matches), aside=broker.url(aside))
    assert (progress.matches, progress.malformed, progress.late) == (1, 1, 1)
    [match] = broker.read(matches)
    assert json.loads(match.value()) == {"id": 7, "match_start": 1, "match_end": 3}
    assert match.key().decode() == match_key(match.value().decode())
    malformed, late = (json.loads(value) for value in broker.values(aside))
    assert malformed["reason"].startswith(f"topic {events}, partition 0, offset 2: invalid JSON")
    assert (late["reason"], late["id"]) == ("late: behind the watermark", 8)


def test_matches_that_a_checkpoint_holds_are_sent_after_a_failure_and_only_once(broker: Broker) -> None:
    topic = broker.topic()
    sink = open_sink(broker.url(topic))
    sink.restore(None)
    sink.write(table(1, 2))
    saved = sink.prepare()
    sink.write(table(3))  # after the checkpoint: gone with the failure
    sink.close()
    assert ids(broker, topic) == []
    for _ in range(2):
        sink = open_sink(broker.url(topic))
        sink.restore(json.loads(json.dumps(saved)))
        sink.close()
        assert ids(broker, topic) == [1, 2]


def test_matches_that_were_committed_are_not_sent_again(broker: Broker) -> None:
    topic = broker.topic()
    sink = open_sink(broker.url(topic))
    sink.restore(None)
    for number in range(3):
        sink.write(table(number))
        saved = sink.prepare()
        sink.commit(saved)
        assert ids(broker, topic) == list(range(number + 1))
    again = sink.prepare()
    assert again["rows"] == []
    sink.close()
    sink = open_sink(broker.url(topic))
    sink.restore(saved)
    sink.write(table(3))
    sink.commit(sink.prepare())
    sink.close()
    assert ids(broker, topic) == [0, 1, 2, 3]


def test_matches_that_are_sent_at_once_are_there_before_the_checkpoint(broker: Broker) -> None:
    topic = broker.topic()
    sink = open_sink(broker.url(topic) + "?delivery=at-least-once")
    assert sink.repeats
    sink.restore(None)
    sink.write(table(1))
    while not broker.values(topic):
        pass
    sink.write(table(2))
    assert sink.prepare() == {}
    assert ids(broker, topic) == [1, 2]
    sink.close()


def test_a_topic_that_is_not_there_is_made(broker: Broker, tmp_path: Path) -> None:
    events, matches = broker.topic(), f"{broker.topic()}-matches"
    broker.send(events, event(1, "A", 7), event(3, "B", 7))
    assert run(broker.url(events), tmp_path, sink=broker.url(matches)).matches == 1
    assert ids(broker, matches) == [7]


def test_a_topic_that_another_process_makes_at_the_same_time_is_used(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic()
    place = read_kafka(broker.url(topic), ())
    monkeypatch.setattr(nestream.model.kafka, "topics_of", lambda *given: {})  # as it was before
    assert not make_topic(place)
    sink = open_sink(broker.url(topic))
    sink.restore(None)
    sink.write(table(1))
    sink.commit(sink.prepare())
    sink.close()
    assert ids(broker, topic) == [1]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_match_that_is_too_large_for_the_topic_is_an_error(
    broker: Broker, tmp_path: Path, delivery: str
) -> None:
    events, matches = broker.topic(), broker.topic(max_message_bytes="1000")
    broker.send(events, event(1, "A", 7, note="x" * 5000), event(3, "B", 7))
    text = PAIRS + ", a.note AS note"
    with pytest.raises(SinkError, match=r"cannot write to .*: .*max\.message\.bytes of the topic"):
        run(broker.url(events), tmp_path, text, sink=f"{broker.url(matches)}?delivery={delivery}")


def test_a_broker_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(nestream.model.kafka, "PATIENCE", 0.5)
    sink: Any = open_sink("kafka://127.0.0.1:1/matches")
    with pytest.raises(
        SinkError, match=r"no Kafka broker answers at 127\.0\.0\.1:1\. Start it, or .*address$"
    ):
        sink.restore(None)
    sink.close()
