"""Where the time of a query goes: it is run for a while, and looked at every half millisecond."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import nestream
from nestream.bench.files import cache_folder, events_file
from nestream.bench.run import BenchError
from nestream.bench.spec import Benchmark, Suite

INTERVAL = 0.0005
SECONDS = 2.0
"""How long a query is run at least, again and again."""


@dataclass(frozen=True)
class Profile:
    """What was seen, for a terminal and for a browser."""

    text: str
    html: str
    runs: int
    seconds: float


def profiled(
    query: nestream.Query, table: pa.Table, how: Mapping[str, Any], *, seconds: float = SECONDS
) -> Profile:
    """Run a query over events for a while and tell where the time goes."""
    from pyinstrument import Profiler

    query.match(table, **how)  # what is done once is not looked at
    profiler = Profiler(interval=INTERVAL)
    runs, begin = 0, time.perf_counter()
    profiler.start()
    while not runs or time.perf_counter() - begin < seconds:
        query.match(table, **how)
        runs += 1
    spent = time.perf_counter() - begin
    profiler.stop()
    text = profiler.output_text(unicode=True, show_all=False)
    return Profile(text, profiler.output_html(), runs, spent)


def benchmark_of(suites: Mapping[str, Suite], name: str) -> Benchmark | None:
    """The benchmark of this name, such as `engine/not-seq`; None where no suite has it."""
    suite, _, rest = name.partition("/")
    if suite not in suites:
        return None
    for benchmark in suites[suite].benchmarks:
        if benchmark.name == rest:
            if not benchmark.query:
                raise BenchError(f"{name} is not a single query")
            return benchmark
    names = ", ".join(one.name for one in suites[suite].benchmarks if one.query)
    raise BenchError(f"{suite} has no benchmark {rest!r}. It has {names}.")


def events_of(benchmark: Benchmark, suite: Suite, events: int | None) -> pa.Table:
    """The events of a benchmark."""
    import pyarrow.parquet as pq

    count = benchmark.data.events(events or suite.events)
    return pq.read_table(events_file(benchmark.data, count, cache_folder()))
