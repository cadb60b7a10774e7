"""Queries by several strategies and with several switches, in turns in one process; suites of these."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from itertools import groupby
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import nestream
from nestream.bench.files import cache_folder, events_file
from nestream.bench.process import limited
from nestream.bench.run import BenchError, Progress, Run, chosen_of, outcome
from nestream.bench.spec import Benchmark, Figures, Suite
from nestream.bench.turns import summed_up

Way = Mapping[str, Any]
"""What `match` is called with: a strategy, and options."""
_NOT_TOLD = ("ways", "folded", "base", "counted", "also", "curve")
"""The settings that say how to measure, not what."""
SLOW = 10.0
"""A way that takes so many seconds is not run again."""
PARTS = (0.25, 0.5, 0.75)
"""Parts of the events, from the first on, that are run as well: times over the matches found until then."""


# -- in a process of its own -------------------------------------------------------------------------------


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """Each query in each of its ways, in turns: the seconds of the processor, and the matches."""
    return {run["name"]: _in_turns(run, task["repeats"]) for run in task["runs"]}


def _in_turns(run: dict[str, Any], repeats: int) -> dict[str, Any]:
    query = nestream.query(run["query"])
    table = folded(pq.read_table(run["path"], use_threads=False), run.get("folded", {}))
    results: dict[str, Any] = {way: {"samples": []} for way in run["ways"]}
    ways = list(run["ways"].items())
    for turn in range(repeats + 1):
        first = turn % len(ways)  # what runs before leaves the caches of the processor as it likes
        for way, how in (*ways[first:], *ways[:first]):
            found = results[way]
            if found.get("slow"):
                continue
            gc.collect()
            begin = time.process_time()
            matches = query.match(table, **how)
            spent = time.process_time() - begin
            found["slow"] = spent > SLOW
            if turn or found["slow"]:  # what is done once in a process is not measured
                found["samples"].append(spent)
            found["matches"], found["checksum"] = sums_of(matches)
            del matches
    if run.get("curve"):
        for way, how in run["ways"].items():
            results[way]["curve"] = _curve(query, table, how) if not results[way]["slow"] else []
    if run.get("counted"):
        for way, how in run["ways"].items():
            if how.get("strategy", "").startswith("views-"):
                results[way]["views"] = _counted(query, table, how)
    found = {way: summed_up(result) for way, result in results.items()}
    also = {name: nestream.query(text).count(table) for name, text in run.get("also", {}).items()}
    return {**found, "also": also} if also else found


def _curve(query: nestream.Query, table: pa.Table, how: Way) -> list[list[float]]:
    """How many matches the first parts of the events have, and how long they take."""
    points = []
    for part in PARTS:
        some = table.slice(0, round(table.num_rows * part))
        gc.collect()
        begin = time.process_time()
        matches = query.match(some, **how).num_rows
        points.append([matches, time.process_time() - begin])
    return points


def _counted(query: nestream.Query, table: pa.Table, how: Way) -> dict[str, int]:
    """What all the views of a run computed, used and held together."""
    found = query.explain("json", analyze=table, **how)["measured"]["views"]
    names = [name for name in found[0] if name != "variables"]
    return {name: sum(view[name] for view in found) for name in names}


def folded(table: pa.Table, types: Mapping[str, int]) -> pa.Table:
    """The trades with only so many different amounts for some tickers."""
    for name, count in types.items():
        amounts = table.column("amount")
        few = pa.chunked_array([pa.array((amounts.to_numpy() // 10 - 1) % count * 10 + 10)])
        own = pc.equal(table.column("type").cast(pa.string()), name)
        place = table.column_names.index("amount")
        table = table.set_column(place, "amount", pc.if_else(own, few, amounts))
    return table


def sums_of(matches: pa.Table) -> tuple[int, int]:
    """The matches, and the sum of their times: the first event's once, the second's twice, and so on."""
    events = [name for name in matches.column_names if pa.types.is_struct(matches.schema.field(name).type)]
    times = [pc.struct_field(matches.column(name), "ts").cast(pa.int64()) for name in events]
    return matches.num_rows, sum(step * (pc.sum(column).as_py() or 0) for step, column in enumerate(times, 1))


# -- a suite -----------------------------------------------------------------------------------------------


def run_ways(suite: Suite, how: Run, progress: Progress = lambda what, done, total: None) -> dict[str, Any]:
    """The results of a suite whose benchmarks have ways, as plain data in the shape of the other suites."""
    chosen = chosen_of(suite, how.only)
    load, done = os.getloadavg()[0], 0
    results: dict[str, dict[str, Any]] = {}
    for experiment, members in groupby(chosen, lambda benchmark: benchmark.settings["experiment"]):
        progress(experiment, done, len(chosen))
        load = max(load, os.getloadavg()[0])
        benchmarks = list(members)
        runs = [_run(benchmark, how) for benchmark in benchmarks]
        found = _worker(experiment, {"measure": "ways", "repeats": how.repeats, "runs": runs}, how.limit)
        for benchmark in benchmarks:
            results[benchmark.name] = _result(benchmark, how, found[benchmark.name])
        done += len(benchmarks)
    progress("done", len(chosen), len(chosen))
    return outcome(suite, how, results, load)


def _run(benchmark: Benchmark, how: Run) -> dict[str, Any]:
    count = benchmark.data.events(how.events)
    path = events_file(benchmark.data, count, how.folder or cache_folder())
    settings = benchmark.settings
    return {
        "name": benchmark.name,
        "path": str(path),
        "query": benchmark.text,
        "ways": settings["ways"],
        "folded": settings.get("folded", {}),
        "counted": settings.get("counted", False),
        "curve": settings.get("curve", False),
        "also": settings.get("also", {}),
    }


def _result(benchmark: Benchmark, how: Run, found: dict[str, Any]) -> dict[str, Any]:
    settings = benchmark.settings
    told = {key: value for key, value in settings.items() if key not in _NOT_TOLD}
    told |= {"also": found.pop("also")} if "also" in found else {}
    return {
        "title": benchmark.title,
        "query": benchmark.text,
        "events": benchmark.data.events(how.events),
        **told,
        **agreed(benchmark.name, found),
        "ways": found,
        "ratios": ratios(found, settings.get("base")),
    }


def _worker(name: str, task: dict[str, Any], limit: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "nestream.bench.worker"]
    outcome = limited(command, input=json.dumps(task) + "\n", seconds=limit, memory=8 * 2**30)
    if not outcome.lines:
        raise BenchError(f"{name}: the measurement {outcome.status}")
    return outcome.lines[-1]


def agreed(name: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The matches, which every way must have found."""
    sums = {way: (result["matches"], result["checksum"]) for way, result in found.items()}
    if len(set(sums.values())) > 1:
        raise BenchError(f"{name}: the ways find different matches: {sums}")
    matches, checksum = next(iter(sums.values()))
    return {"matches": matches, "checksum": checksum}


def ratios(found: Mapping[str, Mapping[str, Any]], base: str | None = None) -> dict[str, dict[str, float]]:
    """How many times as long a way takes as each other: the middle, the least and the greatest of the turns.

    That is the first way unless told. Where it is slow and was not run again, its last time stands for it.
    """
    base = base or next(iter(found))
    slow = found[base]["samples"]
    ratio = {}
    for way, result in found.items():
        if way != base:
            fast = result["samples"]
            times = [a / b for a, b in zip([*slow, *slow[-1:] * len(fast)], fast, strict=False)]
            ratio[way] = {"middle": median(times), "least": min(times), "greatest": max(times)}
    return ratio


def ratio_of(name: str, way: str) -> Callable[[Figures], float | None]:
    """The figure of a target: how many times as long the first way of a benchmark takes."""
    return lambda figures: float(figures[name]["ratios"][way]["middle"])
