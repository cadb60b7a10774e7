"""The generated events, kept as Parquet between runs, and where the peers are."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pyarrow.parquet as pq

from nestream.bench.spec import Data
from nestream.data import generate

SEED = 1


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
        pq.write_table(generate(data.generator, events=events, seed=SEED, **data.parameters), unfinished)
        unfinished.replace(path)
    return path


def repository() -> Path | None:
    """The checkout that has the peers: around the current folder, or around this file."""
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / "benchmarks" / "peers").is_dir():
                return folder
    return None
