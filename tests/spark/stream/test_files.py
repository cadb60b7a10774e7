"""Each file of a stream is read by its own header; rows that cannot be read are set aside with a reason."""

from __future__ import annotations

import gzip
import io
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

import nestream
from nestream.runtime.spark.columns import RAW, UNREAD
from nestream.runtime.spark.stream_columns import LookedAt, common_columns
from nestream.runtime.spark.stream_files import RunningStream
from nestream.runtime.spark.stream_source import Files
from tests.spark.stream.streams import wait_for_end

COLUMNS = pa.schema([("ts", pa.timestamp("us")), ("type", pa.string()), ("id", pa.int64())])
MORNING = datetime(2026, 1, 5, 8)
WITH_ID, WITHOUT_ID = "ts,type,id\n2026-01-05,A,1\n", "ts,type\n2026-01-05,A\n"


def written(folder: Path, name: str, content: str | bytes | pa.Table) -> Path:
    """A file with the content, in the format that the name says."""
    path = folder / name
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, columns: pa.Schema = COLUMNS) -> tuple[list[tuple[Any, ...]], list[tuple[str, str]]]:
    """The events of a file, and the reasons and texts of the rows that are none, as a worker gives them."""
    files = Files.of(str(path.parent), None, "ts", "type")
    listed = pa.RecordBatch.from_pydict({"path": [f"file:{path}"]})
    rows = pa.Table.from_batches(list(files.reading(columns)(iter([listed]))) or [], _carried(columns))
    names = [f"c{n}" for n in range(len(columns))]
    events = [
        tuple(row[name] for name in names)
        for row in rows.to_pylist()
        if row[UNREAD] is None and row[RAW] is None
    ]
    unread = [(row[UNREAD], row[RAW]) for row in rows.to_pylist() if row[UNREAD] is not None]
    return events, [(reason.removeprefix(str(path.parent) + "/"), raw) for reason, raw in unread]


def _carried(columns: pa.Schema) -> pa.Schema:
    names = [pa.field(f"c{n}", field.type) for n, field in enumerate(columns)]
    return pa.schema([*names, pa.field(UNREAD, pa.string()), pa.field(RAW, pa.string())])


def looked_at(folder: Path) -> pa.Schema:
    """The columns that a stream of the files of a folder has."""
    files = Files.of(str(folder), None, "ts", "type")
    paths = sorted(f"file:{path}" for path in folder.iterdir())
    listed = pa.RecordBatch.from_pydict({"path": paths})
    rows = [row for batch in files.looking()(iter([listed])) for row in batch.to_pylist()]
    return common_columns([LookedAt.of(row) for row in rows], str(folder), files.format, "ts")


def test_a_csv_file_with_its_columns_in_another_order_is_read_by_its_own_header(tmp_path: Path) -> None:
    path = written(tmp_path, "b.csv", "id,type,ts\n7,A,2026-01-05T08:00:00\n")
    assert read(path) == ([(MORNING, "A", 7)], [])


def test_values_that_do_not_parse_are_malformed_and_not_null(tmp_path: Path) -> None:
    rows = [
        "2026-01-05T08:00:00,A,x",
        "5,A,1",
        "2026-01-05T08:00:00Z,A,1",
        ",A,1",
        "2026-01-05T08:00:00,,1",
        "2026-01-05T08:00:00,A,1,2",
        "2026-01-05T08:00:00,A,",
    ]
    events, unread = read(written(tmp_path, "b.csv", "\n".join(["ts,type,id", *rows])))
    assert events == [(MORNING, "A", None)]
    assert sorted(unread, key=lambda row: row[0]) == [
        ("b.csv, line 2: id 'x' is not of type int64", rows[0]),
        ("b.csv, line 3: time '5' is not like the others: they are timestamps without zone", rows[1]),
        (
            f"b.csv, line 4: time '{rows[2][:20]}' is not like the others: they are timestamps without zone",
            rows[2],
        ),
        ("b.csv, line 5: time is missing", rows[3]),
        ("b.csv, line 6: type is missing", rows[4]),
        ("b.csv, line 7: expected 3 fields, found 4", rows[5]),
    ]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("ts,type", "the file has no column 'id'; the columns are: ts, type, id"),
        ("ts,type,idd", "the file has no column 'id'; the columns are: ts, type, id"),
        ("ts,type,id,id", "the file has more than one column 'id'. Rename one of them"),
        ("when,type,id", "the file has no time column 'ts'"),
    ],
)
def test_the_rows_of_a_file_that_lacks_a_column_are_malformed_each(
    tmp_path: Path, header: str, reason: str
) -> None:
    events, unread = read(written(tmp_path, "c.csv", f"{header}\nany,A,1\nmore,B,2\n"))
    assert events == []
    assert [raw for _, raw in unread] == ["any,A,1", "more,B,2"]
    assert [where.split(": ")[0] for where, _ in unread] == ["c.csv, line 2", "c.csv, line 3"]
    assert all(reason in said for said, _ in unread)


def test_files_without_rows_have_no_events_and_nothing_malformed(tmp_path: Path) -> None:
    for name, content in {"a.csv": "", "b.csv": "ts,type,id\n", "c.jsonl": "", "d.jsonl": "\n\n"}.items():
        folder = tmp_path / name
        folder.mkdir()
        assert read(written(folder, name, content)) == ([], [])


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    line = '{"ts": "2026-01-05T08:00:00", "type": "A", "id": 1}\n'
    assert read(written(tmp_path, "a.csv", "\ufeffts,type,id\n2026-01-05 08:00,A,1\n"))[0] == [
        (MORNING, "A", 1)
    ]
    (tmp_path / "json").mkdir()
    assert read(written(tmp_path / "json", "b.jsonl", "\ufeff" + line))[0] == [(MORNING, "A", 1)]


def test_a_file_that_is_no_text_at_all_is_one_dead_letter(tmp_path: Path) -> None:
    _, unread = read(written(tmp_path, "a.csv", "ts,type,id\n".encode("utf-16")))
    assert len(unread) == 1
    assert unread[0][0].startswith("a.csv")
    assert "the file is UTF-16 text" in unread[0][0]
    (tmp_path / "p").mkdir()
    _, unread = read(written(tmp_path / "p", "a.parquet", "PAR1 no"))
    assert "not a Parquet file" in unread[0][0]


def test_compressed_files_are_read_and_files_of_other_suffixes_are_not(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv.gz", gzip.compress(b"ts,type,id\n2026-01-05T08:00:00,A,1\n"))
    assert read(path) == ([(MORNING, "A", 1)], [])
    assert read(written(tmp_path, "README.md", "no events\n")) == ([], [])


def test_json_lines_with_misfitting_members_are_malformed_and_absent_ones_are_null(tmp_path: Path) -> None:
    fine = {"ts": "2026-01-05T08:00:00", "type": "A", "id": 1}
    lines: list[Any] = [
        fine,
        {**fine, "id": 1.5},
        {**fine, "id": True},
        {**fine, "id": "one"},
        {"type": "A", "ts": fine["ts"]},
        {**fine, "ts": 5},
        {"id": 1},
        [1],
    ]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, lines)) + "\nno json\n")
    events, unread = read(path)
    assert events == [(MORNING, "A", 1), (MORNING, "A", None)]
    wrong = sorted(int(reason.split("line ")[1].split(":")[0]) for reason, _ in unread)
    assert wrong == [2, 3, 4, 6, 7, 8, 9]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "avro"])
def test_a_column_that_the_stream_does_not_know_is_left_out_of_its_events(
    tmp_path: Path, suffix: str
) -> None:
    moment = "2026-01-05T08:00:00"
    content: str | bytes | pa.Table
    match suffix:
        case "csv":
            content = f"more,ts,type,id\nx,{moment},A,7\n"
        case "jsonl":
            content = json.dumps({"more": {"x": 1}, "ts": moment, "type": "A", "id": 7}) + "\n"
        case "parquet":
            content = pa.table({"more": ["x"], "ts": [MORNING], "type": ["A"], "id": [7]})
        case _:
            content = avro(
                {"more": "string", "ts": {"type": "long", "logicalType": "local-timestamp-micros"}}
                | {"type": "string", "id": "long"},
                {"more": "x", "ts": MORNING, "type": "A", "id": 7},
            )
    assert read(written(tmp_path, f"a.{suffix}", content)) == ([(MORNING, "A", 7)], [])


def avro(types: dict[str, Any], *records: dict[str, Any]) -> bytes:
    """A container file of Avro."""
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "Event", "fields": fields}, records)
    return out.getvalue()


def test_what_cannot_be_read_of_an_avro_file_is_a_dead_letter_with_its_place(tmp_path: Path) -> None:
    moment = {"type": "long", "logicalType": "local-timestamp-micros"}
    whole = avro({"ts": moment, "type": "string", "id": "long"}, {"ts": MORNING, "type": "A", "id": 7})
    events, unread = read(written(tmp_path, "a.avro", whole + b"\x02\x02"))
    assert events == [(MORNING, "A", 7)]
    begin, end = len(whole), len(whole) + 1
    assert unread == [(f"a.avro: bytes {begin:,} to {end:,} of the file are damaged: it is cut short", "")]
    [(reason, _)] = read(written(tmp_path, "b.avro", b"no Avro"))[1]
    assert "the file is not an Avro container file" in reason


def test_parquet_files_are_read_by_name_and_type(tmp_path: Path) -> None:
    right = {"id": pa.array([1], pa.int32()), "type": ["A"], "ts": pa.array([MORNING], pa.timestamp("ms"))}
    assert read(written(tmp_path, "a.parquet", pa.table(right))) == ([(MORNING, "A", 1)], [])
    for column, values, reason in (
        ("id", pa.array(["1"]), "column 'id' is string, which cannot be read as int64"),
        ("ts", pa.array([5]), "column 'ts' is int64, which cannot be read as timestamp[us]"),
        ("id", pa.array([True]), "column 'id' is bool, which cannot be read as int64"),
        ("ts", pa.array([MORNING], pa.timestamp("us", "UTC")), "column 'ts' is timestamp[us, tz=UTC], which"),
    ):
        events, unread = read(written(tmp_path, "b.parquet", pa.table({**right, column: values})))
        assert events == []
        assert len(unread) == 1
        assert reason in unread[0][0]
        assert json.loads(unread[0][1])["type"] == "A"
    partly = {**right, "id": pa.array([1.5, 2.0]), "type": ["A", "B"], "ts": pa.array([MORNING] * 2)}
    ints = pa.schema([("ts", pa.timestamp("us")), ("type", pa.string()), ("id", pa.float64())])
    assert len(read(written(tmp_path, "c.parquet", pa.table(partly)), ints)[0]) == 2


def test_times_finer_than_spark_keeps_are_malformed(tmp_path: Path) -> None:
    events, unread = read(
        written(
            tmp_path,
            "a.csv",
            "ts,type,id\n2026-01-05T08:00:00.000000000,A,1\n2026-01-05T08:00:00.000000001,A,1\n",
        )
    )
    assert len(events) + len(unread) == 2
    assert any("000000001" in raw for _, raw in unread)


def test_the_types_of_a_stream_hold_the_values_of_all_the_files_there(tmp_path: Path) -> None:
    written(tmp_path, "a.csv", "ts,type,x,y,z\n2026-01-05T08:00:00,A,1,,1\n")
    written(tmp_path, "b.csv", "z,y,x,type,ts\ntwo,2,1.5,B,2026-01-05T08:00:00\n")
    written(tmp_path, "c.csv", "ts,type,x,y,z\n")
    written(tmp_path, "d.csv", "")
    assert looked_at(tmp_path) == pa.schema(
        [
            ("ts", pa.timestamp("us")),
            ("type", pa.string()),
            ("x", pa.float64()),
            ("y", pa.int64()),
            ("z", pa.string()),
        ]
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": WITH_ID, "b.csv": WITHOUT_ID}, r"b\.csv has no column `id`"),
        ({"a.csv": WITHOUT_ID, "b.csv": WITH_ID}, r"a\.csv has no column `id`"),
        ({"a.csv": "ts,type\n2026-01-05,A\n", "b.csv": "ts,type\n5,A\n"}, "column `ts` is timestamp"),
        ({"a.csv": "", "b.csv": "ts,type\n"}, "there are no events in .* yet"),
        ({"a.csv": "when,type\n5,A\n"}, "no time column 'ts'"),
        ({"a.csv": "ts,type\nyesterday,A\n"}, "'yesterday' is neither"),
        (
            {"a.parquet": pa.table({"ts": [5], "type": ["A"], "x": [1]}),
             "b.parquet": pa.table({"ts": [5], "type": ["A"], "x": ["1"]})},
            r"column `x` is int64 in .*a\.parquet and string in .*b\.parquet",
        ),
    ],
)  # fmt: skip
def test_files_that_do_not_go_together_are_refused_when_a_stream_starts(
    tmp_path: Path, files: dict[str, Any], message: str
) -> None:
    for name, content in files.items():
        written(tmp_path, name, content)
    with pytest.raises(nestream.EventError, match=message):
        looked_at(tmp_path)


def test_types_that_spark_does_not_have_become_ones_that_it_has(tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([MORNING], pa.timestamp("ns", "Europe/Berlin")),
            "type": pa.array(["A"]).dictionary_encode(),
            "unsigned": pa.array([1], pa.uint32()),
            "none": pa.nulls(1),
            "decimal": pa.array([Decimal("1.5")]),
        }
    )
    written(tmp_path, "a.parquet", table)
    columns = looked_at(tmp_path)
    assert columns.field("ts").type == pa.timestamp("us", "UTC")
    assert [columns.field(name).type for name in ("type", "unsigned", "none")] == [
        pa.string(),
        pa.int64(),
        pa.string(),
    ]
    events, unread = read(tmp_path / "a.parquet", columns)
    assert (len(events), unread) == (1, [])


def run(spark: SparkSession, path: Path) -> RunningStream:
    query = nestream.query("SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 seconds")
    running: RunningStream = query.stream_files(
        spark,
        str(path / "in"),
        str(path / "out"),
        checkpoint=str(path / "check"),
        watermark="1 second",
        late=str(path / "late"),
        output="json",
        once=True,
    )
    wait_for_end(running)
    return running


def test_a_stream_reads_each_file_by_its_header_and_goes_on_exactly_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", "a.csv", "ts,type,id\n2026-01-05T08:00:00Z,A,1\n2026-01-05T08:00:01Z,B,1\n")
    first = run(spark, tmp_path).progress
    assert (first.events, first.malformed) == (2, 0)
    more = "id,type,ts\n7,A,2026-01-05T09:00:00Z\n7,B,2026-01-05T09:00:01Z\nx,B,2026-01-05T09:00:02Z\n"
    written(tmp_path / "in", "b.csv", f"{more}0,Z,2026-01-05T10:00:00Z\n")
    second = run(spark, tmp_path).progress
    assert (second.events, second.malformed) == (6, 1)
    assert run(spark, tmp_path).progress.batches == 0
    found = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.open()]
    assert sorted((match["a"]["id"], match["b"]["id"]) for match in found) == [(1, 1), (7, 7)]
    (aside,) = [json.loads(line) for file in (tmp_path / "late").glob("*.json") for line in file.open()]
    assert aside["reason"] == f"{tmp_path}/in/b.csv, line 4: id 'x' is not of type int64"
    assert aside["raw"] == "x,B,2026-01-05T09:00:02Z"


def test_columns_kept_with_a_checkpoint_hold_for_later_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", "a.csv", "ts,type,id\n2026-01-05T08:00:00,A,1\n")
    files = Files.of(str(tmp_path / "in"), None, "ts", "type")
    columns = files.columns(spark, str(tmp_path / "in"))
    assert to_arrow_schema(columns).types[1:] == COLUMNS.types[1:]
    assert columns["ts"].dataType.typeName() == "timestamp_ntz"


def test_a_stream_of_files_without_timestamps_is_refused_with_a_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", "a.csv", "ts,type\n1,A\n2,B\n")
    with pytest.raises(nestream.EventError, match=r"`ts` holds bigint, but Spark streams need.*\n  hint: "):
        run(spark, tmp_path)


def test_a_stream_that_cannot_start_keeps_neither_columns_nor_the_ids_of_topics(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[Any] = []
    monkeypatch.setattr(Files, "check_same", lambda *place: compared.append(place))
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
    written(tmp_path / "in", "a.csv", WITH_ID)
    written(tmp_path / "out", "part-0.json", "{}")
    with pytest.raises(nestream.EventError, match="has matches, and there is no checkpoint"):
        run(spark, tmp_path)
    assert not compared
    (tmp_path / "out" / "part-0.json").unlink()
    written(tmp_path / "in", "a.csv", "ts,type,id\n2026-01-05,A,one\n2026-01-05,B,one\n")
    assert run(spark, tmp_path).progress.malformed == 0
    assert compared
