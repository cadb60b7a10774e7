"""Benchmarks: what is measured is declared, run in processes of its own, checked, and written as a page."""

from collections.abc import Callable
from functools import partial
from typing import Any

from nestream.bench.engine import ENGINE
from nestream.bench.files import repository
from nestream.bench.page import kept, written
from nestream.bench.peers import PEERS_SUITE
from nestream.bench.peers_run import run_peers
from nestream.bench.predicates import PREDICATES
from nestream.bench.report import section
from nestream.bench.reporting import Report, Size
from nestream.bench.rewriting import REWRITING
from nestream.bench.run import BenchError, Progress, Run, run
from nestream.bench.sase import SASE
from nestream.bench.scaling import SCALING
from nestream.bench.sets import SETS
from nestream.bench.spark import SPARK, run_spark
from nestream.bench.spec import Benchmark, Suite
from nestream.bench.strategies import STRATEGIES
from nestream.bench.views import VIEWS
from nestream.bench.ways import run_ways

SUITES = {
    suite.name: suite
    for suite in (ENGINE, REWRITING, SASE, SETS, VIEWS, PREDICATES, STRATEGIES, SCALING, SPARK, PEERS_SUITE)
}
RUNNERS: dict[str, Callable[..., dict[str, Any]]] = {
    **{suite.name: partial(run, suite) for suite in (ENGINE, SETS, SCALING)},
    **{suite.name: partial(run_ways, suite) for suite in (REWRITING, SASE, VIEWS, PREDICATES, STRATEGIES)},
    SPARK.name: run_spark,
    PEERS_SUITE.name: run_peers,
}
"""How each suite is run, given a `Run` and where to tell the progress."""

__all__ = [
    "RUNNERS",
    "SUITES",
    "BenchError",
    "Benchmark",
    "Progress",
    "Report",
    "Run",
    "Size",
    "Suite",
    "kept",
    "repository",
    "run",
    "run_ways",
    "section",
    "written",
]
