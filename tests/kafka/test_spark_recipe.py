"""The recipe of docs/guides/spark-streams.md: PySpark's own source and sink of Kafka around a query."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.cli.commands import ROOT
from tests.kafka.broker import Broker, jars

PAGE = (ROOT / "docs" / "guides" / "spark-streams.md").read_text(encoding="utf-8")
START = """
from nestream.query import spark_session
spark = spark_session("local[2]", {settings!r})
"""
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "type", "type": "string"},
        {"name": "id", "type": "long"},
    ],
}
END = """
running.processAllAvailable()
running.stop()
spark.stop()
"""


def recipe() -> str:
    """The code of the section on Kafka."""
    section = PAGE[PAGE.index("\n### From and to Kafka\n") :]
    [code] = re.findall(
        r"^```python[^\n]*\n(.*?)^```$", section[: section.index("\n## ", 5)], re.DOTALL | re.MULTILINE
    )
    return str(code)


@pytest.mark.slow
def test_the_recipe_reads_avro_with_the_function_of_spark(broker: Broker, tmp_path: Path) -> None:
    settings = settings_with("connector.xml", "spark_avro.xml")
    names = {name: broker.topic(name=f"avro-{name}") for name in ("orders", "matches", "aside")}
    for minute, type, id in ((0, "Order", 1), (1, "Order", 2), (2, "Shipment", 2), (59, "Order", 3)):
        out = io.BytesIO()
        moment = datetime(2026, 1, 5, 8, minute, tzinfo=UTC)
        fastavro.schemaless_writer(out, SCHEMA, {"ts": moment, "type": type, "id": id})
        broker.send(names["orders"], out.getvalue())
    broker.send(names["orders"], "no event")
    code = recipe().replace("localhost:9092", broker.address).replace("checkpoints/", f"{tmp_path}/")
    read = 'F.from_json(text, "ts timestamp, type string, id long")'
    assert read in code
    code = code.replace(read, f'from_avro("value", {json.dumps(SCHEMA)!r}, {{"mode": "PERMISSIVE"}})')
    for name, topic in names.items():
        code = code.replace(f'"{name}"', f'"{topic}"')
    start = f"from pyspark.sql.avro.functions import from_avro\n{START.format(settings=settings)}"
    done = subprocess.run(
        [sys.executable, "-c", start + code + END], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert [json.loads(value)["id"] for value in broker.values(names["matches"])] == [2]
    [letter] = [json.loads(value) for value in broker.values(names["aside"])]
    assert letter["reason"] == "no time: `ts` is NULL"


def settings_with(*poms: str) -> dict[str, str]:
    """The settings of a session with the jars of some pom.xml files."""
    places = [jars(Path(__file__).with_name(pom)) for pom in poms]
    paths = ",".join(str(path) for place in places for path in sorted(place.glob("*.jar")))
    return {"spark.jars": paths, "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}


@pytest.mark.slow
def test_the_recipe_finds_matches_and_dead_letters_of_a_topic_and_gives_a_match_the_same_key_each_time(
    broker: Broker, tmp_path: Path
) -> None:
    settings = settings_with("connector.xml")
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
