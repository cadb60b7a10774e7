"""A driver that can be killed: runs a stream over a folder from its checkpoint until all files are done."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

import nestream
from nestream.runtime.spark.session import local_session
from tests.spark.stream.streams import Folder

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def main(path: str, text: str) -> None:
    folder = Folder(local_session("local[2]", "killed", SETTINGS), Path(path))
    schema = pq.read_schema(sorted((folder.path / "in").glob("*.parquet"))[0])
    folder.run(nestream.query(text).match(folder.read(schema, "5 seconds")))


if __name__ == "__main__":
    main(*sys.argv[1:])
