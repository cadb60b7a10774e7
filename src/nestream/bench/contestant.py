"""Runs queries once for each line that it is told, with whichever nestream is on its path.

It is started as a file, not as a module, and uses nothing but the public names, so that it can run revisions
whose own benchmarks are different ones. A line is a JSON object with a name, and the first time also the
events and the query; the answer is the seconds of the processor and what was found, or what went wrong.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream

LOADED: dict[str, tuple[Any, pa.Table, dict[str, Any]]] = {}


def main() -> None:
    """Answer every line."""
    print(json.dumps({"ready": True, "from": nestream.__file__}), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = run(task)
        except Exception as error:  # an old revision may not know what is asked; the others go on
            answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Run a query once."""
    name = task["name"]
    if name not in LOADED:
        table = pq.read_table(task["path"], use_threads=False).combine_chunks()
        LOADED.clear()
        LOADED[name] = (nestream.query(task["query"]), table, task)
    query, table, known = LOADED[name]
    gc.collect()
    begin = time.process_time()
    if known.get("batch"):
        stream = query.stream(schema=table.schema)
        size = known["batch"]
        parts = [stream.push_batch(table.slice(start, size)) for start in range(0, table.num_rows, size)]
        found = pa.concat_tables([*parts, stream.finish_batch()])
    else:
        found = query.match(table, **known.get("how", {}))
    seconds = time.process_time() - begin
    return {"seconds": seconds, "matches": found.num_rows, "checksum": checksum(found)}


def checksum(matches: pa.Table) -> int:
    """The sum of the times of the events in matches: the first event's once, the second's twice, ..."""
    events = [name for name in matches.column_names if pa.types.is_struct(matches.schema.field(name).type)]
    times = [pc.struct_field(matches.column(name), "ts").cast(pa.int64()) for name in events]
    return sum(step * (pc.sum(column).as_py() or 0) for step, column in enumerate(times, 1))


if __name__ == "__main__":
    main()
