"""The generated events, kept as Parquet between runs, and where the peers are."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from nestream.bench.spec import Data
from nestream.data import generate

SEED = 1
LONG = "long"
"""The generator of files that are too long for memory: the stream of SASE, written part by part."""
PART = 1_000_000
"""Events in a part, and so in a row group, of a long file."""


def cache_folder() -> Path:
    """Where generated events are kept unless told otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nestream" / "bench"


def events_file(data: Data, events: int, folder: Path) -> Path:
    """The events as a Parquet file, generated where it is not there yet."""
    settings = json.dumps({**data.parameters, "seed": SEED}, sort_keys=True)
    mark = hashlib.sha256(settings.encode()).hexdigest()[:8]
    path = folder / f"{data.generator}-{events}-{mark}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        if data.generator == LONG:
            _write_long(unfinished, events, data.parameters)
        else:
            pq.write_table(generate(data.generator, events=events, seed=SEED, **data.parameters), unfinished)
        unfinished.replace(path)
    return path


def _write_long(path: Path, events: int, parameters: Mapping[str, Any]) -> None:
    """Parts of the stream one after the other, each its own row group, the times of each after the last."""
    writer, last = None, 0
    try:
        for number in range(-(-events // PART)):
            size = min(PART, events - number * PART)
            part = generate("sase", events=size, seed=SEED + number, **parameters)
            part = part.set_column(0, "ts", pc.add(part.column("ts"), last))
            last = part.column("ts")[-1].as_py()
            writer = writer or pq.ParquetWriter(path, part.schema)
            writer.write_table(part, row_group_size=PART)
    finally:
        if writer is not None:
            writer.close()


def repository() -> Path | None:
    """The checkout that has the peers: around the current folder, or around this file."""
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / "benchmarks" / "peers").is_dir():
                return folder
    return None
