"""A checkpoint of each state format is kept here and must go on to be restored.

Run `python -m tests.spark.stream.test_checkpoint` to write the one of the present format, when that is new.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nestream
from nestream.runtime.spark.session import local_session
from nestream.runtime.state import FORMAT
from tests.spark.conftest import SETTINGS
from tests.spark.stream.streams import Folder
from tests.spark.stream.test_stream import SCHEMA, events, ids

PLACE = "/nestream-checkpoint"
KEPT = Path(__file__).parent / "checkpoints"
QUERY = "SEQ(A a, B b, !C c) WHERE [id] WITHIN 1 minute"
BEFORE = (
    events((0, "A", 1), (1, "A", 2), (2, "B", 2)),
    events((20, "A", 3), (21, "A", 1)),
)
AFTER = (
    events((22, "B", 1), (23, "B", 3), (24, "C", 3)),
    events((200, "Z", 0)),
)


@pytest.mark.slow
def test_the_kept_checkpoint_of_this_format_is_restored_and_gone_on_from(folder: Folder) -> None:
    shutil.copytree(KEPT / str(FORMAT), folder.path / "check")
    move(folder.path / "check", "state/*/_metadata/v2/*", PLACE, str(folder.path))
    for part in AFTER:
        folder.add(part)
    folder.run(nestream.query(QUERY).match(folder.read(SCHEMA, "5 seconds")))
    files = (folder.path / "out").glob("*.parquet")  # the log of the sink begins with the first stream
    found = pa.concat_tables(pq.read_table(file) for file in files)
    assert ids(found, "a", "b") == [(1, 1), (1, 1), (2, 2)]


def move(checkpoint: Path, pattern: str, old: str, new: str) -> None:
    """Spark writes down where a checkpoint and its source are: change that in some of the files."""
    for file in checkpoint.glob(pattern):
        file.write_text(file.read_text().replace(old, new))


def write() -> None:
    """Write the checkpoint of the present format."""
    with tempfile.TemporaryDirectory(prefix="nestream-") as place:
        folder = Folder(local_session("local[2]", "checkpoint", SETTINGS), Path(place))
        for part in BEFORE:
            folder.add(part)
        folder.run(nestream.query(QUERY).match(folder.read(SCHEMA, "5 seconds")))
        shutil.rmtree(KEPT / str(FORMAT), ignore_errors=True)
        ignored = shutil.ignore_patterns("*.crc", ".*")
        shutil.copytree(folder.path / "check", KEPT / str(FORMAT), ignore=ignored)
        for pattern in ("state/*/_metadata/v2/*", "sources/*/*"):
            move(KEPT / str(FORMAT), pattern, place, PLACE)


if __name__ == "__main__":
    write()
