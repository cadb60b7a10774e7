"""The part of the composer that knows the strategies: a typed plan, and the program it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import pyarrow as pa

from nestream.compose.adapting import Adapting
from nestream.compose.choosing import Chosen, Seen, chosen_for, rewritten, settled
from nestream.compose.flat import Flat, flat_plan
from nestream.engine.program import LeafSpec, Options, Program, Switches, Views, options_of
from nestream.logical.nodes import Plan
from nestream.model.columns import per_microsecond
from nestream.model.schema import Kind, Schema
from nestream.physical.compile import compile_plan
from nestream.physical.mixing import compile_mixed
from nestream.reference import Order
from nestream.runtime.adaptive import AdaptiveRun
from nestream.runtime.local import LocalRun

VIEWS = {f"views-{kind}": kind for kind in Views}
"""The strategies that answer inner queries from views."""
STRATEGIES = ("auto", "reference", "nested", "flat", *VIEWS, "bounds")
"""How a query can be run. By the columnar engine: as the planner sees fit, by the papers' iterative nested
execution, rewritten to flat expressions that share their work, by nested execution with views of inner
queries, or with negations as bounds on the positive events. Or by the reference evaluator."""


SWITCHES = Options.names()
"""The techniques of the engine that `options` switches off by name."""


@dataclass(frozen=True)
class Run:
    """A plan typed for the events it runs over."""

    plan: Plan
    table: pa.Table
    schema: Schema
    kinds: Mapping[str, Kind]
    unit: str
    order: Order
    strategy: str = "auto"
    seen: Seen | None = None
    """What other queries have seen of the same events."""
    leaves: dict[LeafSpec, int] | None = None
    """The leaves of other programs over the same events."""

    def local(self, options: Switches | None = None, flat: Flat | None = None) -> LocalRun:
        """The columnar engine in this process, ready for the events."""
        return LocalRun(self.plan.output, self.program(options, flat), self.schema, self.kinds, self.unit)

    def adaptive(self, options: Switches | None = None) -> LocalRun:
        """The same for a stream, which is planned anew when its events change, where there is a choice."""
        own = replace(self, strategy="bounds").program(options)
        if settled(own, options_of(options), self.plan) is not None:
            return replace(self, strategy="bounds").local(options)

        planner = Adapting(self.plan, self.schema, own, partial(self.by, options=options))
        return AdaptiveRun(self.plan.output, own, self.schema, self.kinds, self.unit, planner)

    def chosen(self, options: Switches | None = None) -> Chosen:
        """The strategy that `auto` is for these events."""
        return self._chosen(options)[0]

    def _chosen(self, options: Switches | None) -> tuple[Chosen, Program]:
        """The same, with the program of the engine's own way."""
        own = replace(self, strategy="bounds").program(options)
        chosen = settled(own, options_of(options), self.plan)
        if chosen is None:
            seen = self.seen or Seen(self.schema, self.table)
            chosen = chosen_for(own, self.plan, seen, partial(rewritten, self.plan, own))
        return chosen, own

    def by(self, chosen: Chosen, options: Switches | None = None, flat: Flat | None = None) -> Program:
        """The program that a choice means: negations that can be are bounds, in whatever way they stand."""
        if chosen.strategy == "flat" or not chosen.parts:
            return replace(self, strategy=chosen.strategy).program(options, flat)
        by_arrival, scale = self.order is Order.ARRIVAL, per_microsecond(self.unit)
        plan = chosen.plan or self.plan
        options = options_of(options)
        return compile_mixed(plan, self.schema, scale, by_arrival, options, chosen.ways, self.leaves)

    def program(self, options: Switches | None = None, flat: Flat | None = None) -> Program:
        """What the engine runs; expressions share their work as a flat plan says, where there is one."""
        by_arrival = self.order is Order.ARRIVAL
        scale = per_microsecond(self.unit)
        if self.strategy == "auto":
            chosen, own = self._chosen(options)
            return own if chosen.strategy == "bounds" else self.by(chosen, options)
        if self.strategy == "flat" and flat is None:
            flat = flat_plan(self.plan, self.schema, self.table)
        return compiled(self.plan, self.schema, self.strategy, scale, by_arrival, options, self.leaves, flat)


def compiled(
    plan: Plan,
    schema: Schema | None,
    strategy: str,
    scale: int = 1,
    by_arrival: bool = False,
    options: Switches | None = None,
    leaves: dict[LeafSpec, int] | None = None,
    flat: Flat | None = None,
) -> Program:
    """The program of a plan by a strategy of the engine; `leaves` are those of other programs beside it."""
    options = options_of(options)
    if strategy != "flat":
        views = VIEWS.get(strategy)
        nested = strategy == "nested" or views is not None
        return compile_plan(
            plan, schema, scale, by_arrival, options, nested=nested, views=views, leaves=leaves
        )
    flat = flat or flat_plan(plan)
    groups = flat.shared.plan.groups
    return compile_plan(flat.normal.plan, schema, scale, by_arrival, options, groups=groups, leaves=leaves)


def check_lateness(lateness: int | timedelta) -> None:
    """Raise where events would have to be early."""
    if (lateness < timedelta()) if isinstance(lateness, timedelta) else (lateness < 0):
        raise ValueError(f"lateness must not be negative, got {lateness}")


def known_strategy(strategy: str) -> None:
    """Raise for a strategy that there is not, naming those there are."""
    if strategy not in STRATEGIES:
        raise ValueError(f"unknown strategy {strategy!r}: use one of {', '.join(STRATEGIES)}")


def known_order(order: str) -> Order:
    """The order of that name."""
    if order not in tuple(Order):
        raise ValueError(f"unknown order {order!r}: use one of {', '.join(Order)}")
    return Order(order)
