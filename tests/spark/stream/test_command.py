"""`nestream stream`: from a folder of files to a folder of files, stopped and continued."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.job import Progress
from nestream.runtime.spark.shipping import why
from nestream.runtime.spark.stream_files import RunningStream
from nestream.runtime.spark.stream_source import format_of
from tests.cli.commands import EXAMPLE, PROGRAM, ROOT, call
from tests.spark.same import rows
from tests.spark.stream.cases import later_events
from tests.spark.stream.streams import Folder, wait_for_end
from tests.spark.stream.test_cluster import PATIENCE, history
from tests.spark.stream.test_stream import events

HOSPITAL = ROOT / "src" / "nestream" / "data" / "samples" / "hospital.csv"


def run(spark: SparkSession, query: nestream.Query, path: Path) -> RunningStream:
    """Do all the files that are there."""
    running: RunningStream = query.stream_files(
        spark,
        str(path / "in"),
        str(path / "out"),
        checkpoint=str(path / "check"),
        watermark="10 seconds",
        output="json",
        once=True,
    )
    wait_for_end(running)
    return running


def test_a_folder_of_csv_is_matched_once_and_a_changed_query_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(HOSPITAL, tmp_path / "in")
    query = nestream.query(EXAMPLE.read_text())
    running = run(spark, query, tmp_path)
    assert (running.progress.events, running.progress.matches) == (300, 5)
    assert running.progress.watermark is not None
    again = run(spark, query, tmp_path).progress
    assert (again.matches, again.batches) == (5, 0)
    written = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.open()]
    assert len(written) == 5
    assert {"match_start", "match_end"} <= set(written[0])
    (tmp_path / "in" / "more.csv").write_text(HOSPITAL.read_text())
    changed = nestream.query(EXAMPLE.read_text().replace("WITHIN 1 hour", "WITHIN 2 hour"))
    assert changed.formatted != query.formatted
    with pytest.raises(nestream.EventError, match=r"(?s)^the checkpoint belongs to another query.*hint"):
        run(spark, changed, tmp_path)


def test_files_that_come_while_the_stream_runs_are_counted_and_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(HOSPITAL, tmp_path / "in")
    running: RunningStream = nestream.query(EXAMPLE.read_text()).stream_files(
        spark,
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        checkpoint=str(tmp_path / "c"),
        watermark="1 second",
    )
    told: list[tuple[int, int]] = []
    running.on_batch = lambda progress: told.append((progress.batch, progress.events))
    try:
        for number in (1, 2, 3):
            until = time.monotonic() + PATIENCE
            while len(told) < number and time.monotonic() < until:
                running.wait(0.2)
            shutil.copy(HOSPITAL, tmp_path / "in" / f"more{number}.csv")
    finally:
        running.stop()
    assert told[:3] == [(0, 300), (1, 600), (2, 900)]
    said = json.loads((tmp_path / "c" / "progress.json").read_text())
    assert said["state"] == "stopped"
    assert set(said) == set(Progress().json())


def test_a_folder_without_files_of_one_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nestream.EventError, match="no folder"):
        format_of(str(tmp_path / "none"))
    with pytest.raises(nestream.EventError, match="no files of events"):
        format_of(str(tmp_path))
    (tmp_path / "a.csv").touch()
    (tmp_path / "_hidden.parquet").touch()
    assert format_of(str(tmp_path)) == "csv"
    (tmp_path / "b.jsonl").touch()
    with pytest.raises(nestream.EventError, match="several formats"):
        format_of(str(tmp_path))


def test_the_reason_is_found_in_what_spark_says() -> None:
    assert why("[STREAM_FAILED] Query [id = 1] terminated with exception: no disk SQLSTATE: X") == "no disk"
    said = "lines\nnestream.runtime.state.StateError: another query\n  hint: do\n SQLSTATE: 39000\n"
    assert why(said) == "another query\n  hint: do"


KEYED = "SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 seconds"
AHEAD = 4_000_000_000
"""More than a hundred years of seconds."""


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_late_malformed_and_future_events_are_put_aside_with_the_reason(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(folder.spark, "stop", lambda: None)  # the session of all the tests
    for part in (
        events((0, "A", 1), (100, "A", 2)),
        events((50, "B", 3), (101, "B", 2), (None, "A", 4), (102, None, 5), (51, "A", 6), (AHEAD, "B", 7)),
        events((300, "Z", 0)),
    ):
        folder.add(part)
    late, out = folder.path / "late", folder.path / "out"
    command = ["stream", KEYED, "--from", str(folder.path / "in"), "--to", str(out), "--files", "1"]
    command += ["--late", str(late), "--future", "1 day"]
    first = call(*command, "--format", format, "--once")
    assert first.exit_code == 0, first.stderr
    assert "9 events, 1 match, 2 late, 2 dead letters, 1 in the future, " in first.stderr
    assert call(*command, "--format", format, "--once").exit_code == 0  # nothing new: nothing again
    found = [event for file in late.iterdir() for event in put_aside(file)]
    [ahead] = [event for event in found if event["id"] == 7]
    assert str(ahead["reason"]).startswith("in the future: after 20")
    assert json.loads((out / "_checkpoint" / "progress.json").read_text())["future"] == 1
    late_ones = [event for event in found if event["raw"] is None and event is not ahead]
    assert sorted((event["id"], event["type"], event["reason"]) for event in late_ones) == [
        (3, "B", "before the watermark"),
        (6, "A", "before the watermark"),
    ]
    malformed = [event for event in found if event["raw"] is not None]
    second = folder.path / "in" / "00001.parquet"
    assert sorted((json.loads(str(event["raw"]))["id"], event["reason"]) for event in malformed) == [
        (4, f"{second}, line 3: time is missing"),
        (5, f"{second}, line 4: type is missing"),
    ]


def put_aside(file: Path) -> list[dict[str, object]]:
    if file.suffix == ".parquet":
        return pq.read_table(file).to_pylist()  # type: ignore[no-any-return]
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_stream_is_matched_by_the_strategy_that_is_asked_for(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder.spark, "stop", lambda: None)  # the session of all the tests
    folder.add(events((0, "A", 1), (100, "A", 2), (101, "B", 2), (300, "Z", 0)))
    out = folder.path / "out"
    command = ["stream", KEYED, "--from", str(folder.path / "in"), "--to", str(out), "--once"]
    refused = call(*command, "--strategy", "reference")
    assert refused.exit_code == 2
    assert "does not run on streams" in refused.stderr
    found = call(*command, "--strategy", "flat")
    assert found.exit_code == 0, found.stderr
    assert "1 match" in found.stderr


def test_a_stream_on_spark_whose_events_are_all_malformed_ends_with_3(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder.spark, "stop", lambda: None)  # the session of all the tests
    folder.add(events((None, "A", 1), (1, None, 1)))
    command = ["stream", KEYED, "--from", str(folder.path / "in"), "--to", str(folder.path / "out"), "--once"]
    found = call(*command)
    assert found.exit_code == 3
    assert "2 events, 0 matches, 0 late, 2 dead letters" in found.stderr
    assert "error: every row is malformed" in found.stderr


def test_a_watermark_of_0_needs_no_unit(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.spark, "stop", lambda: None)  # the session of all the tests
    folder.add(events((0, "A", 1), (1, "B", 1)))
    command = ["stream", KEYED, "--from", str(folder.path / "in"), "--to", str(folder.path / "out"), "--once"]
    found = call(*command, "--watermark", "0")
    assert found.exit_code == 0, found.stderr
    assert "2 events, 1 match, 0 late" in found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_stream_cleanly_and_the_same_command_goes_on(
    folder: Folder, sent: signal.Signals
) -> None:
    query = "SEQ(A a, !D d, B b, !C c) WHERE [id] WITHIN 20 seconds"
    table = history(200)
    expected = nestream.query(query).match(table)
    for begin in range(0, table.num_rows, 50):
        folder.add(table.slice(begin, 50))
    check = folder.path / "check"
    command = [PROGRAM, "stream", query, "--from", folder.path / "in", "--to", folder.path / "out"]
    command += ["--checkpoint", check]
    command += ["--watermark", "5 seconds", "--files", "1", "--master", "local[2]"]
    with (folder.path / "said").open("w+") as said:
        running = subprocess.Popen(
            [str(part) for part in command],
            stderr=said,
            env=os.environ | {"NO_COLOR": "1"},
            start_new_session=True,
        )
        end = time.monotonic() + PATIENCE
        while len(list((check / "commits").glob("[0-9]*"))) < 1:
            assert running.poll() is None, (folder.path / "said").read_text()
            assert time.monotonic() < end, (folder.path / "said").read_text()
            time.sleep(0.05)
        if sent is signal.SIGINT:
            os.killpg(running.pid, sent)  # as a terminal does, to all the processes in front
        else:
            running.send_signal(sent)
        assert running.wait(PATIENCE) == 0, (folder.path / "said").read_text()
    told = (folder.path / "said").read_text()
    assert "stopped; run the same command to continue" in told
    assert "Traceback" not in told
    assert json.loads((check / "progress.json").read_text())["state"] == "stopped"
    assert ", 0 late, 0 dead letters, " in told
    folder.add(later_events(table))
    running = subprocess.Popen([str(part) for part in (*command, "--once")], stderr=subprocess.DEVNULL)
    assert running.wait(PATIENCE) == 0
    found = folder.found()
    assert rows(found.cast(expected.schema)) == rows(expected)
    assert pa.compute.count_distinct(found.column("match_end")).as_py() > 5


def test_the_reason_of_a_failure_in_java_is_its_last_cause() -> None:
    lines = [
        "An error occurred while calling o7.getResult.",
        ": org.apache.spark.SparkException: Exception thrown in awaitResult:",
        "\tat x.y(Z.scala:70)",
        "Caused by: org.apache.spark.SparkException: Job aborted",
        "Caused by: java.io.IOException: No space left on device",
        "\t... 1 more",
    ]
    assert why("\n".join(lines)) == "No space left on device"
