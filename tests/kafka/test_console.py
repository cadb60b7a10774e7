"""The console over topics of matches and of rules."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from nestream.console import Job
from nestream.console.rules import JobRules
from tests.console.pipeline import wait
from tests.console.test_export import exported, row
from tests.kafka.broker import Broker
from tests.kafka.test_rules import PAIR, QUICK, compacted, put


def test_the_matches_of_a_topic_are_exported(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    for number in range(30):
        broker.send(topic, json.dumps(row(number)), partition=number % 2)
    table = pq.read_table(exported(broker.url(topic), tmp_path, "parquet"))
    assert sorted(table["a.id"].to_pylist()) == list(range(30))


def test_a_rule_that_is_deployed_to_a_topic_is_shown_at_once(broker: Broker, tmp_path: Path) -> None:
    topic = compacted(broker)
    put(broker, topic, pair=PAIR)
    (tmp_path / "job.json").write_text(json.dumps({"rules": broker.url(topic), "live_rules": True}))
    rules = JobRules(Job.read(tmp_path))
    wait(lambda: rules.look() and rules.are_known, 60)
    assert rules.texts() == {"pair": PAIR}
    rules.look()  # a reading begins, which may not know of the change
    assert rules.deploy("pair", QUICK, PAIR, {}).version == 2
    assert rules.texts() == {"pair": QUICK}
    assert rules.look() is True
    for _ in range(20):
        assert rules.texts() == {"pair": QUICK}
        assert rules.look() is False
    assert [one.version for one in rules.seen.versions] == [1, 2]
    rules.close()
