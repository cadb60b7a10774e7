"""The events of the benchmarks, generated once and kept as Parquet; for Java also as plain columns."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.spec import Data
from nestream.data import generate

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
PART = 1_000_000
"""Events in a row group of a file that is too long for memory."""
TYPES = "ABCDEFGHIJKLMNOPQRST"


def cache_folder(name: str = "bench") -> Path:
    """The folder that keeps what is made once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nestream" / name


def events_file(data: Data, events: int, folder: Path | None = None) -> Path:
    """The events as a Parquet file, generated unless it exists."""
    settings = json.dumps({**data.parameters, "seed": SEED}, sort_keys=True)
    mark = hashlib.sha256(settings.encode()).hexdigest()[:8]
    path = (folder or cache_folder()) / f"{data.generator}-{events}-{mark}.parquet"
    return _written(path, lambda unfinished: _write(unfinished, data, events))


def columns_file(path: Path) -> Path:
    """The same events as plain columns beside the file: times, types as numbers, ids and two attributes."""
    return _written(path.with_suffix(".columns"), lambda unfinished: _write_columns(unfinished, path))


def _written(path: Path, write: Callable[[Path], None]) -> Path:
    """The file, written under another name first: an interrupted run leaves no incomplete one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        write(unfinished)
        unfinished.replace(path)
    return path


def _write(path: Path, data: Data, events: int) -> None:
    given = dict(data.parameters)
    match data.generator:
        case "long":
            _write_long(path, events, given)
        case "once":
            pq.write_table(once(events, **given), path)
        case "brief":
            pq.write_table(brief(events, **given), path)
        case name:
            amounts, skew = given.pop("amounts_of", {}), given.pop("skew", None)
            hot = given.pop("hot", 0.0)
            table = folded(generate(name, events=events, seed=SEED, **given), amounts)
            table = table if skew is None else skewed(table, skew, given["id_domain"])
            pq.write_table(with_hot_key(table, hot) if hot else table, path)


def _write_long(path: Path, events: int, parameters: Mapping[str, Any]) -> None:
    """Parts of a stream one after the other, each a row group."""
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


def once(events: int, ids: int, pause: int) -> pa.Table:
    """Blocks of events in which each of `ids` new ids has each type once, in random order.

    Two events are 1 to 19 apart, with a pause between two blocks.

    >>> once(40, ids=2, pause=0).group_by(["id", "type"]).aggregate([([], "count_all")]).num_rows
    40
    """
    size = ids * len(TYPES)
    blocks = max(1, round(events / size))
    random = np.random.default_rng(SEED)
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


def folded(table: pa.Table, types: Mapping[str, int]) -> pa.Table:
    """The trades with a limited number of different amounts for some tickers."""
    for name, count in types.items():
        amounts = table.column("amount")
        few = pa.chunked_array([pa.array((amounts.to_numpy() // 10 - 1) % count * 10 + 10)])
        own = pc.equal(table.column("type").cast(pa.string()), name)
        place = table.column_names.index("amount")
        table = table.set_column(place, "amount", pc.if_else(own, few, amounts))
    return table


def skewed(table: pa.Table, theta: float, ids: int) -> pa.Table:
    """The events with other ids: the n-th id as frequent as n to the power of minus theta."""
    weights = np.arange(1, ids + 1, dtype=float) ** -theta
    places = np.cumsum(weights) / weights.sum()
    drawn = np.searchsorted(places, np.random.default_rng(7).random(table.num_rows)).astype(np.int16)
    return table.set_column(table.column_names.index("id"), "id", pa.array(drawn))


def with_hot_key(table: pa.Table, share: float) -> pa.Table:
    """The events with the id 0 in that share of them."""
    ids = table.column("id")
    hot = pa.array(np.random.default_rng(7).random(table.num_rows) < share)
    place = table.column_names.index("id")
    return table.set_column(place, "id", pc.if_else(hot, pa.scalar(0, ids.type), ids))


def brief(events: int, step: int, life: int) -> pa.Table:
    """Keys that live briefly: a new one every `step`, with an A, a B and for each tenth key a C.

    From one event of a key to its next, at most `life` passes.

    >>> brief(21, step=10, life=50).group_by("type").aggregate([("id", "count")]).sort_by("type").to_pydict()
    {'type': ['A', 'B', 'C'], 'id_count': [10, 10, 1]}
    """
    keys, random = max(10, round(events / 2.1)), np.random.default_rng(SEED)
    born = np.arange(keys, dtype=np.int64) * step
    second = born + random.integers(1, life, keys)
    third = (second + random.integers(1, life, keys))[::10]
    times = np.concatenate([born, second, third])
    order = np.argsort(times, kind="stable")
    kinds = np.repeat(np.array([0, 1, 2], np.int8), [keys, keys, len(third)])
    ids = np.concatenate([np.arange(keys), np.arange(keys), np.arange(keys)[::10]]).astype(np.int32)
    types = pa.DictionaryArray.from_arrays(pa.array(kinds[order]), pa.array(["A", "B", "C"]))
    return pa.table({"ts": times[order], "type": types, "id": ids[order]})


def _write_columns(path: Path, events: Path) -> None:
    table = pq.read_table(events)
    names = np.asarray(table.column("type").cast(pa.string()).to_numpy(zero_copy_only=False), dtype="U1")
    with path.open("wb") as file:
        file.write(table.column("ts").to_numpy().astype("<i8").tobytes())
        file.write((names.view(np.uint32) - ord("A")).astype(np.int8).tobytes())
        for name in ("id", "attr1", "attr2"):
            file.write(table.column(name).to_numpy().astype("<i4").tobytes())
