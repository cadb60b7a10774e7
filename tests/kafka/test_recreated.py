"""Topics that are deleted, or made anew under the same name: of events and of rules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import nestream
from nestream.console import Job
from nestream.console.rules import JobRules
from nestream.job import LiveRules, RulesError, RuleSet, rule_topic
from nestream.job.rule_topic import RuleTopic
from tests.console.pipeline import wait
from tests.job.test_jobs import write
from tests.kafka.broker import Broker
from tests.kafka.test_rules import PAIR, QUICK, compacted, put
from tests.kafka.test_rules import run as run_rules

COMPACTED = {"cleanup_policy": "compact"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often."""
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
            assert problem in (live.problem or "")
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
