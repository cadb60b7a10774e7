"""All suites, in the order of the page."""

from __future__ import annotations

from benchmarks.engine import ENGINE
from benchmarks.experiments import papers
from benchmarks.groups import GROUPS
from benchmarks.latency import LATENCY
from benchmarks.rivals import RIVALS
from benchmarks.scale import SCALE
from benchmarks.scaling import SCALING
from benchmarks.sets import SETS
from benchmarks.spark import SPARK
from benchmarks.spec import Suite
from benchmarks.strategies import STRATEGIES

_PAPERS = {name: papers()[name].suite() for name in ("rewriting", "sase", "views", "predicates")}
SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        ENGINE,
        _PAPERS["rewriting"],
        _PAPERS["sase"],
        SETS,
        _PAPERS["views"],
        _PAPERS["predicates"],
        STRATEGIES,
        SCALING,
        SPARK,
        LATENCY,
        SCALE,
        RIVALS,
        GROUPS,
    )
}
