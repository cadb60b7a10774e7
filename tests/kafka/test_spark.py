"""`nestream stream` on Spark from topics to a topic: the same matches, each once, also when it is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import nestream
from tests.cli.commands import PROGRAM, call, environment
from tests.kafka.broker import Broker, Follower, jars

pytestmark = pytest.mark.slow
CONNECTOR = Path(__file__).with_name("connector.xml")
QUERY = "SEQ(Order o, !(Payment p, p.id = o.id), Shipment s, s.id = o.id) WITHIN 1 hour RETURN o.id AS id"


def connector() -> str:
    return ",".join(str(path) for path in sorted(jars(CONNECTOR).glob("*.jar")))


def watching(broker: Broker, source: str, sink: str, folder: Path, *more: str) -> list[str]:
    """The command that watches a topic."""
    return [
        *(str(PROGRAM), "stream", QUERY, "--master", "local[2]", "--jars", connector()),
        *("--from", broker.url(source), "--to", broker.url(sink), "--checkpoint", str(folder / "checkpoint")),
        *more,
    ]


def run(arguments: list[str]) -> str:
    """Run it to its end."""
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def order(second: int, type: str, id: int) -> str:
    moment = f"2026-01-05T08:{second // 60:02}:{second % 60:02}Z"
    return json.dumps({"ts": moment, "type": type, "id": id})


def test_spark_reads_topics_and_sends_each_match_and_each_dead_letter_once(
    broker: Broker, tmp_path: Path
) -> None:
    source, sink, aside = broker.topic(2), broker.topic(), broker.topic()
    broker.send(source, order(0, "Order", 1), order(5, "Order", 2), "[1]", None, "nothing", partition=1)
    broker.send(source, order(1, "Payment", 1), partition=0)
    watch = watching(broker, source, sink, tmp_path, "--once", "--late", broker.url(aside))
    assert run(watch).startswith("6 events, 0 matches, 0 late, 3 dead letters")
    broker.send(source, order(60, "Shipment", 1), order(61, "Shipment", 2), order(120, "Order", 3))
    assert run(watch).startswith("9 events, 1 match, 0 late, 3 dead letters")
    [match] = broker.read(sink)
    assert json.loads(match.value())["id"] == 2
    where = f"topic {source}, partition 1, offset"
    letters = sorted(json.loads(value)["reason"] for value in broker.values(aside))
    assert letters == [
        f"{where} 2: expected a JSON object, found an array",
        f"{where} 3: the message has no value",
        f"{where} 4: invalid JSON at column 1: expecting value",
    ]


def random_orders(seed: int, number: int) -> list[dict[str, object]]:
    """Orders, payments and shipments, a second apart, out of order by a few seconds."""
    randomness = random.Random(seed)
    events: list[dict[str, object]] = []
    for n in range(number):
        second = n + randomness.randrange(5)
        hour, rest = divmod(second, 3600)
        events.append(
            {
                "ts": f"2026-01-{5 + hour // 24:02}T{hour % 24:02}:{rest // 60:02}:{rest % 60:02}Z",
                "type": randomness.choice(["Order", "Payment", "Shipment"]),
                "id": randomness.randrange(40),
                "n": n,
            }
        )
    return events


def test_twenty_kills_of_the_driver_lose_nothing_and_repeat_nothing(broker: Broker, tmp_path: Path) -> None:
    kills, share = 20, 400
    events = random_orders(1, share * (kills + 1))
    events.append({"ts": "2026-02-01T00:00:00Z", "type": "Order", "id": 0, "n": len(events)})
    query = QUERY.replace("RETURN", "RETURN o.n AS first, s.n AS last,")
    source, sink = broker.topic(), broker.topic()
    randomness = random.Random(1)
    watch = watching(broker, source, sink, tmp_path)
    watch[2] = query
    for number in range(kills + 1):
        some = events[number * share : (number + 1) * share]
        if number == 0:  # the first events decide the columns
            broker.send(source, *map(json.dumps, some[:10]))
            some = some[10:]
        process = start(watch)
        broker.send(source, *map(json.dumps, some))
        if randomness.random() < 0.7:  # the others are killed while they begin
            wait_for_commit(process, tmp_path)
        if number < kills:
            time.sleep(randomness.random() * 2)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    broker.send(source, json.dumps(events[-1]))
    timed = [{**event, "ts": datetime.fromisoformat(str(event["ts"]))} for event in events]
    found = nestream.query(query).match(timed, strategy="auto").to_pylist()
    wanted = sorted((match["first"], match["last"]) for match in found)
    follower = Follower(broker.address, sink)
    wait_for(process, lambda: follower.count() >= len(wanted))
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 0
    rows = [json.loads(value) for value in broker.values(sink)]
    assert sorted((row["first"], row["last"]) for row in rows) == wanted
    print(f"{kills} drivers were killed: {len(wanted):,} matches, each once")


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        arguments,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def commits(folder: Path) -> set[str]:
    """The micro-batches that were committed last."""
    return {path.name for path in (folder / "checkpoint" / "nestream").glob("commit-*")}


def wait_for(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    """Wait for a state; a stream that ends by itself has failed."""
    end = time.monotonic() + 600
    while not reached():
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read().decode())
        assert time.monotonic() < end, "the stream does not get there"
        time.sleep(0.05)


def wait_for_commit(process: subprocess.Popen[bytes], folder: Path) -> None:
    before = commits(folder)
    wait_for(process, lambda: bool(commits(folder) - before))


def test_without_the_connector_the_message_says_how_to_get_it(tmp_path: Path) -> None:
    places = ["--from", "kafka://127.0.0.1:1/orders", "--to", str(tmp_path / "out")]
    done = subprocess.run(
        [str(PROGRAM), "stream", QUERY, "--master", "local[1]", *places],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "this Spark has no connector to Kafka" in done.stderr
    assert "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0," in done.stderr


def test_jars_are_for_spark() -> None:
    done = call("stream", QUERY, "--local", "--jars", "x.jar")
    assert done.exit_code == 2
    assert "it applies to Spark" in done.stderr


RULES = {
    "unpaid": "SEQ(Order o, !(Payment p, p.id = o.id)) WITHIN 10 minutes RETURN o.id AS id",
    "paid-twice": "SEQ(Payment a, Payment b, a.id = b.id) WITHIN 1 hour RETURN a.id AS id",
    "sent-unpaid": "SEQ(Order o, !(Payment p, p.id = o.id), Shipment s, s.id = o.id) WITHIN 1 day "
    "RETURN o.id AS id",
}


def test_rules_of_a_topic_change_while_spark_runs_and_after_a_kill_every_match_is_there_once(
    broker: Broker, tmp_path: Path
) -> None:
    source, sink, rules = broker.topic(), broker.topic(), broker.url("spark-rules")
    for name, text in RULES.items():
        assert call("rules", rules, "add", name, text).exit_code == 0
    watch = watching(broker, source, sink, tmp_path, "--watermark", "5 seconds")
    watch[2] = rules
    broker.send(source, order(0, "Order", 1), order(5, "Order", 2), order(60, "Payment", 1))
    process = start(watch)
    broker.send(source, order(62, "Payment", 1), order(120, "Shipment", 2), order(900, "Order", 3))
    follower = Follower(broker.address, sink)
    wait_for(process, lambda: follower.count() == 3)
    changed = RULES["unpaid"].replace("10 minutes", "5 minutes")
    assert call("rules", rules, "replace", "unpaid", changed).stdout == "version 4: replace unpaid\n"
    wait_for(process, lambda: told(tmp_path)["version"] == 4)
    broker.send(source, order(1200, "Order", 4), order(1560, "Order", 5))
    wait_for(process, lambda: follower.count() == 5)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process = start(watch)
    broker.send(source, order(2400, "Order", 6))
    wait_for(process, lambda: follower.count() == 6)
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 0
    rows = [json.loads(value) for value in broker.values(sink)]
    assert sorted((row["query"], row["version"], row["values"]["id"]) for row in rows) == [
        ("paid-twice", 2, "1"),
        ("sent-unpaid", 3, "2"),
        ("unpaid", 1, "2"),
        ("unpaid", 4, "3"),
        ("unpaid", 4, "4"),
        ("unpaid", 4, "5"),
    ]


def told(folder: Path) -> dict[str, object]:
    """What the stream says of itself."""
    found: dict[str, object] = json.loads((folder / "checkpoint" / "progress.json").read_text())
    return found
