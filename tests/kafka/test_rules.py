"""Rules in a topic: what is a rule, how they change, and what a job makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

import nestream
from nestream.job import Checkpoint, Job, LiveRules, Progress, RulesError, rule_topic
from nestream.job.rule_topic import RuleTopic
from nestream.model.kafka import TopicIds
from nestream.sink import open_sink
from nestream.source import open_source
from tests.cli.commands import call
from tests.job.test_jobs import rows, write
from tests.kafka.broker import Broker
from tests.kafka.conftest import made_broker

PAIR = "SEQ(A a, B b, a.id = b.id) WITHIN 10 RETURN a.id AS id"
QUICK = "SEQ(A a, B b, a.id = b.id, b.ts - a.ts < 3) WITHIN 10 RETURN a.id AS id"


def compacted(broker: Broker, partitions: int = 1) -> str:
    """A topic that keeps the last message of each key."""
    return broker.topic(partitions, cleanup_policy="compact")


def put(broker: Broker, topic: str, **texts: str | None) -> None:
    """Send rules as any program does."""
    for name, text in texts.items():
        broker.send(topic, text, key=name)


def run(folder: Path, address: str) -> Progress:
    """Run an embedded job over the events that are there."""
    live = LiveRules(RuleTopic(address), nestream.queries, lambda parsed, **how: parsed.stream(**how))
    job = Job(
        live.start,
        open_source(str(folder / "in.jsonl"), once=True),
        open_sink(str(folder / "out.jsonl")),
        checkpoint=Checkpoint(folder / "checkpoint"),
        rules=live,
    )
    return job.run(Event())


def found(folder: Path) -> list[tuple[str, int, str]]:
    return [(row["query"], row["version"], row["values"]["id"]) for row in rows(folder / "out.jsonl")]


def test_a_message_brings_a_rule_and_one_without_a_value_removes_it(broker: Broker) -> None:
    topic = compacted(broker)
    rules = RuleTopic(broker.url(topic))
    put(broker, topic, pair=PAIR, quick=QUICK)
    first = rules.read(None)
    assert (first.version, first.versions) == (2, {"pair": 1, "quick": 2})
    assert rules.read(first) == first
    put(broker, topic, pair=None, quick=PAIR)
    seen = first
    while seen.version < 4:
        seen = rules.read(seen)
    assert (seen.texts, seen.versions) == ({"quick": PAIR}, {"quick": 4})
    assert RuleTopic(broker.url(topic)).read(first) == seen


def test_a_job_takes_the_rules_of_a_topic_and_its_changes_and_names_their_versions(
    broker: Broker, tmp_path: Path
) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    run(tmp_path, broker.url(topic))
    put(broker, topic, quick=QUICK, bad="SEQ(A a", pair="\udcff".encode(errors="surrogateescape"))  # type: ignore[arg-type]
    broker.send(topic, None, key=b"nothing")
    write(tmp_path / "in.jsonl", (3, "B", 7))
    progress = run(tmp_path, broker.url(topic))
    assert found(tmp_path) == [("pair", 1, "7"), ("pair", 1, "7"), ("quick", 2, "7")]
    assert progress.version == 5
    assert sorted(progress.refused) == ["bad", "pair"]
    put(broker, topic, bad=None, pair=PAIR)
    assert run(tmp_path, broker.url(topic)).refused == {}


def test_a_message_without_a_key_is_refused_and_shown(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(retention_ms="-1")
    put(broker, topic, pair=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path, broker.url(topic))
    broker.send(topic, QUICK)
    assert list(run(tmp_path, broker.url(topic)).refused) == ["(message without a key at offset 1)"]


def test_topics_that_cannot_hold_rules_are_refused_with_what_to_do(broker: Broker) -> None:
    wrong: list[tuple[str, str]] = [
        (
            broker.topic(retention_ms="604800000"),
            "deletes messages, including rules: retention.ms is 604800000",
        ),
        (compacted(broker, 2), "has 2 partitions, so its messages have no total order"),
        (compacted(broker), "there is no rule in"),
        ("missing", "there is no topic missing at"),
        ("a,b", "rules are in one topic"),
    ]
    for topic, said in wrong:
        with pytest.raises(RulesError, match=said):
            RuleTopic(broker.url(topic)).read(None)


@pytest.mark.parametrize("key", [None, "7"], ids=["without keys", "with keys"])
@pytest.mark.parametrize("value", ['{"ts": 1, "type": "A"}', b"\x00\x00\x00\x00\x07A"], ids=["json", "avro"])
def test_a_topic_of_events_is_refused_as_a_topic_of_rules_in_one_sentence(
    broker: Broker, tmp_path: Path, key: str | None, value: str | bytes
) -> None:
    topic = compacted(broker) if key else broker.topic(retention_ms="-1")
    broker.send(topic, *[value] * 50, key=key)
    places = ["--from", str(tmp_path / "in.jsonl"), "--to", str(tmp_path / "out.jsonl")]
    for command in (
        ["rules", broker.url(topic), "list"],
        ["rules", broker.url(topic), "add", "pair", PAIR],
        ["stream", broker.url(topic), "--local", *places],
    ):
        done = call(*command)
        assert done.exit_code == 1
        assert f"{broker.url(topic)} does not look like a topic of rules" in " ".join(done.stderr.split())
        assert len(done.stdout + done.stderr) < 500
    assert len(broker.values(topic)) == 50


def test_a_topic_that_ends_too_early_changes_nothing_where_topics_have_no_ids(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TopicIds, "now", lambda self, *_: dict.fromkeys(self._place.topics, ""))
    topic = compacted(broker)
    put(broker, topic, pair=PAIR, quick=QUICK, more=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7))
    run(tmp_path, broker.url(topic))
    other = compacted(broker)
    put(broker, other, quick=QUICK)
    progress = run(tmp_path, broker.url(other))
    assert "ends before version 3: it was emptied or recreated" in (progress.rules_problem or "")
    assert sorted(progress.rules) == ["more", "pair", "quick"]


@pytest.mark.slow
def test_brokers_that_are_away_are_reported_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_topic, "AGAIN", 0.0)
    broker = made_broker(tmp_path / "broker")
    broker.start()
    try:
        topic = compacted(broker)
        put(broker, topic, pair=PAIR)
        rules = RuleTopic(broker.url(topic))
        known = rules.read(None)
        broker.kill()
        problem = ""
        while not problem:
            try:
                rules.read(known)
            except RulesError as error:
                problem = str(error)
        assert "no Kafka broker answers" in problem
        broker.start()
        put(broker, topic, quick=QUICK)
        while known.version < 2:
            try:
                known = rules.read(known)
            except RulesError:
                continue
        assert sorted(known.rules) == ["pair", "quick"]
    finally:
        broker.kill()


def versions(address: str) -> dict[str, int]:
    listed = json.loads(call("rules", address, "list", "--format", "json").stdout)
    return {row["rule"]: row["version"] for row in listed}


def test_rules_in_a_topic_are_added_replaced_removed_and_brought_back(broker: Broker) -> None:
    address = broker.url("own-rules")
    assert call("rules", address, "add", "pair", PAIR).stdout == "version 1: add pair\n"
    assert call("rules", address, "add", "quick", QUICK).stdout == "version 2: add quick\n"
    assert call("rules", address, "replace", "quick", PAIR).exit_code == 0
    assert call("rules", address, "remove", "pair").exit_code == 0
    assert versions(address) == {"quick": 3}
    assert call("rules", address, "rollback", "2").stdout == "version 6: rollback 2\n"
    assert versions(address) == {"pair": 5, "quick": 6}
    past = call("rules", address, "history").stdout.splitlines()
    assert [line.split("  ")[0] for line in past] == ["v1", "v2", "v3", "v4", "v5", "v6"]
    assert past[3].endswith("remove pair    -pair")
    assert "nothing to change" in call("rules", address, "rollback", "2").stdout
    wrong: list[tuple[list[Any], str]] = [
        (["add", "pair", PAIR], "a rule pair already"),
        (["add", "bad", "SEQ(A a, B b, z.id = 1) WITHIN 5"], "unknown variable `z`"),
        (["remove", "pair", "quick"], "at least one rule"),
        (["rollback", "99"], "no version 99; there are 1 to 6"),
    ]
    for arguments, said in wrong:
        done = call("rules", address, *arguments)
        assert done.exit_code == 1, arguments
        assert said in done.stderr, arguments
    assert versions(address) == {"pair": 5, "quick": 6}


def test_a_compacted_topic_says_that_it_has_no_history(broker: Broker) -> None:
    address = broker.url(compacted(broker))
    assert call("rules", address, "add", "pair", PAIR).exit_code == 0
    past = call("rules", address, "history")
    assert "add pair" in past.stdout
    assert "earlier versions may be missing" in past.stderr
    back = call("rules", address, "rollback", "1")
    assert back.exit_code == 1
    assert "does not keep all versions" in back.stderr


def test_the_command_runs_the_rules_of_a_topic_and_refuses_what_is_wrong_in_it(
    broker: Broker, tmp_path: Path
) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR, bad="SEQ(A a")
    write(tmp_path / "in.jsonl", (1, "A", 7))
    command = ["stream", broker.url(topic), "--local", "--once"]
    command += ["--from", str(tmp_path / "in.jsonl"), "--to", str(tmp_path / "out.jsonl")]
    first = call(*command)
    assert first.exit_code == 1
    assert "query bad:" in first.stderr
    put(broker, topic, bad=None)
    assert call(*command).exit_code == 0
    write(tmp_path / "in.jsonl", (2, "B", 7))
    put(broker, topic, quick=QUICK, bad="SEQ(A a")
    second = call(*command)
    assert second.exit_code == 0
    assert "rules version 5: bad refused" in second.stderr
    assert found(tmp_path) == [("pair", 1, "7"), ("quick", 4, "7")]


def test_a_change_that_was_sent_and_not_confirmed_says_so(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = broker.url(compacted(broker))
    assert call("rules", address, "add", "pair", PAIR).exit_code == 0
    now, send = TopicIds.now, RuleTopic._send
    problems = [ValueError("no Kafka broker answers"), KafkaException(KafkaError(KafkaError._TRANSPORT))]
    for number, problem in enumerate(problems):

        def fails(self: TopicIds, *_: float, problem: Exception = problem) -> dict[str, str]:
            raise problem

        def sent(self: RuleTopic, *what: Any, fails: Any = fails) -> None:
            send(self, *what)
            monkeypatch.setattr(TopicIds, "now", fails)

        monkeypatch.setattr(RuleTopic, "_send", sent)
        said = call("rules", address, "add", f"quick{number}", QUICK)
        monkeypatch.setattr(TopicIds, "now", now)
        assert said.exit_code == 1
        assert f"the change was sent to {address}, but it is not known whether it is there: " in said.stderr
        assert f"see `nestream rules {address} list`" in said.stderr
    assert sorted(versions(address)) == ["pair", "quick0", "quick1"]


def test_the_topic_of_the_rules_is_opened_once_also_at_a_first_start(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, opened = compacted(broker), []
    put(broker, topic, pair=PAIR)
    write(tmp_path / "in.jsonl", (1, "A", 7), (2, "B", 7))
    client = RuleTopic._client

    def counted(self: RuleTopic) -> Any:
        opened.append(self)
        return client(self)

    monkeypatch.setattr(RuleTopic, "_client", counted)
    command = ["stream", broker.url(topic), "--local", "--once"]
    done = call(*command, "--from", tmp_path / "in.jsonl", "--to", tmp_path / "out.jsonl")
    assert (done.exit_code, len(opened)) == (0, 1), done.stderr
    assert found(tmp_path) == [("pair", 1, "7")]


def test_the_id_of_a_topic_that_brokers_do_not_tell_any_more_stays_known(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR)
    known = RuleTopic(broker.url(topic)).read(None)
    monkeypatch.setattr(TopicIds, "now", lambda self, *_: dict.fromkeys(self._place.topics, ""))
    assert known.topic
    assert RuleTopic(broker.url(topic)).read(known).topic == known.topic
