"""One measurement in a process of its own: a task as JSON on standard input, its results as JSON."""

from __future__ import annotations

import gc
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import nestream
from nestream.bench import scaling_measures
from nestream.bench.expected import expected
from nestream.bench.memory import Memory
from nestream.bench.sets import measure as rules
from nestream.bench.ways import measure as ways
from nestream.bench.ways import sums_of as sums

Task = dict[str, Any]
Result = dict[str, Any]


def read(path: str) -> pa.Table:
    """Arrow's own read of all columns, in one thread."""
    return pq.read_table(path, use_threads=False)


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[float, Any]:
    """The seconds and the result."""
    gc.collect()
    begin = clock()
    result = run()
    return clock() - begin, result


def match(task: Task) -> Result:
    """Queries in turns with the read, several rounds: the seconds of `match` and of `count` for each."""
    path, queries = task["path"], {name: nestream.query(text) for name, text in task["queries"].items()}
    seconds: list[float] = []
    results: Result = {name: {"samples": [], "count_samples": []} for name in queries}
    table = read(path)
    for query in queries.values():  # what is done once in a process is not measured
        query.count(table.slice(0, 1_000))
    for _ in range(task["repeats"]):
        spent, table = timed(lambda: read(path))
        seconds.append(spent)
        for name, query in queries.items():
            result = results[name]
            spent, matches = timed(partial(query.match, table))
            result["samples"].append(spent)
            result["matches"], result["checksum"] = sums(matches)
            result["output"] = matches.nbytes
            del matches
            spent, result["count"] = timed(partial(query.count, table))
            result["count_samples"].append(spent)
    for name, shape in task["shapes"].items():
        results[name]["expected"] = expected(shape, table, task["windows"][name])
    return {"read": {"samples": seconds}, **results}


def turns(task: Task) -> Result:
    """A query once for each further line of standard input; the process ends with it."""
    query, table = nestream.query(task["query"]), read(task["path"])
    how = {"strategy": task["strategy"]} if "strategy" in task else {}
    clock = time.process_time if task.get("clock") == "processor" else time.perf_counter
    if how:  # among strategies, what is done once in a process is not measured
        query.match(table.slice(0, 1_000), **how)
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        seconds, matches = timed(partial(query.match, table, **how), clock)
        found, checksum = sums(matches)
        del matches
        print(json.dumps({"seconds": seconds, "matches": found, "checksum": checksum}), flush=True)
    sys.exit()


def memory(task: Task) -> Result:
    """The peak beyond the input of one way to run a query: `count`, `batches` (each dropped) or `match`."""
    query = nestream.query(task["query"])
    table = read(task["path"])
    few = table.slice(0, 1_000)
    query.count(few)
    query.match(few)
    with Memory() as used:
        begin = time.perf_counter()
        match task["way"]:
            case "count":
                found = query.count(table)
            case "batches":
                found = sum(matches.num_rows for matches in query.batches(table))
            case _:
                matches = query.match(table)
                found = matches.num_rows
        seconds = time.perf_counter() - begin
    return {
        "beyond": used.beyond,
        "input": table.nbytes,
        "matches": found,
        "seconds": seconds,
        "expected": expected(task["shape"], table, task["window"]),
    }


def stream(task: Task) -> Result:
    """Events pushed one at a time or in batches: the seconds, and the matches that came out."""
    query, size = nestream.query(task["query"]), task["size"]
    table = read(task["path"]).combine_chunks()
    samples = []
    for _ in range(task["repeats"]):
        running = query.stream(schema=table.schema)
        found = 0
        if size == 1:
            events = table.to_pylist()
            begin = time.perf_counter()
            for event in events:
                found += len(running.push(event))
            found += len(running.finish())
        else:
            batches = [table.slice(start, size) for start in range(0, table.num_rows, size)]
            begin = time.perf_counter()
            for batch in batches:
                found += running.push_batch(batch).num_rows
            found += running.finish_batch().num_rows
        samples.append(time.perf_counter() - begin)
    count = query.count(table)
    return {
        "samples": samples,
        "matches": found,
        "count": count,
        "expected": expected(task["shape"], table, task["window"]),
    }


def first(task: Task) -> Result:
    """`nestream run`: seconds from its start to its first matches, and to read the file alone."""
    command = [sys.executable, "-c", "from nestream.cli.main import main; main()"]
    command += ["run", task["query"], task["path"]]
    reading = "import nestream.cli.main, sys, pyarrow.parquet as pq; pq.read_table(sys.argv[1]); print()"
    samples, alone = [], []
    for _ in range(task["repeats"]):  # in turns, as the machine may be busy for a while
        alone.append(_first_output([sys.executable, "-c", reading, task["path"]], False))
        samples.append(_first_output(command, task.get("terminal", False)))
    return {"samples": samples, "read": min(alone), "after": min(samples) - min(alone)}


def _first_output(command: list[str], terminal: bool) -> float:
    """Seconds to the first output; on a terminal to the frame of the table, after any progress."""
    begin = time.perf_counter()
    if not terminal:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seconds = time.perf_counter() - begin
            process.kill()
        return seconds
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
    with subprocess.Popen(
        command, stdout=follower, stderr=subprocess.DEVNULL, stdin=follower, env=environment
    ) as process:
        os.close(follower)
        screen = b""
        while "╭".encode() not in screen:
            try:
                screen += os.read(leader, 65_536)
            except OSError:  # it ended without a table
                break
        seconds = time.perf_counter() - begin
        process.kill()
    os.close(leader)
    if "╭".encode() not in screen:
        raise RuntimeError(screen.decode(errors="replace"))
    return seconds


MEASURES = {
    **scaling_measures.MEASURES,
    "match": match,
    "turns": turns,
    "memory": memory,
    "stream": stream,
    "first": first,
    "rules": rules,
    "ways": ways,
}

if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    print(json.dumps(MEASURES[given.pop("measure")](given)))
