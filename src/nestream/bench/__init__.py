"""Benchmarks: what is measured is declared, run in processes of its own, checked, and written as a page."""

from nestream.bench.engine import ENGINE
from nestream.bench.files import repository
from nestream.bench.predicates import PREDICATES
from nestream.bench.report import replaced, section
from nestream.bench.rewriting import REWRITING, run_rewriting
from nestream.bench.run import BenchError, Run, run
from nestream.bench.sase import SASE, run_sase
from nestream.bench.sets import SETS
from nestream.bench.spec import Benchmark, Suite
from nestream.bench.strategies import STRATEGIES
from nestream.bench.views import VIEWS, run_views
from nestream.bench.ways import run_ways

_ALL = (ENGINE, REWRITING, SASE, SETS, VIEWS, PREDICATES, STRATEGIES)
SUITES = {suite.name: suite for suite in _ALL}

__all__ = [
    "SUITES",
    "BenchError",
    "Benchmark",
    "Run",
    "Suite",
    "replaced",
    "repository",
    "run",
    "run_rewriting",
    "run_sase",
    "run_views",
    "run_ways",
    "section",
]
