"""Topics that are deleted, or made anew under the same name: of events and of rules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

import nestream.source.kafka
from nestream.console import Job
from nestream.console.rules import JobRules
from nestream.job import LiveRules, RulesError, RuleSet, State, rule_topic
from nestream.job.rule_topic import RuleTopic
from nestream.model.kafka import TopicIds
from nestream.model.schema import EventError
from nestream.runtime.spark.stream_kafka import TOPICS_FILE, Topics
from nestream.runtime.spark.stream_place import Place
from nestream.source import Source, SourceError, open_source
from tests.console.pipeline import wait
from tests.job.test_jobs import write
from tests.kafka.broker import Broker
from tests.kafka.jobs import event, job_of, run
from tests.kafka.test_rules import PAIR, QUICK, compacted, put
from tests.kafka.test_rules import run as run_rules
from tests.kafka.test_source import Running, read_on

COMPACTED = {"cleanup_policy": "compact"}
RECREATED = "was recreated, so it is not the one that the checkpoint reads"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often."""
    monkeypatch.setattr(nestream.source.kafka, "REFRESH", 0.2)
    monkeypatch.setattr(rule_topic, "AGAIN", 0.2)


def followed(rules: RuleTopic, known: RuleSet, done: Callable[[RuleSet], bool]) -> list[dict[str, str]]:
    """Read rules like a job until they are as wanted; return their texts after each change."""
    found, end = [known.texts], time.monotonic() + 60
    while not done(known):
        assert time.monotonic() < end, found
        try:
            known = rules.read(known)
        except RulesError:
            continue
        if known.texts != found[-1]:
            found.append(known.texts)
        time.sleep(0.02)
    return found


@pytest.mark.parametrize("number", [1, 2, 5])
def test_rules_of_a_topic_that_is_recreated_replace_the_old_ones_as_one_change(
    broker: Broker, number: int
) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR, quick=QUICK)
    rules = RuleTopic(broker.url(topic))
    first = rules.read(None)
    assert rules.read(first) == first
    new = {f"new{n}": PAIR for n in range(number)}
    broker.recreate(topic, **COMPACTED)
    with broker.producer(**{"transactional.id": topic}) as producer:
        producer.init_transactions(30)
        producer.begin_transaction()
        for name, text in new.items():
            producer.produce(topic, text, key=name, partition=0)
        producer.commit_transaction(30)
    assert followed(rules, first, lambda known: "new0" in known.rules) == [first.texts, new]
    again = rules.read(None)
    assert (again.version, again.topic == first.topic) == (number, False)
    put(broker, topic, quick=QUICK)
    followed(rules, again, lambda known: "quick" in known.rules)
    assert [one.version for one in rules.history()] == [*range(1, number + 1), number + 2]


def test_a_topic_of_rules_that_is_missing_or_unfit_is_a_problem_until_it_is_good_again(
    broker: Broker,
) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR)
    live = LiveRules(
        RuleTopic(broker.url(topic)), nestream.queries, lambda parsed, **how: parsed.stream(**how)
    )
    live.begin(None)
    stream = live.start()
    assert (live.look(stream), live.problem) == (None, None)

    def stays(problem: str) -> None:
        wait(lambda: live.look(stream) is None and problem in (live.problem or ""), 60)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert live.look(stream) is None
            assert live.problem is not None  # a busy broker may have another one for a moment
            time.sleep(0.02)
        assert live.running.texts == {"pair": PAIR}

    broker.delete(topic)
    stays(f"there is no topic {topic} at")
    broker.topic(name=topic, retention_ms="604800000")
    stays("deletes messages, including rules: retention.ms is 604800000")
    broker.recreate(topic, **COMPACTED)
    stays("there is no rule in")
    put(broker, topic, quick=QUICK)
    wait(lambda: live.look(stream) is not None, 60)
    assert (live.running.texts, live.problem) == ({"quick": QUICK}, None)


def test_a_job_takes_the_rules_of_a_topic_that_was_recreated_while_it_was_down(
    broker: Broker, tmp_path: Path
) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR, quick=QUICK, more=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run_rules(tmp_path, broker.url(topic))
    broker.recreate(topic, **COMPACTED)
    put(broker, topic, quick=QUICK)
    progress = run_rules(tmp_path, broker.url(topic))
    assert (progress.version, progress.rules, progress.rules_problem) == (1, {"quick": 1}, None)


def test_the_console_shows_the_rules_of_a_topic_that_was_recreated(broker: Broker, tmp_path: Path) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR, quick=QUICK)
    (tmp_path / "job.json").write_text(json.dumps({"rules": broker.url(topic), "live_rules": True}))
    rules = JobRules(Job.read(tmp_path))
    wait(lambda: rules.look() and rules.are_known, 60)
    broker.recreate(topic, **COMPACTED)
    put(broker, topic, quick=PAIR)

    def shows() -> bool:
        try:
            rules.look()
        except RulesError:  # while it is opened again
            return False
        return rules.texts() == {"quick": PAIR}

    wait(shows, 60)
    assert [one.version for one in rules.seen.versions] == [1]
    assert rules.deploy("pair", PAIR, None, {"quick": PAIR}).version == 2
    rules.close()


def sent(broker: Broker, topic: str, number: int) -> None:
    broker.send(topic, *(event(ts, "A", 7) for ts in range(number)))


def test_a_topic_of_events_that_was_recreated_while_the_job_was_down_is_refused_at_any_length(
    broker: Broker, tmp_path: Path
) -> None:
    topic = broker.topic()
    sent(broker, topic, 2)
    run(broker.url(topic), tmp_path)
    broker.recreate(topic)
    sent(broker, topic, 5)
    with pytest.raises(SourceError, match=f"topic {topic} {RECREATED}. Start over without the checkpoint"):
        run(broker.url(topic), tmp_path)


def test_a_position_of_an_earlier_version_has_no_ids_and_is_accepted(broker: Broker) -> None:
    topic = broker.topic()
    sent(broker, topic, 2)
    source = open_source(broker.url(topic))
    position = source.position()
    assert list(position["ids"]) == [topic]
    source.close()
    del position["ids"]
    broker.recreate(topic)
    sent(broker, topic, 2)
    source = open_source(broker.url(topic))
    source.seek(position)
    assert source.position()["ids"][topic]
    source.close()


def waiting(broker: Broker, topic: str, once: bool) -> Source:
    """A source that has read a topic of two events."""
    sent(broker, topic, 2)
    source = open_source(broker.url(topic), once=once)
    source.position()
    return source


@pytest.mark.parametrize("once", [False, True])
def test_a_topic_of_events_that_is_recreated_or_deleted_while_it_is_read_is_noticed(
    broker: Broker, once: bool
) -> None:
    topic = broker.topic()
    source = waiting(broker, topic, once)
    broker.delete(topic)
    with pytest.raises(SourceError, match=f"topic {topic} was deleted while it was read, and a checkpoint"):
        read_on(source)
    source.close()
    broker.topic(name=topic)
    source = waiting(broker, topic, once)
    broker.recreate(topic)
    sent(broker, topic, 5)
    with pytest.raises(SourceError, match=f"topic {topic} {RECREATED}"):
        read_on(source)
    source.close()


def test_a_job_whose_topic_is_deleted_fails_and_keeps_its_checkpoint(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    sent(broker, topic, 2)
    running = Running(job_of(broker.url(topic), tmp_path, once=False))
    running.wait_for_events(2)
    broker.delete(topic)
    wait(lambda: bool(running.failed), 60)
    assert f"topic {topic} was deleted while it was read" in str(running.failed[0])
    assert running.job.progress.state is State.FAILED
    broker.topic(name=topic)
    with pytest.raises(SourceError, match=RECREATED):
        run(broker.url(topic), tmp_path)


def test_spark_refuses_a_topic_that_was_recreated(broker: Broker, tmp_path: Path) -> None:
    topic, place = broker.topic(), Place(str(tmp_path / "checkpoint"))
    topics = Topics.at(broker.url(topic), "ts", "type")
    topics.check_same(place)
    topics.check_same(place)
    broker.recreate(topic)
    with pytest.raises(EventError, match=f"topic {topic} {RECREATED}"):
        topics.check_same(place)
    place.remove(TOPICS_FILE)  # a checkpoint of an earlier version has none
    topics.check_same(place)
    topics.check_same(place)


def test_ids_stay_known_where_brokers_do_not_tell_them_any_more(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, place = broker.topic(), Place(str(tmp_path / "checkpoint"))
    sent(broker, topic, 2)
    source = open_source(broker.url(topic))
    position = source.position()
    source.close()
    Topics.at(broker.url(topic), "ts", "type").check_same(place)
    kept = place.read(TOPICS_FILE)
    with monkeypatch.context() as patched:
        patched.setattr(TopicIds, "now", lambda self, *_: dict.fromkeys(self._place.topics, ""))
        source = open_source(broker.url(topic))
        source.seek(position)
        assert source.position()["ids"] == position["ids"]
        source.close()
        Topics.at(broker.url(topic), "ts", "type").check_same(place)
        assert place.read(TOPICS_FILE) == kept
    broker.recreate(topic)
    with pytest.raises(EventError, match=RECREATED):
        Topics.at(broker.url(topic), "ts", "type").check_same(place)


def test_brokers_that_refuse_to_tell_ids_are_quoted(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: Future[Any] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    topic = broker.topic()
    monkeypatch.setattr(AdminClient, "describe_topics", lambda self, topics: {topic: refused})
    with pytest.raises(
        SourceError, match=r"cannot ask the Kafka brokers at .*: .*Topic authorization failed"
    ):
        open_source(broker.url(topic))
