"""`nestream stream` on topics: the example of docs/streaming.md, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.cli.commands import PROGRAM, ROOT, call, environment
from tests.kafka.broker import Broker

PAGE = (ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n### Kafka\n") : PAGE.index("\n#### Reading topics\n")]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)


def test_three_rules_watch_a_topic_as_the_page_says_and_a_second_run_repeats_nothing(
    broker: Broker, tmp_path: Path
) -> None:
    rules, command = blocks("sh")
    events, matches = blocks("json")
    broker.send(broker.topic(name="orders"), *events.splitlines())
    subprocess.run(["sh", "-euc", rules], cwd=tmp_path, check=True)
    command = command.replace("localhost:9092", broker.address).strip() + " --once"
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-euc", command],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith("6 events, 3 matches, 0 late, 0 malformed")
        assert [value.decode() for value in broker.values("matches")] == matches.splitlines()
    assert broker.values("aside") == []


def test_a_stream_to_kafka_needs_a_checkpoint(broker: Broker) -> None:
    done = call("stream", "SEQ(A a, B b) WITHIN 10", "--local", "--from", "-", "--to", broker.url("matches"))
    assert done.exit_code == 2
    assert "--checkpoint" in done.stderr
    assert "a stream to Kafka needs a folder" in done.stderr


def test_matches_of_a_topic_are_printed_as_they_come(broker: Broker) -> None:
    topic = broker.topic()
    process = subprocess.Popen(
        [str(PROGRAM), "stream", "SEQ(A a, B b) WITHIN 10", "--local", "--from", broker.url(topic)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    broker.send(topic, '{"ts": 1, "type": "A"}', '{"ts": 2, "type": "B"}')
    assert json.loads(process.stdout.readline())["b"]["ts"] == 2
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.startswith(b"2 events, 1 match, 0 late, 0 malformed")
