"""The console over a topic of matches."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from tests.console.test_export import exported, row
from tests.kafka.broker import Broker


def test_the_matches_of_a_topic_are_exported(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    for number in range(30):
        broker.send(topic, json.dumps(row(number)), partition=number % 2)
    table = pq.read_table(exported(broker.url(topic), tmp_path, "parquet"))
    assert sorted(table["a.id"].to_pylist()) == list(range(30))
