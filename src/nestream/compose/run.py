"""The part of the composer that makes a query ready for its events: a typed plan and its program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from nestream.engine.keeper import endless
from nestream.engine.program import Program
from nestream.logical.nodes import Plan
from nestream.model.columns import per_microsecond
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.schema import Kind, Schema
from nestream.reference import Order
from nestream.runtime.local import LocalRun
from nestream.strategies import Options, program_of


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

    def local(self, options: Options | None = None, *, whole: bool = False) -> LocalRun:
        """The columnar engine in this process, ready for the events."""
        program = self.program(options, whole=whole)
        return LocalRun(self.plan.output, program, self.schema, self.kinds, self.unit)

    def program(self, options: Options | None = None, *, whole: bool = False) -> Program:
        """The program of the strategy, which may look at the first events, or at the `whole` table."""
        return program_of(
            self.plan,
            self.schema,
            self.strategy,
            scale=per_microsecond(self.unit),
            by_arrival=self.order is Order.ARRIVAL,
            options=options,
            events=self.table,
            whole=whole,
        )


def refuse_endless(plan: Plan, text: str) -> None:
    """Raise where a stream would never know which matches KEEP keeps."""
    if plan.keep is None:
        return
    reason = endless(program_of(plan, None, "native"))
    if reason is not None:
        said = Diagnostic(
            "endless-keep",
            f"a stream never knows the {plan.keep.kind.lower()} match: {reason}",
            plan.keep.span,
            hint="name a variable in PER, and give the query a window; or write KEEP FIRST",
        )
        raise QueryError([said], text)


def known_order(order: str) -> Order:
    """The order of that name."""
    if order not in tuple(Order):
        raise ValueError(f"unknown order {order!r}: use one of {', '.join(Order)}")
    return Order(order)


def known_threads(threads: int | None) -> int:
    """The number of threads that is asked for, one for each core that this process may use by default."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads is a number from 1 on, not {threads!r}")
    return threads
