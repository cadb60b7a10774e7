"""The strategies: ways to run a query, each loaded by name on first use.

A strategy is a planner: a function from a typed plan to a program. The core runs any program and imports none
of the packages that make them, so a strategy can be added or left out without a change elsewhere. The
strategies of the papers are a distribution of their own, `nestream-papers`, which may not be installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from nestream import __version__
from nestream.logical.nodes import Plan, has_groups
from nestream.model.lazy import lazy
from nestream.model.time import Duration

if TYPE_CHECKING:
    import pyarrow as pa

    from nestream.engine.keeper import keep_keys
    from nestream.engine.program import LeafSpec, Program
    from nestream.model.extras import install
    from nestream.model.schema import Schema
else:
    (keep_keys,) = lazy("nestream.engine.keeper", "keep_keys")
    (install,) = lazy("nestream.model.extras", "install")

NATIVE_OPTIONS = frozenset({"memory"})
"""The options of the core. All others are switches of the papers' engine."""
SWITCHED = "nestream_papers.planner:blocks"
"""Runs `native` with a switch off: the papers' engine, which has the switches."""
NATIVE = "nestream.physical.planner:plan_native"
"""The planner of the core."""
PLANNERS: Mapping[str, str] = {
    "auto": NATIVE,
    "native": NATIVE,
    "nested": "nestream_papers.planner:nested",
    "flat": "nestream_papers.planner:flat",
    "views-aggressive": "nestream_papers.planner:views_aggressive",
    "views-passive": "nestream_papers.planner:views_passive",
    "views-balanced": "nestream_papers.planner:views_balanced",
}
ALIASES: Mapping[str, str] = {"bounds": "native"}
"""Older names of strategies, which still work."""
STRATEGIES = (*PLANNERS, "reference")
"""Every name of a strategy. The reference evaluator has no planner: it reads the plan itself."""

Options: TypeAlias = Any
"""Options by name in a mapping, or an object that has them as attributes."""


class StrategyError(ValueError):
    """A strategy that cannot run: its package is not installed, or it does not cover the query."""


class Planner(Protocol):
    """Makes the program of a plan."""

    def __call__(
        self,
        plan: Plan,
        schema: Schema | None,
        *,
        options: Options,
        leaves: dict[LeafSpec, int] | None,
        events: pa.Table | None,
        whole: bool,
    ) -> Program:
        """Make the program of a plan typed for a schema; without a schema, a program to explain.

        The leaves of the program are added to `leaves`, which other programs over the same events share. A
        planner may look at the `events`: at the first ones, or with `whole` at all of them.
        """


def program_of(
    plan: Plan,
    schema: Schema | None,
    strategy: str,
    *,
    options: Options | None = None,
    leaves: dict[LeafSpec, int] | None = None,
    events: pa.Table | None = None,
    whole: bool = False,
) -> Program:
    """Make the program of a plan with a strategy."""
    known_strategy(strategy)
    known_options(options)
    planned = PLANNERS[ALIASES.get(strategy, strategy)]
    target = SWITCHED if planned == NATIVE and not _is_native(options) else planned
    if target != NATIVE and has_groups(plan):
        raise StrategyError(
            "groups do not run with "
            + ("these options" if planned == NATIVE else f"strategy {strategy}")
            + "\n  hint: use strategy auto, without the switches of the papers"
        )
    planner: Planner = _found(target)
    program = planner(plan, schema, options=options, leaves=leaves, events=events, whole=whole)
    if plan.keep is None:
        return program
    every = plan.keep.every
    if isinstance(every, Duration):
        scale = 1 if schema is None else schema.per_microsecond
        every = min(every.microseconds * scale, 2**63 - 1)
    keep = replace(plan.keep, every=every)
    return replace(program, keep=keep, keep_keys=keep_keys(program, keep))


def known_strategy(strategy: str) -> None:
    """Raise for an unknown strategy, with a list of the known ones, and for one that is not installed."""
    if strategy not in STRATEGIES and strategy not in ALIASES:
        raise ValueError(f"unknown strategy {strategy!r}: use one of {', '.join(STRATEGIES)}")
    if PLANNERS.get(strategy, NATIVE) != NATIVE:
        _require_papers(f"strategy {strategy!r}")


def known_options(options: Options | None) -> None:
    """Raise for an unknown option, for a value of the wrong kind, and for a switch that is not installed."""
    if isinstance(options, str | bytes | list | tuple | set):
        raise TypeError(
            f"options must be a mapping from names to values, not {options!r}\n"
            '  hint: write options={"memory": 1 << 30}'
        )
    if _is_native(options):
        for name, value in (options or {}).items():
            if type(value) is not int or value < 1:
                raise ValueError(f"the option {name} must be a number of at least 1, not {value!r}")
    else:
        tool("options_of", f"every option but {', '.join(NATIVE_OPTIONS)}")(options)


def switches() -> tuple[str, ...]:
    """The techniques that can be switched off, by name; none without nestream-papers."""
    if papers_problem() is not None:
        return ()
    names: tuple[str, ...] = tool("switches", "a switch")()
    return names


def tool(name: str, what: str) -> Any:
    """A function of the papers' planner that is not a strategy: it rewrites, estimates or explains plans.

    `what` names what the user asked for, for the error if it is not installed.
    """
    _require_papers(what)
    return _found(f"nestream_papers.planner:{name}")


def papers_problem() -> str | None:
    """What keeps the strategies of the papers from running, such as "not installed"; None if they run.

    They use the inner parts of nestream, so they run with exactly the version that they were made for.
    """
    try:
        papers = import_module("nestream_papers")
    except ModuleNotFoundError as missing:
        if missing.name != "nestream_papers":
            raise
        return "not installed"
    found = getattr(papers, "__version__", None)
    if found is None:  # a folder of that name that is left over
        return "not installed"
    return None if found == __version__ else f"version {found}, while nestream is {__version__}"


def install_papers() -> str:
    """The command that installs the strategies of the papers, in a checkout of nestream."""
    return install("./src/nestream_papers")


def _require_papers(what: str) -> None:
    problem = papers_problem()
    if problem is not None:
        raise StrategyError(
            f"{what} is part of nestream-papers, which is {problem}\n"
            f"  hint: in a checkout of nestream {__version__}: {install_papers()}"
        )


def _is_native(options: Options | None) -> bool:
    """Whether only options of the core are set."""
    return options is None or (isinstance(options, Mapping) and NATIVE_OPTIONS.issuperset(options))


def _found(target: str) -> Any:
    module, name = target.split(":")
    return getattr(import_module(module), name)
