"""`nestream stream` on topics: the example of docs/guides/kafka.md, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import PROGRAM, ROOT, call, environment
from tests.kafka.broker import Broker, Follower

PAGE = (ROOT / "docs" / "guides" / "kafka.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n## Watch a topic\n") : PAGE.index("\n## Reading topics\n")]


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
        assert done.stderr.startswith("6 events, 3 matches, 0 late, 0 dead letters")
        assert [value.decode() for value in broker.values("matches")] == matches.splitlines()
    assert broker.values("aside") == []


@pytest.mark.slow
def test_a_rule_changes_while_events_flow_and_after_a_kill_every_match_is_there_once(
    broker: Broker, tmp_path: Path
) -> None:
    rules, command = blocks("sh")
    events, _ = blocks("json")
    *_, change = re.findall(r"^\$ (nestream .*)$", SECTION, re.MULTILINE)
    names = {name: broker.topic(name=f"live-{name}") for name in ("orders", "matches", "aside")}
    command = command.replace("localhost:9092/", f"{broker.address}/live-").strip()
    subprocess.run(["sh", "-euc", rules], cwd=tmp_path, check=True)
    follower = Follower(broker.address, names["matches"])

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sh", "-euc", f"exec {command}"], cwd=tmp_path, env=environment())

    process = start()
    broker.send(names["orders"], *events.splitlines())
    wait_for(lambda: follower.count() == 3)
    subprocess.run(["sh", "-euc", change], cwd=tmp_path, env=environment(), check=True)
    wait_for(lambda: told(tmp_path)["version"] == 2)
    broker.send(names["orders"], ordered(20, 4), ordered(26, 5))
    wait_for(lambda: follower.count() == 5)
    process.kill()
    process.wait()
    process = start()
    broker.send(names["orders"], ordered(40, 6))
    wait_for(lambda: follower.count() == 6)
    process.terminate()
    assert process.wait(60) == 0
    follower.close()
    found = [json.loads(value) for value in broker.values(names["matches"])]
    assert [(row["query"], row["version"], row["values"]["id"]) for row in found] == [
        ("paid-twice", 1, "1"),
        ("sent-unpaid", 1, "2"),
        ("unpaid", 1, "2"),
        ("unpaid", 2, "3"),
        ("unpaid", 2, "4"),
        ("unpaid", 2, "5"),
    ]
    assert broker.values(names["aside"]) == []


def ordered(minute: int, id: int) -> str:
    return json.dumps({"ts": f"2026-01-05T08:{minute:02}:00Z", "type": "Order", "id": id})


def told(folder: Path) -> Any:
    """What the stream says of itself."""
    return json.loads((folder / "watch" / "progress.json").read_text())


def wait_for(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < end, "the stream does not get there"
        time.sleep(0.05)


def test_a_stream_to_kafka_needs_a_checkpoint(broker: Broker) -> None:
    done = call("stream", "SEQ(A a, B b) WITHIN 10", "--local", "--from", "-", "--to", broker.url("matches"))
    assert done.exit_code == 2
    assert "--checkpoint" in done.stderr
    assert "a stream to Kafka needs a folder" in done.stderr


@pytest.mark.parametrize(
    "options", [["--local"], ["--to", "kafka://h/m", "--checkpoint", "c"]], ids=["local", "spark"]
)
def test_messages_cannot_be_read_as_another_format(options: list[str]) -> None:
    done = call(
        "stream", "SEQ(A a, B b) WITHIN 10 s", "--from", "kafka://h/o", "--input-format", "csv", *options
    )
    assert done.exit_code == 1
    assert "kafka://h/o cannot be read as csv: messages are JSON or Avro" in done.stderr


@pytest.mark.parametrize("local", [["--local"], []], ids=["local", "spark"])
@pytest.mark.parametrize("option", ["--to", "--late"])
@pytest.mark.parametrize("what", ["events", "rules"])
def test_a_stream_does_not_write_to_the_topic_of_its_events_or_its_rules(
    local: list[str], option: str, what: str
) -> None:
    places = {"--from": "kafka://h/events", "--to": "kafka://h/m", "--late": "kafka://h/m"}
    places[option] = f"kafka://h:9092/{what}"
    given = [text for pair in places.items() for text in pair]
    done = call("stream", "kafka://h/rules", *local, "--checkpoint", "c", *given)
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert f"{option}: 'kafka://h:9092/{what}' is" in said
    assert f"where messages are read as {what}" in said


@pytest.mark.parametrize("local", [["--local"], []], ids=["local", "spark"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--to", "kafka://h/m", "--checkpoint", "c", "--format", "parquet"],
            "messages to Kafka are json",
        ),
        (["--from", "kafka://h/o", "--files", "3"], "--files: it applies to files"),
    ],
    ids=["format", "files"],
)
def test_options_for_files_are_refused_for_topics(local: list[str], options: list[str], said: str) -> None:
    done = call("stream", "SEQ(A a, B b) WITHIN 10 s", *local, *options)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


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
    assert said.startswith(b"2 events, 1 match, 0 late, 0 dead letters")
