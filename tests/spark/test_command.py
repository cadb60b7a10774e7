"""`nestream run --master`: the output of a run in process, found on Spark."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nestream
from nestream.cli.spark import run_on_spark
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


def test_packages_that_cannot_be_fetched_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        """A session that cannot be started."""

        def __getattr__(self, name: str) -> Callable[..., Session]:
            return lambda *_: self

        def getOrCreate(self) -> None:  # noqa: N802 - as Spark calls it
            raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")

        def getActiveSession(self) -> None:  # noqa: N802 - as Spark calls it
            """No session runs."""

    failing = Session()
    monkeypatch.setattr(Session, "builder", failing, raising=False)
    monkeypatch.setattr(session, "SparkSession", failing)
    with pytest.raises(SparkUnavailableError, match=r"package no\.such:thing:1\.0; .*\n  hint: .* --jars"):
        session.local_session(MASTER, settings={"spark.jars.packages": "no.such:thing:1.0"})
    with pytest.raises(SparkUnavailableError, match=r"started on .*: \[JAVA_GATEWAY_EXITED\]"):
        session.local_session(MASTER)


def test_a_master_that_does_not_answer_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for master, message in (
        (f"spark://127.0.0.1:{port}", rf"cannot be reached \(127\.0\.0\.1:{port}: Connection refused\)"),
        ("spark://no.such.host.invalid:7077", r"cannot be reached \(no\.such\.host\.invalid:7077: "),
        ("spark://host", "has no port"),
        ("sc://host:15002", "is not a Spark master: use local"),
        ("http://host:80", "is not a Spark master: use local"),
    ):
        with pytest.raises(SparkUnavailableError, match=message) as problem:
            session.check_master(master)
        assert "\n" not in str(problem.value)
    for master in ("local", "local[2]", "yarn"):
        session.check_master(master)


def test_a_master_that_answers_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        session.check_master(f"spark://127.0.0.1:{port}")
        session.check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
        session.check_master(f"k8s://https://127.0.0.1:{port}")


def test_a_folder_of_several_formats_is_read_by_our_readers(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,type,id\n1,A,7\nx,A,8\n")
    (tmp_path / "b.jsonl").write_text('{"ts": 2, "type": "B", "id": 7}\n')
    pq.write_table(pa.table({"ts": [3], "type": ["B"], "id": [7]}), tmp_path / "c.parquet")
    query = nestream.query("SEQ(A a, B b, a.id = b.id) WITHIN 10")
    job = run_on_spark(
        query, [str(tmp_path)], MASTER, None, None, time="ts", type="type", order="time", strategy="auto"
    )
    assert (job.total, job.malformed) == (3, 1)
    assert sum(table.num_rows for table in job.matches(None)) == 2


def test_files_of_a_folder_are_put_together_by_name(spark: SparkSession, tmp_path: Path) -> None:
    one = pa.table({"ts": [1, 2], "type": ["A", "A"], "x": [7, 8]})
    two = pa.table({"y": ["new"], "x": [7], "type": ["B"], "ts": [3]})
    for number, table in enumerate((one, two)):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    result = call("run", "SEQ(A a, B b, a.x = b.x) WITHIN 10", tmp_path, "--master", MASTER)
    (found,) = map(json.loads, result.stdout.splitlines())
    assert (found["a"]["ts"], found["a"]["y"], found["b"]["ts"], found["b"]["y"]) == (1, None, 3, "new")
    pq.write_table(two.set_column(1, "x", pa.array(["7"])), tmp_path / "2.parquet")
    result = call("run", "SEQ(A a, B b, a.x = b.x) WITHIN 10", tmp_path, "--master", MASTER)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: Spark failed: ")
    assert "Traceback" not in result.stderr


def test_an_event_without_time_on_spark_is_told_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"ts": [1, None], "type": ["A", "B"]}), path)
    result = call("run", "SEQ(A a, B b) WITHIN 10", path, "--master", MASTER)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: Spark failed: an event has no time: column `ts` is NULL")
    assert "hint: leave such rows out" in result.stderr


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
