"""Prepares a query for its events: a typed plan, compiled by a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from nestream.compose.settings import Settings
from nestream.engine.keeper import endless
from nestream.engine.program import LeafSpec
from nestream.logical.nodes import Plan
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.schema import Kind, Schema
from nestream.runtime.compiled import CompiledQuery
from nestream.strategies import program_of


@dataclass(frozen=True)
class Run:
    """A plan typed for the events it runs over; the table is empty if they are still to come."""

    plan: Plan
    schema: Schema
    kinds: Mapping[str, Kind]
    settings: Settings
    table: pa.Table

    def compiled(
        self, *, whole: bool = False, leaves: dict[LeafSpec, int] | None = None, name: str = ""
    ) -> CompiledQuery:
        """The query compiled by the strategy, which may look at the first events, or at the `whole` table.

        In a set, it has a `name`, and its leaves are added to the `leaves` that all queries share.
        """
        program = program_of(
            self.plan,
            self.schema,
            self.settings.strategy,
            options=self.settings.options,
            leaves=leaves,
            events=self.table,
            whole=whole,
        )
        return CompiledQuery(self.schema, self.plan.output, self.kinds, program, self.plan.limit, name)


def refuse_endless(plan: Plan, text: str) -> None:
    """Raise if a stream could never decide which matches KEEP keeps."""
    if plan.keep is None:
        return
    reason = endless(program_of(plan, None, "native"))
    if reason is not None:
        said = Diagnostic(
            "endless-keep",
            f"a stream never knows the {plan.keep.kind.lower()} match: {reason}",
            plan.keep.span,
            hint="name a variable in PER and add a window, or write KEEP FIRST",
        )
        raise QueryError([said], text)
