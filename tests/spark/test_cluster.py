"""A batch on a real standalone cluster that loses a worker, and over a real Spark Connect server.

Each job runs in a process of its own: one process has one kind of session.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nestream
from tests.spark.cluster import connect_server, environment, standalone
from tests.spark.test_batch import KEYED, UNKEYED, history

ROOT = Path(__file__).parents[2]
JOB = """
import json, sys
import nestream

kind, address, path, texts, slow = sys.argv[1:]
if kind == "remote":
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.remote(address).getOrCreate()
else:
    from nestream.runtime.spark.session import local_session
    settings = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.task.maxFailures": "20"}
    spark = local_session(address, settings=settings)
events = spark.read.parquet(path)

def late(batches):
    import time
    for batch in batches:
        time.sleep(float(slow))
        yield batch

if float(slow):  # several tasks, each of which takes its time, so that a worker dies in the middle
    events = events.repartition(8).mapInArrow(late, events.schema)
print("started", flush=True)
for text in json.loads(texts):
    query = nestream.query(text)
    matches = query.on_spark(events, partitions=4)
    assert matches.columns[-1] == "match_end"
    print(json.dumps([query.explain(events=events).count("\\nSpark\\n"), sorted(
        [row.asDict(True) for row in matches.collect()], key=repr)]), flush=True)
spark.stop()
"""


def run(
    folder: Path, kind: str, address: str, table: pa.Table, texts: list[str], slow: float = 0
) -> subprocess.Popen[str]:
    path = folder / "events.parquet"
    pq.write_table(table, path)
    script = folder / "job.py"
    script.write_text(JOB)
    return subprocess.Popen(
        [sys.executable, str(script), kind, address, str(path), json.dumps(texts), str(slow)],
        env=environment(folder),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=(folder / "job.log").open("w"),
        text=True,
    )


def expected(table: pa.Table, text: str) -> list[dict[str, object]]:
    return sorted(nestream.query(text).match(table).to_pylist(), key=repr)


def results(folder: Path, process: subprocess.Popen[str]) -> list[list[dict[str, object]]]:
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    assert process.wait(300) == 0, (folder / "job.log").read_text()[-3000:]
    found = [json.loads(line) for line in lines if line.startswith("[")]
    assert [sections for sections, _ in found] == [1] * len(found)
    return [sorted(matches, key=repr) for _, matches in found]


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_every_match_once(tmp_path: Path) -> None:
    table = history(2_000)
    with standalone(tmp_path) as cluster:
        job = run(tmp_path, "master", cluster.url, table, [KEYED, UNKEYED], slow=3)
        assert job.stdout is not None
        assert job.stdout.readline() == "started\n"
        time.sleep(8)
        cluster.kill_worker(0)
        found = results(tmp_path, job)
    assert found == [expected(table, KEYED), expected(table, UNKEYED)]
    assert min(map(len, found)) > 0


@pytest.mark.slow
def test_batches_pass_over_spark_connect(tmp_path: Path) -> None:
    table = history(2_000)
    texts = [
        KEYED,
        UNKEYED,
        "PATTERN SEQ(A a, B b, C c) WITHIN 5 events",
        "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 30 RETURN a.n AS n, b.ts - a.ts AS span",
    ]
    with connect_server(tmp_path) as address:
        found = results(tmp_path, run(tmp_path, "remote", address, table, texts))
    assert found == [expected(table, text) for text in texts]
    assert min(map(len, found)) > 0
