"""Messages of Avro in topics, by a schema or by those of a registry, in this process and on Spark."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.cli.commands import program
from tests.kafka.broker import Broker
from tests.kafka.test_spark import connector

QUERY = "SEQ(A a, B b, a.id = b.id) WITHIN 10 minutes RETURN a.id AS id"
FIELDS: list[dict[str, Any]] = [
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "type", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    {"name": "id", "type": ["null", "long"]},
]
OLD = {"type": "record", "name": "Event", "fields": FIELDS}
NEW = {"type": "record", "name": "Event", "fields": [*FIELDS, {"name": "note", "type": "string"}]}
START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def message(minute: int, type: str, id: int | None, schema: int | None = None, **more: Any) -> bytes:
    """An event as Avro, after the header of a registry where there is a schema's id."""
    out = io.BytesIO()
    event = {"ts": START + timedelta(minutes=minute), "type": type, "id": id, **more}
    fastavro.schemaless_writer(out, NEW if more else OLD, event)
    return (b"" if schema is None else b"\0" + schema.to_bytes(4, "big")) + out.getvalue()


def schemas(folder: Path) -> tuple[str, str]:
    """The files of both schemas."""
    for name, schema in (("old", OLD), ("new", NEW)):
        (folder / f"{name}.avsc").write_text(json.dumps(schema))
    return str(folder / "old.avsc"), str(folder / "new.avsc")


def stream(broker: Broker, source: str, folder: Path, *more: str) -> str:
    """Run a stream over what is there; what it says at its end."""
    done = program(
        *("stream", QUERY, "--from", broker.url(source), "--to", str(folder / "out"), "--once"),
        *("--format", "json", "--input-format", "avro", "--late", str(folder / "late"), *more),
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def rows(folder: Path) -> list[Any]:
    """The rows of all files of JSON."""
    return [json.loads(line) for file in sorted(folder.glob("*.json*")) for line in file.open()]


WAYS = [["--local"], pytest.param(["--master", "local[2]"], marks=pytest.mark.slow)]


@pytest.mark.parametrize("way", WAYS, ids=["local", "spark"])
def test_matches_of_avro_messages_are_found_and_malformed_ones_are_counted(
    broker: Broker, tmp_path: Path, way: list[str]
) -> None:
    source, (old, _) = broker.topic(), schemas(tmp_path)
    fine = message(1, "B", 7)
    broker.send(source, message(0, "A", 7), fine, fine[:-1], fine + b"x", message(2, "A", 1, 5), None)
    more = way if way == ["--local"] else [*way, "--jars", connector()]
    said = stream(broker, source, tmp_path, *more, "--schema", old, "--watermark", "0 seconds")
    assert said.startswith("6 events, 1 match, 0 late, 4 dead letters")
    assert [row["id"] for row in rows(tmp_path / "out")] == [7]
    where = f"topic {source}, partition 0, offset"
    reasons = sorted(row["reason"] for row in rows(tmp_path / "late"))
    assert [reason.partition(": ")[0] for reason in reasons] == [f"{where} {n}" for n in (2, 3, 4, 5)]
    assert "1 bytes are left over" in reasons[1]
    assert "write --schema 5=FILE.avsc" in reasons[2]
    assert reasons[3].endswith("the message has no value")


@pytest.mark.parametrize("way", WAYS, ids=["local", "spark"])
def test_a_schema_of_a_registry_that_gains_a_column_does_not_stop_a_stream(
    broker: Broker, tmp_path: Path, way: list[str]
) -> None:
    source, (old, new) = broker.topic(), schemas(tmp_path)
    more = way if way == ["--local"] else [*way, "--jars", connector()]
    more = [*more, "--watermark", "0 seconds"]
    broker.send(source, message(0, "A", 7, 3))
    assert stream(broker, source, tmp_path, *more, "--schema", f"3={old}").startswith("1 event, 0 matches")
    broker.send(source, message(1, "B", 7, 4, note="new"), message(2, "B", 7, 3), message(3, "B", 7, 9))
    said = stream(broker, source, tmp_path, *more, "--schema", f"3={old}", "--schema", f"4={new}")
    assert said.startswith("4 events, 2 matches, 0 late, 1 dead letter")
    [letter] = rows(tmp_path / "late")
    assert letter["reason"].endswith("it uses schema 9 of the registry. Add --schema 9=FILE.avsc")
