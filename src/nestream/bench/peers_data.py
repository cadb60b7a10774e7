"""The events of the peers: those in which every type comes once for each id, and columns that Java reads."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nestream.bench.files import SEED, events_file
from nestream.bench.spec import Data

TYPES = "ABCDEFGHIJKLMNOPQRST"


def once(events: int, ids: int, pause: int, seed: int = SEED) -> pa.Table:
    """Blocks of events in which each of `ids` new ids has each type once, in random order.

    The time between two events is 1 to 19, with a pause between two blocks.

    >>> once(40, ids=2, pause=0).group_by(["id", "type"]).aggregate([([], "count_all")]).num_rows
    40
    """
    size = ids * len(TYPES)
    blocks = max(1, round(events / size))
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(size) for _ in range(blocks)])
    block = np.repeat(np.arange(blocks), size)
    return pa.table(
        {
            "ts": np.cumsum(random.integers(1, 20, order.size)) + block * pause,
            "type": np.array(list(TYPES))[order % len(TYPES)],
            "id": (order // len(TYPES) + block * ids).astype(np.int32),
            "attr1": random.integers(0, 10, order.size).astype(np.int8),
            "attr2": random.integers(0, 50, order.size).astype(np.int8),
        }
    )


def events_of(data: Data, events: int, folder: Path) -> Path:
    """The events as a Parquet file, generated where it is not there yet."""
    if data.generator != "once":
        return events_file(data, events, folder)
    ids, pause = data.parameters["ids"], data.parameters["pause"]
    path = folder / f"once-{events}-{ids}-{pause}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        pq.write_table(once(events, ids, pause), unfinished)
        unfinished.replace(path)
    return path


def columns_of(path: Path) -> Path:
    """The same events as plain columns beside the file: times, types as numbers, ids and two attributes."""
    columns = path.with_suffix(".columns")
    if not columns.exists():
        table = pq.read_table(path)
        names = np.asarray(table.column("type").cast(pa.string()).to_numpy(zero_copy_only=False), dtype="U1")
        kinds = names.view(np.uint32) - ord("A")
        unfinished = columns.with_suffix(f".{os.getpid()}")
        with unfinished.open("wb") as file:
            file.write(table.column("ts").to_numpy().astype("<i8").tobytes())
            file.write(kinds.astype(np.int8).tobytes())
            for name in ("id", "attr1", "attr2"):
                file.write(table.column(name).to_numpy().astype("<i4").tobytes())
        unfinished.replace(columns)
    return columns
