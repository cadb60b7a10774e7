"""`nestream stream`: from a folder of files to a folder of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.runtime.spark.stream_files import RunningStream, format_of, why
from tests.cli.commands import EXAMPLE, ROOT

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
    while not running.wait(1):
        pass
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
    assert run(spark, query, tmp_path).progress.matches == 0
    written = [json.loads(line) for file in (tmp_path / "out").glob("*.txt") for line in file.open()]
    assert len(written) == 5
    assert {"match_start", "match_end"} <= set(written[0])
    (tmp_path / "in" / "more.csv").write_text(HOSPITAL.read_text())
    changed = nestream.query(EXAMPLE.read_text().replace("WITHIN 1 hour", "WITHIN 2 hour"))
    assert changed.formatted != query.formatted
    with pytest.raises(nestream.EventError, match=r"(?s)^the checkpoint belongs to another query.*hint"):
        run(spark, changed, tmp_path)


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
