"""nestream in a process of its own: a task as JSON on each line of input, its result as JSON.

It uses the public names alone, so that it also runs other revisions. `benchmarks.measures` says what it asks.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import nestream
from benchmarks import latency_worker, starting, streaming
from benchmarks.expected import expected
from benchmarks.peers.common import Memory, sums

Task = dict[str, Any]
Answer = dict[str, Any]
PARTS = (0.25, 0.5, 0.75)
"""Parts of the events, from the first on, for the time over the matches found so far."""
WARM_UP = 250_000
"""Events that are matched before memory is measured: enough to load everything that the engine uses."""
ALONE = 8
"""Rules of a set that are run alone in each repeat."""


@lru_cache(maxsize=1)
def events(path: str) -> pa.Table:
    """The events of a file."""
    return pq.read_table(path, use_threads=False).combine_chunks()


query = lru_cache(maxsize=64)(nestream.query)
seen: set[str] = set()


def run(task: Task) -> Callable[[], Any]:
    """A function that runs the query of a task once and returns the matches, or their number."""
    chosen, table = query(task["query"]), events(task["path"])
    table = table.slice(0, task.get("few", table.num_rows))
    how = task.get("how", {})
    match task.get("by", "match"):
        case "count":
            return lambda: chosen.count(table, **how)
        case "batches":
            return lambda: sum(matches.num_rows for matches in chosen.batches(table, **how))
        case "push":
            return streaming.pushing(chosen, table, task["size"])
    return lambda: chosen.match(table, **how)


def turn(task: Task) -> Answer:
    """Run a query once: seconds, matches, and the first time also the memory beyond the events."""
    once, clock = run(task), time.process_time if task.get("clock") == "processor" else time.perf_counter
    mark = json.dumps(task, sort_keys=True)
    answer: Answer = {}
    if mark in seen:
        gc.collect()
        begin = clock()
        found = once()
        answer["seconds"] = clock() - begin
    else:
        seen.add(mark)
        run({**task, "few": WARM_UP})()  # what a process loads once is not the memory of a query
        with Memory() as used:
            begin = clock()
            found = once()
            answer["seconds"] = clock() - begin
        output = found.nbytes if isinstance(found, pa.Table) else 0
        answer |= {"beyond": used.beyond, "input": events(task["path"]).nbytes, "output": output}
    if isinstance(found, pa.Table):
        answer["matches"], answer["checksum"] = sums(found)
    else:
        answer["matches"] = found
    del found
    if task.get("count"):
        gc.collect()
        begin = clock()
        answer["count"] = query(task["query"]).count(events(task["path"]))
        answer["count_seconds"] = clock() - begin
    return answer


def read(task: Task) -> Answer:
    """Arrow's own read of all columns, in one thread."""
    gc.collect()
    begin = time.perf_counter()
    pq.read_table(task["path"], use_threads=False)
    return {"seconds": time.perf_counter() - begin}


def known(task: Task) -> Answer:
    """The expected number of matches: by prefix sums if there is a formula, and by counting."""
    counts = {name: query(text).count(events(task["path"])) for name, text in task.get("also", {}).items()}
    shape = expected(task["shape"], events(task["path"]), task["window"]) if task.get("shape") else None
    return {"expected": shape, "also": counts}


def curve(task: Task) -> Answer:
    """How many matches the first parts of the events have, and how long they take."""
    chosen, table, points = query(task["query"]), events(task["path"]), []
    for part in PARTS:
        some = table.slice(0, round(table.num_rows * part))
        gc.collect()
        begin = time.process_time()
        matches = chosen.match(some, **task["how"]).num_rows
        points.append([matches, time.process_time() - begin])
    return {"curve": points}


def views(task: Task) -> Answer:
    """What all views of a run computed, used and held together."""
    explained = query(task["query"]).explain("json", analyze=events(task["path"]), **task["how"])
    found = explained["measured"]["views"]
    return {"views": {key: sum(view[key] for view in found) for key in found[0] if key != "variables"}}


def rules(task: Task) -> Answer:
    """A set of rules: planned, run together, some of them alone, and all of them one after the other."""
    from benchmarks.rule_set import rule_set

    table = events(task["path"])
    chosen_rules = dict(list(rule_set(1_000).items())[: task["rules"]])
    chosen = nestream.queries(chosen_rules)
    schema = nestream.Schema.of(table.schema, "ts", "type")
    chosen.match(table.slice(0, 1_000))
    sample = list(chosen_rules)[:: max(1, len(chosen_rules) // ALONE)][:ALONE]
    taken: dict[str, list[float]] = {"samples": [], "planned": [], "alone": [], "adding": []}
    found = 0
    for _ in range(task["repeats"]):
        begin = time.perf_counter()
        for name in sample:
            chosen[name].match(table)
        taken["alone"].append((time.perf_counter() - begin) / len(sample))
        begin = time.perf_counter()
        chosen.planned.clear()
        running = chosen.run(schema)
        taken["planned"].append(time.perf_counter() - begin)
        found = sum(matches.num_rows for matches in running.over(table))
        taken["samples"].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        chosen.adding("one more", chosen_rules[sample[-1]]).compiled(schema)
        taken["adding"].append(time.perf_counter() - begin)
    begin = time.perf_counter()
    apart = sum(chosen[name].match(table).num_rows for name in chosen_rules) if task["apart"] else found
    return {
        **{key: times if key == "samples" else min(times) for key, times in taken.items()},
        "apart": time.perf_counter() - begin,
        "ratios": [a / b for a, b in zip(taken["samples"], taken["alone"], strict=True)],
        "matches": found,
        "count": apart,
    }


TASKS: dict[str, Callable[[Task], Answer]] = {
    **{one.__name__: one for one in (turn, read, known, curve, views, rules)},
    **streaming.TASKS,
    **latency_worker.TASKS,
    **starting.TASKS,
}


def main() -> None:
    """Answer every line; an older revision that does not know a request says so."""
    print(json.dumps({"ready": True, "from": nestream.__file__}), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = TASKS[task.pop("do", "turn")](task)
        except Exception as error:  # the runner decides what to do about it
            answer = {"status": f"failed: {type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
