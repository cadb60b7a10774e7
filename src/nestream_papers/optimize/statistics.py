"""Statistics of events: rates of types, numbers of values of attributes, and selectivities of predicates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.columns import computable, field_of
from nestream.model.event_types import ANY_TYPE
from nestream.model.schema import Kind, Schema, kind_of


@dataclass(frozen=True)
class Share:
    """For how many of the tested events, or pairs of events, a predicate held."""

    held: float
    tested: float

    @property
    def ratio(self) -> float:
        """The share, kept off 0 and 1 by half a test, because a sample never proves either."""
        return (self.held + 0.5) / (self.tested + 1.0)


@dataclass(frozen=True)
class Statistics:
    """Counts of events over the time from `begin` to `end`, in the unit of the time column.

    `counts` holds the number of events by type, `domains` the number of values of each column, `shares` the
    predicates by their text.
    """

    begin: float = math.inf
    end: float = -math.inf
    counts: Mapping[str, float] = field(default_factory=dict)
    domains: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: pa.Table,
        schema: Schema,
        attributes: Iterable[str] = (),
        *,
        shares: Mapping[str, Share] | None = None,
    ) -> Statistics:
        """The statistics of some events, with the domains of these attributes. Times are in microseconds."""
        if not table.num_rows:
            return cls()
        times = times_of(table, schema)
        begin, end = float(times.min()), float(times.max())
        codes = pc.dictionary_encode(table.column(schema.type).cast(pa.string())).combine_chunks()
        totals = np.bincount(codes.indices.to_numpy(zero_copy_only=False))
        domains = {
            name: _distinct(field_of(table.column(schema.column(name)), name))
            for name in dict.fromkeys(attributes)
            if schema.column(name) in schema.columns
        }
        counts = dict(zip(codes.dictionary.to_pylist(), map(float, totals), strict=True))
        return cls(begin, end, counts, domains, dict(shares or {}))

    @property
    def events(self) -> float:
        """How many events there were."""
        return sum(self.counts.values())

    @property
    def span(self) -> float:
        """The length of time that the counts cover."""
        return max(self.end - self.begin, 0.0)

    def count(self, types: Iterable[str]) -> float:
        """How many events of these types there were."""
        types = tuple(types)
        if ANY_TYPE in types:
            return self.events
        return sum(self.counts.get(name, 0.0) for name in types)

    def domain(self, attribute: str) -> float | None:
        """How many values a column takes; None if unknown."""
        return self.domains.get(attribute)

    def scaled(self, factor: float) -> Statistics:
        """The statistics of that many times the events, at the same rates."""
        counts = {name: count * factor for name, count in self.counts.items()}
        return replace(self, end=self.begin + (self.end - self.begin) * factor, counts=counts)

    # -- as plain data -------------------------------------------------------------------------------------

    def described(self) -> dict[str, Any]:
        """What a reader wants to see: rates, domain sizes and selectivities."""
        total = self.events or 1.0
        return {
            "events": round(self.events, 1),
            "span": round(self.span, 1),
            "share of events": {name: round(n / total, 6) for name, n in sorted(self.counts.items())},
            "domains": {name: round(self.domain(name) or 0) for name in sorted(self.domains)},
            "selectivities": {text: round(share.ratio, 6) for text, share in sorted(self.shares.items())},
        }


def times_of(table: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
    """The times of the events: timestamps in microseconds, like windows; integers as they are."""
    column = table.column(schema.time)
    times: npt.NDArray[np.int64] = computable(column, schema.unit).to_numpy(zero_copy_only=False)
    return times if kind_of(column.type) is Kind.INTEGER else times // schema.per_microsecond


def _distinct(column: pa.ChunkedArray) -> float:
    """How many values a column takes, at least one; lists and structures are not compared."""
    if pa.types.is_nested(column.type):
        return 1.0
    return float(max(len(column.unique().drop_null()), 1))
