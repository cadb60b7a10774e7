"""Measures strategies beside each other in one process, with what their views computed, used and held."""

from __future__ import annotations

import gc
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream

SLOW = 10.0
"""A way that takes so many seconds is not run again."""
Result = dict[str, Any]


def measure(task: dict[str, Any]) -> Result:
    """Queries, each in several ways."""
    return {run["name"]: _measured(run, task["repeats"]) for run in task["runs"]}


def _measured(run: dict[str, Any], repeats: int) -> Result:
    """The seconds of each way to run a query, in turns; its matches; and of views what they did."""
    query, table = nestream.query(run["query"]), pq.read_table(run["path"], use_threads=False)
    ways: dict[str, Result] = run["ways"]
    results: dict[str, Result] = {way: {"samples": []} for way in ways}
    for way in ways.values():  # what is done once in a process is not measured
        query.match(table.slice(0, 500), **way)
    for _ in range(repeats):
        for name, way in ways.items():
            result = results[name]
            if result["samples"] and result["samples"][-1] > SLOW:
                continue
            gc.collect()
            begin = time.process_time()
            matches = query.match(table, **way)
            result["samples"].append(time.process_time() - begin)
            result |= _sums(matches)
            del matches
    for name, way in ways.items():
        samples = sorted(results[name]["samples"])
        results[name] |= {"best": samples[0], "spread": samples[len(samples) // 2] / samples[0] - 1}
        if way["strategy"].startswith("views-"):
            results[name]["views"] = _views(query, table, way)
    return results


def _sums(matches: pa.Table) -> Result:
    """The matches, and the sum of their times: the first event's once, the second's twice, and so on."""
    events = [name for name in matches.column_names if pa.types.is_struct(matches.schema.field(name).type)]
    times = [pc.struct_field(matches.column(name), "ts").cast(pa.int64()) for name in events]
    checksum = sum(step * (pc.sum(column).as_py() or 0) for step, column in enumerate(times, 1))
    return {"matches": matches.num_rows, "checksum": checksum}


def _views(query: nestream.Query, table: pa.Table, way: Result) -> dict[str, int]:
    """What all the views of a run did together."""
    found = query.explain("json", analyze=table, **way)["measured"]["views"]
    names = [name for name in found[0] if name != "variables"]
    return {name: sum(view[name] for view in found) for name in names}
