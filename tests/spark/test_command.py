"""`nestream run --master`: the output of a run in process, found on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nestream.data import sample, sample_path
from nestream.runtime.spark import session
from nestream.runtime.spark.session import SparkUnavailableError, check_java, cores, is_on_this_machine
from nestream.sink import write_matches
from tests.cli.commands import EXAMPLE, call

MASTER = "local[2]"  # the session of the tests is running, and taken


@pytest.mark.parametrize("name", ["hospital.csv", "hospital.jsonl", "hospital.parquet"])
def test_spark_prints_what_a_run_in_process_prints(spark: SparkSession, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write_matches(iter([sample("hospital")]), str(path), path.suffix[1:])
    in_process = call("run", EXAMPLE, path)
    on_spark = call("run", EXAMPLE, path, "--master", MASTER)
    assert (on_spark.exit_code, on_spark.stderr) == (0, "")
    assert on_spark.stdout.count("\n") == 5
    assert on_spark.stdout == in_process.stdout


def test_the_plan_and_the_summary_stand_beside_the_matches(spark: SparkSession) -> None:
    result = call("run", EXAMPLE, sample_path("hospital"), "--master", MASTER, "--plan", "--limit", "2")
    assert result.stdout.count("\n") == 2
    assert "Engine\n  Chain (r, w, o), by key id" in result.stderr
    assert "Spark\n  by key id: " in result.stderr
    assert result.stderr.splitlines()[-1].startswith("300 events, 2 matches, 0 dead letters, ")
    assert result.stderr.endswith("seconds on Spark local[2]\n")


def test_rows_that_cannot_be_read_are_dead_letters_on_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    path, letters = tmp_path / "events.csv", tmp_path / "dead.jsonl"
    path.write_text("ts,type,x\n1,A,7\n,A,8\n4,C,7\n")
    query = "SEQ(A a, C c, a.x = c.x) WITHIN 10"
    result = call("run", query, path, "--master", MASTER, "--dead-letter", letters)
    assert [json.loads(line)["match_end"] for line in result.stdout.splitlines()] == [4]
    assert "1 dead letter" in result.stderr
    assert len(letters.read_text().splitlines()) == 1


def test_a_query_that_does_not_fit_the_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write_matches(iter([sample("hospital")]), str(path), "parquet")
    result = call("run", "SEQ(Recycle r, Operating o, r.idd = o.id) WITHIN 1 hour", path, "--master", MASTER)
    assert result.exit_code == 1
    assert "have no attribute `idd`" in result.stderr


def test_a_file_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "nothing.parquet"
    result = call("run", EXAMPLE, path, "--master", MASTER)
    assert result.exit_code == 1
    assert "nothing.parquet" in result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_the_reference_does_not_run_on_spark() -> None:
    result = call("run", EXAMPLE, sample_path("hospital"), "--master", MASTER, "--strategy", "reference")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("version", "message"),
    [(None, "Spark needs Java 17 or later and none was found"), (11, "and this is Java 11")],
)
def test_a_missing_java_is_told_in_one_sentence(
    version: int | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "java_version", lambda: version)
    with pytest.raises(SparkUnavailableError, match=message) as problem:
        check_java()
    assert "\n" not in str(problem.value)


def test_an_old_java_calls_itself_one_point_eight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session.java_version() == 8
    program.unlink()
    assert session.java_version() is None


def test_a_master_tells_its_cores_and_where_it_is() -> None:
    assert (cores("local[7]"), cores("local"), cores("local[3,2]")) == (7, 1, 3)
    assert cores("local[*]") >= 1
    assert is_on_this_machine("spark://127.0.0.1:7077")
    assert not is_on_this_machine("spark://cluster:7077")
