"""The recipe of docs/spark-streaming.md: PySpark's own source and sink of Kafka around a query."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import ROOT
from tests.kafka.broker import Broker, jars

PAGE = (ROOT / "docs" / "spark-streaming.md").read_text(encoding="utf-8")
START = """
from nestream.query import spark_session
spark = spark_session("local[2]", {settings!r})
"""
END = """
running.processAllAvailable()
running.stop()
spark.stop()
"""


def recipe() -> str:
    """The code of the section on Kafka."""
    section = PAGE[PAGE.index("\n### From and to Kafka\n") :]
    [code] = re.findall(
        r"^```python\n(.*?)^```$", section[: section.index("\n## ", 5)], re.DOTALL | re.MULTILINE
    )
    return str(code)


@pytest.mark.slow
def test_the_recipe_finds_matches_and_dead_letters_of_a_topic_and_gives_a_match_the_same_key_each_time(
    broker: Broker, tmp_path: Path
) -> None:
    paths = ",".join(
        str(path) for path in sorted(jars(Path(__file__).with_name("connector.xml")).glob("*.jar"))
    )
    settings = {"spark.jars": paths, "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}
    names = {name: broker.topic(name=f"recipe-{name}") for name in ("orders", "matches", "aside")}
    for minute, type, id in ((0, "Order", 1), (1, "Order", 2), (2, "Shipment", 2), (59, "Order", 3)):
        event = {"ts": f"2026-01-05T08:{minute:02}:00Z", "type": type, "id": id}
        broker.send(names["orders"], json.dumps(event))
    broker.send(names["orders"], "no event")
    code = recipe().replace("localhost:9092", broker.address)
    for name, topic in names.items():
        code = code.replace(f'"{name}"', f'"{topic}"')
    for run in range(2):  # another checkpoint: the same matches again
        program = START.format(settings=settings) + code.replace("checkpoints/", f"{tmp_path}/{run}/") + END
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    found = broker.read(names["matches"])
    assert [json.loads(message.value())["id"] for message in found] == [2, 2]
    assert len({message.key() for message in found}) == 1
    letters = [json.loads(value) for value in broker.values(names["aside"])]
    assert [(letter["reason"], letter["raw"]) for letter in letters] == [
        ("no time: `ts` is NULL", "no event")
    ] * 2
