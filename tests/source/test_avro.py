"""Avro: container files with a schema of their own, and messages whose schema is named."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nestream.sink import SinkError, write_events
from nestream.source import SourceError, open_source, read_events, read_table
from nestream.source.avro_messages import AvroDecoder, AvroEvents

fastavro = pytest.importorskip("fastavro")
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
FIELDS: list[dict[str, Any]] = [
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "type", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    {"name": "id", "type": ["null", "long"], "default": None},
]


def schema(*more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Event", "fields": [*FIELDS, *more]}


def event(n: int, **more: Any) -> dict[str, Any]:
    return {"ts": START + timedelta(seconds=n), "type": "AB"[n % 2], "id": n, **more}


def written(path: Path, records: list[Any], avro: dict[str, Any], **options: Any) -> Path:
    with path.open("wb") as file:
        fastavro.writer(file, avro, records, **options)
    return path


def message(record: dict[str, Any], avro: dict[str, Any], id: int | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, avro, record)
    return (b"" if id is None else b"\0" + id.to_bytes(4, "big")) + out.getvalue()


def saved(path: Path, avro: dict[str, Any]) -> str:
    path.write_text(json.dumps(avro))
    return str(path)


def test_columns_of_a_file_have_the_types_of_its_schema(tmp_path: Path) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "float"}]}
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    more = {
        "day": ({"type": "int", "logicalType": "date"}, date(2026, 1, 5)),
        "price": (decimal, Decimal("1.50")),
        "tags": ({"type": "array", "items": "string"}, ["a", "b"]),
        "inner": (["null", inner], {"x": 0.5}),
        "named": ({"type": "map", "values": "int"}, {"k": 1}),
        "either": (["null", "string", "double"], 2.5),
        "chain": (node, {"next": {"next": None}}),
        "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime(2026, 1, 5)),
        "code": ({"type": "fixed", "name": "Code", "size": 2}, b"ab"),
        "whole": (["int", "long"], 2**40),
    }
    avro = schema(*({"name": name, "type": kind} for name, (kind, _) in more.items()))
    record = event(1, **{name: value for name, (_, value) in more.items()})
    table = read_table(written(tmp_path / "a.avro", [record], avro))
    types = {field.name: field.type for field in table.schema}
    assert types == {
        "ts": pa.timestamp("ms", "UTC"),
        "type": pa.string(),
        "id": pa.int64(),
        "day": pa.date32(),
        "price": pa.decimal128(8, 2),
        "tags": pa.list_(pa.string()),
        "inner": pa.struct([("x", pa.float32())]),
        "named": pa.map_(pa.string(), pa.int32()),
        "either": pa.string(),
        "chain": pa.string(),
        "local": pa.timestamp("us"),
        "code": pa.binary(2),
        "whole": pa.int64(),
    }
    [row] = table.to_pylist()
    assert row == record | {
        "named": [("k", 1)],
        "either": "2.5",
        "chain": '{"next": {"next": null}}',
    }


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_files_are_read_whatever_their_compression(tmp_path: Path, codec: str) -> None:
    path = written(tmp_path / "a.avro", [event(n) for n in range(1000)], schema(), codec=codec)
    assert read_table(path).column("id").to_pylist() == list(range(1000))


def test_a_time_beyond_the_years_of_python_is_read(tmp_path: Path) -> None:
    far = 400_000 * 365 * 86_400_000
    path = written(tmp_path / "a.avro", [{**event(0), "ts": far}], schema())
    assert read_table(path).column("ts").cast(pa.int64()).to_pylist() == [far]


def test_rows_without_time_or_type_are_dead_letters(tmp_path: Path) -> None:
    fields = [{"name": name, "type": ["null", kind]} for name, kind in (("ts", "string"), ("type", "string"))]
    avro = {"type": "record", "name": "Event", "fields": fields}
    moments = [("2026-01-05T08:00:00Z", "A"), (None, "A"), ("soon", "A"), ("2026-01-05T08:00:01Z", None)]
    path = written(tmp_path / "a.avro", [{"ts": ts, "type": type} for ts, type in moments], avro)
    reader = read_events(path)
    assert reader.read_all().column("ts").to_pylist() == [START]
    assert [(letter.line, letter.reason.split(" '")[0]) for letter in reader.examples] == [
        (2, "time is missing"),
        (3, "time"),
        (4, "type is missing"),
    ]


def test_a_damaged_block_is_one_dead_letter_and_the_others_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.avro", [event(n) for n in range(300)], schema(), sync_interval=1000)
    whole = path.read_bytes()
    mark = whole[-16:]
    places = [at for at in range(len(whole)) if whole.startswith(mark, at)]
    assert len(places) > 3
    rows = [len(read_table(path))]
    for damaged, said in (
        (_changed(whole, places[1] + 20, b"\xff" * 40), "cannot be read|are damaged"),
        (_changed(whole, places[2], b"no mark at all.."), "are damaged: it is not where it should end"),
        (whole[:-5], "are damaged: it is cut short"),
    ):
        path.write_bytes(damaged)
        reader = read_events(path)
        rows.append(reader.read_all().num_rows)
        [letter] = reader.examples
        assert any(part in letter.reason for part in said.split("|")), letter.reason
    assert rows[0] == 300
    assert all(100 < count < 300 for count in rows[1:])


def _changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"ts,type\n1,A\n", "is not an Avro container file"),
        (b"Obj\x01", "is damaged: .* in its header"),
        (b"", "is empty"),
    ],
)
def test_a_file_that_is_no_avro_is_refused_with_a_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.avro").write_bytes(content)
    with pytest.raises(SourceError, match=said):
        read_events(tmp_path / "a.avro")


def test_without_the_library_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "a.avro", [event(1)], schema())
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(SourceError, match=r"Avro needs the package fastavro(.|\n)*pip install"):
        read_events(path)


def test_a_stream_of_files_reads_avro_beside_other_formats(tmp_path: Path) -> None:
    written(tmp_path / "a.avro", [event(1)], schema())
    (tmp_path / "b.jsonl").write_text('{"ts": "2026-01-05T08:00:05Z", "type": "A", "id": 5}\n')
    source = open_source(str(tmp_path), once=True)
    found: list[int] = []
    while (batch := source.read(0.0)) is not None:
        found += batch.events.column("id").to_pylist()
    assert sorted(found) == [1, 5]


def test_avro_is_read_and_not_written(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="is not known"):
        write_events(pa.table({"ts": [1], "type": ["A"]}), str(tmp_path / "a.avro"))


# -- messages ----------------------------------------------------------------------------------------------


def test_messages_are_decoded_by_the_schema_and_what_it_does_not_fit_is_a_dead_letter(tmp_path: Path) -> None:
    events = AvroEvents("ts", "type", AvroDecoder.of([saved(tmp_path / "a.avsc", schema())]))
    fine = message(event(1), schema())
    batch = events.batch("topic t", [fine, fine[:-1], b"\x05", fine + b"x", fine, b""], 2)
    assert batch.events.column("id").to_pylist() == [1, 1]
    assert [letter.line for letter in batch.dead] == [3, 4, 5]
    assert [letter.reason for letter in batch.dead] == [
        "it is not Avro of the schema: it is cut short",
        "it is not Avro of the schema: it is cut short",
        "it is not Avro of the schema: 1 bytes are left over",
    ]


def test_messages_of_a_registry_are_decoded_by_the_schema_of_their_id(tmp_path: Path) -> None:
    gained = schema({"name": "note", "type": "string"})
    given = [f"7={saved(tmp_path / 'a.avsc', schema())}", f"8={saved(tmp_path / 'b.avsc', gained)}"]
    events = AvroEvents("ts", "type", AvroDecoder.of(given))
    values = [
        message(event(1), schema(), 7),
        message(event(2, note="new"), gained, 8),
        message(event(3), schema(), 9),
        message(event(4), schema()),
    ]
    batch = events.batch("topic t", values, 2)
    assert [(row["id"], row["note"]) for row in batch.events.to_pylist()] == [(1, None), (2, "new")]
    assert [letter.reason for letter in batch.dead] == [
        "it uses schema 9 of the registry. Add --schema 9=FILE.avsc",
        "it does not begin like the messages of a schema registry",
    ]


def test_a_registry_message_without_the_id_of_its_schema_says_which_one_to_name(tmp_path: Path) -> None:
    events = AvroEvents("ts", "type", AvroDecoder.of([saved(tmp_path / "a.avsc", schema())]))
    [letter] = events.batch("topic t", [message(event(1), schema(), 7)], 2).dead
    assert "it uses schema 7: write --schema 7=FILE.avsc" in letter.reason


def test_times_as_text_keep_the_form_of_the_first_and_it_is_saved(tmp_path: Path) -> None:
    avro = {
        "type": "record",
        "name": "Event",
        "fields": [{"name": name, "type": "string"} for name in ("ts", "type")],
    }
    decoder = AvroDecoder.of([saved(tmp_path / "a.avsc", avro)])
    events = AvroEvents("ts", "type", decoder)
    first = events.batch("t", [message({"ts": "2026-01-05T08:00:00Z", "type": "A"}, avro)], 2)
    assert first.events.column("ts").to_pylist() == [START]
    later = AvroEvents("ts", "type", decoder)
    later.seek(json.loads(json.dumps(events.position())))
    batch = later.batch("t", [message({"ts": "5", "type": "A"}, avro)], 2)
    assert (batch.events.num_rows, len(batch.dead)) == (0, 1)


def test_attributes_beside_a_message_are_columns_too(tmp_path: Path) -> None:
    events = AvroEvents("ts", "type", AvroDecoder.of([saved(tmp_path / "a.avsc", schema())]))
    events.add_moment("ts")
    added = [{"ts": "2026-01-05T09:00:00+00:00", "who": "me"}]
    [row] = events.batch("t", [message(event(1), schema())], 2, added).events.to_pylist()
    assert (row["ts"], row["who"]) == (START + timedelta(hours=1), "me")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not an Avro schema"),
        ('{"type": "nothing"}', "is not an Avro schema"),
        ('"string"', "is not the schema of a record"),
    ],
)
def test_a_schema_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.avsc").write_text(text)
    with pytest.raises(SourceError, match=said):
        AvroDecoder.of([str(tmp_path / "a.avsc")])


def test_schemas_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    one = saved(tmp_path / "a.avsc", schema())
    other = saved(tmp_path / "b.avsc", schema({"name": "x", "type": "string"}))
    third = saved(tmp_path / "c.avsc", schema({"name": "x", "type": "long"}))
    with pytest.raises(SourceError, match="several schemas"):
        AvroDecoder.of([one, other])
    with pytest.raises(SourceError, match="column 'x' is"):
        AvroDecoder.of([f"1={other}", f"2={third}"])


@pytest.mark.parametrize(
    ("place", "format", "schemas", "said"),
    [
        ("kafka://localhost:1/t", "avro", [], "without its schema"),
        ("kafka://localhost:1/t", "jsonl", ["a.avsc"], "Add --input-format avro"),
        ("kafka://localhost:1/t", "csv", [], "JSON or Avro"),
        ("-", "avro", [], "is read as JSON lines"),
        ("events.avro", "avro", ["a.avsc"], "an Avro file has its own"),
    ],
)
def test_formats_and_schemas_that_do_not_go_with_a_place_are_refused(
    place: str, format: str, schemas: list[str], said: str
) -> None:
    with pytest.raises(SourceError, match=said):
        open_source(place, format=format, schemas=schemas)
