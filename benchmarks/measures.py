"""Measures a group of benchmarks: which programs run, what they do, and which results must agree."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import nestream
from benchmarks import peers_programs as programs
from benchmarks.events import events_file
from benchmarks.process import Program
from benchmarks.spec import BenchError, Benchmark, Results, Run
from benchmarks.turns import Contestant, agreed, in_turns, ratios, summed_up

LONG = 1_800.0
"""Seconds that a task of a worker may take."""
WORKER = (sys.executable, "-m", "benchmarks.worker")
SPARK = (sys.executable, "-m", "benchmarks.spark_worker")
CLUSTER = (sys.executable, "-m", "benchmarks.scale_worker")
THREADS = "threads" in inspect.signature(nestream.Query.match).parameters
"""Whether `match` has an option for the number of threads."""


def _path(benchmark: Benchmark, how: Run) -> Path:
    return events_file(benchmark.data, benchmark.data.events(how.events), how.folder)


def _task(benchmark: Benchmark, run: Run, **more: Any) -> dict[str, Any]:
    return {"path": str(_path(benchmark, run)), "query": benchmark.text, **benchmark.task, **more}


def _asked(program: Program, task: Mapping[str, Any]) -> dict[str, Any]:
    said = program.ask(task)
    if said is None or "status" in said:
        raise BenchError(f"{(said or {}).get('status', program.status)}: {dict(task)}")
    return said


def _finished(name: str, found: Results) -> None:
    """What is ours must have finished."""
    for way, result in found.items():
        if "best" not in result:
            raise BenchError(f"{name}, {way}: {result['status']}".lstrip(", "))


def together(group: list[Benchmark], how: Run) -> Results:
    """The benchmarks of the group take turns in one process; the matches are counted in other ways too."""
    with Program(WORKER, seconds=LONG, memory=2**62) as worker:
        found = in_turns([Contestant(one.name, worker, _task(one, how)) for one in group], how.repeats)
        _finished("", found)
        for one in group:
            if one.shape:
                task = _task(one, how, do="known", shape=one.shape, window=one.window)
                found[one.name]["expected"] = _asked(worker, task)["expected"]
    for one in group:
        _counted(one.name, found[one.name])
    return found


def _counted(name: str, result: dict[str, Any]) -> None:
    """`count` and the prefix sums must find as many as there are matches."""
    counts = {
        "matches": result.get("matches"),
        "count()": result.get("count"),
        "sums": result.get("expected"),
    }
    agreed(name, {who: {"matches": count} for who, count in counts.items() if count is not None})


def alone(group: list[Benchmark], how: Run) -> Results:
    """One task in a process of its own."""
    (one,) = group
    with Program(WORKER, seconds=LONG, memory=2**62) as worker:
        found = _asked(worker, _task(one, how, repeats=how.repeats))
    if "samples" in found:
        found |= summed_up(found["samples"])
    _counted(one.name, found)
    return {one.name: found}


def memory(group: list[Benchmark], how: Run) -> Results:
    """Each way once, in a process of its own, so that none uses memory that another has left."""
    (one,) = group
    found: dict[str, Any] = {}
    for way, task in one.ways.items():
        with Program(WORKER, seconds=LONG, memory=2**62) as worker:
            found[way] = _asked(worker, _task(one, how, **task))
            check = _task(one, how, do="known", shape=one.shape, window=one.window)
            known = _asked(worker, check)["expected"]
            _counted(f"{one.name}, {way}", {**found[way], "expected": known})
    agreed(one.name, {way: {"matches": result["matches"]} for way, result in found.items()})
    return {one.name: {**found, "matches": found[way]["matches"], "input": found[way]["input"]}}


def ways(group: list[Benchmark], how: Run) -> Results:
    """The ways to run a query take turns in one process, by processor time; all find the same matches."""
    results = {}
    with Program(WORKER, seconds=how.limit) as worker:
        for one in group:
            tasks = {way: _task(one, how, how=given) for way, given in one.ways.items()}
            found = in_turns(
                [Contestant(way, worker, {**task, "clock": "processor"}) for way, task in tasks.items()],
                how.repeats,
            )
            _finished(one.name, found)
            for way, result in found.items():
                if one.told.get("curve"):
                    result |= _asked(worker, {**tasks[way], "do": "curve"})
                if one.told.get("counted") and one.ways[way].get("strategy", "").startswith("views-"):
                    result |= _asked(worker, {**tasks[way], "do": "views"})
            base = found[one.told.get("base", next(iter(found)))]
            results[one.name] = {
                **agreed(one.name, found),
                **(
                    {"also": _asked(worker, _task(one, how, do="known"))["also"]}
                    if "also" in one.task
                    else {}
                ),
                "ways": found,
                "ratios": {
                    way: ratios(base["samples"], result["samples"])
                    for way, result in found.items()
                    if result is not base
                },
            }
    return results


def beside(group: list[Benchmark], how: Run) -> Results:
    """nestream and other programs take turns, each in its own process; all find the same matches."""
    (one,) = group
    absent = {peer: reason for peer in one.peers if (reason := programs.missing(peer.name))}
    present = [peer for peer in one.peers if peer not in absent]
    told: list[dict[str, Any]] = [{**vars(peer), "status": reason} for peer, reason in absent.items()]
    if not present:
        return {one.name: {"peers": told}}
    path = _path(one, how)
    threads = sorted({1, *(peer.threads for peer in present)}) if THREADS else [1]
    with ExitStack() as running:
        contestants = []
        for number in threads:
            worker = running.enter_context(Program(WORKER, seconds=how.limit))
            given = {"how": {"threads": number}} if THREADS else {}
            contestants.append(Contestant(f"nestream, {number}", worker, _task(one, how, **given)))
        for peer in present:
            command = programs.command(peer, one.shape, path, one.window)
            program = running.enter_context(Program(command, seconds=how.limit))
            contestants.append(Contestant(str(peer), program))
        found = in_turns(contestants, how.repeats)
    ours = {str(number): found[f"nestream, {number}"] for number in threads}
    _finished(one.name, ours)
    for peer in present:
        result = found[str(peer)]
        if "best" in result:
            own = ours.get(str(peer.threads), ours["1"])
            result |= {
                "ratio": result["best"] / own["best"],
                "ratios": ratios(result["samples"], own["samples"]),
            }
        told.append({**vars(peer), **result, "lines": programs.lines(peer, one.shape)})
    return {one.name: {**agreed(one.name, found), "ours": ours, "peers": told}}


def spark(group: list[Benchmark], how: Run) -> Results:
    """Jobs take turns in one Spark session; those that are compared must find the same matches."""
    results: dict[str, Any] = {}
    with Program(SPARK, seconds=LONG, memory=2**62) as worker:
        for one in group:
            task = {**_task(one, how), "limit": how.limit}
            if not one.ways:
                results[one.name] = _asked(worker, {**task, "events": how.events})
                continue
            jobs = [Contestant(way, worker, {**task, **job}) for way, job in one.ways.items()]
            found = in_turns(jobs, how.repeats)
            _finished(
                one.name, {way: job for way, job in found.items() if job["status"].startswith("failed")}
            )
            results[one.name] = {**agreed(one.name, found), "ways": found}
    return results


def cluster(group: list[Benchmark], how: Run) -> Results:
    """Tasks one after the other on a cluster that is started once."""
    results = {}
    with Program(CLUSTER, seconds=LONG, memory=2**62) as worker:
        for one in group:
            results[one.name] = _asked(worker, _task(one, how, repeats=how.repeats))
            _counted(one.name, results[one.name])
    return results


MEASURES: dict[str, Callable[[list[Benchmark], Run], Results]] = {
    measure.__name__: measure for measure in (together, alone, memory, ways, beside, spark, cluster)
}
