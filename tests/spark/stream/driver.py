"""A driver in a process of its own: runs a stream over a folder from its checkpoint until all files are done.

It runs on this machine unless told: on a standalone cluster (`spark://`) or over Spark Connect (`sc://`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import nestream
from nestream.runtime.spark.session import local_session
from tests.spark.stream.streams import Folder, wait_for_end

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


CLUSTER = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.task.maxFailures": "20",  # a task that was on a lost worker runs again
}


def session(master: str) -> SparkSession:
    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    return local_session(master, "a stream of its own", {**SETTINGS, **CLUSTER})


def main(path: str, text: str, master: str = "local[2]", way: str = "match") -> None:
    """Run `query.match` with a sink of Spark, or `query.stream_files`."""
    folder = Folder(session(master), Path(path))
    if way == "files":
        wait_for_end(folder.stream(nestream.query(text), "5 seconds"))
        return
    schema = pq.read_schema(sorted((folder.path / "in").glob("*.parquet"))[0])
    folder.run(nestream.query(text).match(folder.read(schema, "5 seconds")))


if __name__ == "__main__":
    main(*sys.argv[1:])
