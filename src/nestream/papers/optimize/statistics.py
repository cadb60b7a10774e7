"""What is known of the events: how often each type arrives, how many values its attributes take, and which
share of the events, or of pairs of them, a predicate holds of.

Statistics of parts are merged into those of the whole, in any order and grouping, so they can be gathered by
batch and by partition. With a half-life an event counts for 2^(-age / half-life), measured from the latest
event: then they follow a stream that changes, and what was merged long ago fades by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.columns import computable, per_microsecond, resolution
from nestream.model.schema import Kind, Schema, kind_of
from nestream.papers.optimize.sketch import Sketch


@dataclass(frozen=True)
class Share:
    """How many of the tested events, or of the tested pairs of events, a predicate held of."""

    held: float
    tested: float

    @property
    def ratio(self) -> float:
        """The share, kept off 0 and 1 by half a test, for a sample never proves either."""
        return (self.held + 0.5) / (self.tested + 1.0)


@dataclass(frozen=True)
class Statistics:
    """Counts of events over the time from `begin` to `end`, in the unit of the time column.

    `counts` holds the (faded) number of events by type, `domains` a sketch of the values of each column by
    epoch, `shares` the predicates by their text. An epoch is one half-life; the last two are kept.
    """

    begin: float = math.inf
    end: float = -math.inf
    half_life: float | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    domains: Mapping[str, Mapping[int, Sketch]] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: pa.Table,
        schema: Schema,
        attributes: Iterable[str] = (),
        *,
        half_life: float | None = None,
        shares: Mapping[str, Share] | None = None,
    ) -> Statistics:
        """The statistics of some events, with the domains of these attributes. Times are in microseconds."""
        if not table.num_rows:
            return cls(half_life=half_life)
        times = times_of(table, schema)
        begin, end = float(times.min()), float(times.max())
        codes = pc.dictionary_encode(table.column(schema.type).cast(pa.string())).combine_chunks()
        weights = None if half_life is None else np.exp2((times - end) / half_life)
        totals = np.bincount(codes.indices.to_numpy(zero_copy_only=False), weights)
        epoch = 0 if half_life is None else math.floor(end / half_life)
        domains = {
            name: {epoch: Sketch.of(table.column(schema.column(name)))}
            for name in dict.fromkeys(attributes)
            if schema.column(name) in schema.columns
        }
        counts = dict(zip(codes.dictionary.to_pylist(), map(float, totals), strict=True))
        return cls(begin, end, half_life, counts, domains, dict(shares or {}))

    @property
    def events(self) -> float:
        """How many events there were, older ones counting less."""
        return sum(self.counts.values())

    @property
    def span(self) -> float:
        """The length of time that the counts stand for: as the events in it, older time counts less."""
        length = max(self.end - self.begin, 0.0)
        if self.half_life is None:
            return length
        return self.half_life / math.log(2) * -math.expm1(-length / self.half_life * math.log(2))

    def count(self, types: Iterable[str]) -> float:
        """How many events of these types there were."""
        return sum(self.counts.get(name, 0.0) for name in types)

    def domain(self, attribute: str) -> float | None:
        """How many values a column takes; None where nothing is known of it."""
        epochs = self.domains.get(attribute)
        if not epochs:
            return None
        both = Sketch()
        for sketch in epochs.values():
            both = both.merged(sketch)
        return max(both.distinct, 1.0)

    def merged(self, other: Statistics) -> Statistics:
        """The statistics of both, as of the later end."""
        if not other.counts or not self.counts:
            kept, empty = (self, other) if self.counts else (other, self)
            return replace(kept, half_life=kept.half_life or empty.half_life)
        if self.half_life != other.half_life:
            raise ValueError(f"half-lives of {self.half_life} and {other.half_life} do not go together")
        end = max(self.end, other.end)
        mine, theirs = self._faded(end), other._faded(end)
        counts, shares = dict(mine.counts), dict(mine.shares)
        for name, count in theirs.counts.items():
            counts[name] = counts.get(name, 0.0) + count
        for text, share in theirs.shares.items():
            known = shares.get(text, Share(0.0, 0.0))
            shares[text] = Share(known.held + share.held, known.tested + share.tested)
        names = dict.fromkeys([*mine.domains, *theirs.domains])
        domains = {name: _merged(mine.domains.get(name, {}), theirs.domains.get(name, {})) for name in names}
        return Statistics(min(self.begin, other.begin), end, self.half_life, counts, domains, shares)

    def scaled(self, factor: float) -> Statistics:
        """The statistics of so many times the events, at the same rates."""
        counts = {name: count * factor for name, count in self.counts.items()}
        return replace(self, end=self.begin + (self.end - self.begin) * factor, counts=counts)

    def _faded(self, end: float) -> Statistics:
        if self.half_life is None or end == self.end:
            return self
        left = 2.0 ** ((self.end - end) / self.half_life)
        counts = {name: count * left for name, count in self.counts.items()}
        shares = {text: Share(s.held * left, s.tested * left) for text, s in self.shares.items()}
        return replace(self, end=end, counts=counts, shares=shares)

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

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "begin": self.begin if self.counts else None,
            "end": self.end if self.counts else None,
            "half_life": self.half_life,
            "counts": dict(self.counts),
            "domains": {
                name: {str(epoch): sketch.text() for epoch, sketch in epochs.items()}
                for name, epochs in self.domains.items()
            },
            "shares": {text: [share.held, share.tested] for text, share in self.shares.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Statistics:
        """What `to_json` gave."""
        return cls(
            math.inf if data["begin"] is None else data["begin"],
            -math.inf if data["end"] is None else data["end"],
            data["half_life"],
            dict(data["counts"]),
            {
                name: {int(epoch): Sketch.from_text(text) for epoch, text in epochs.items()}
                for name, epochs in data["domains"].items()
            },
            {text: Share(held, tested) for text, (held, tested) in data["shares"].items()},
        )


def times_of(table: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
    """The times of the events: of timestamps in microseconds, as windows are; of integers as they are."""
    column = table.column(schema.time)
    unit = resolution(schema)
    times: npt.NDArray[np.int64] = computable(column, unit).to_numpy(zero_copy_only=False)
    return times if kind_of(column.type) is Kind.INTEGER else times // per_microsecond(unit)


def _merged(one: Mapping[int, Sketch], other: Mapping[int, Sketch]) -> Mapping[int, Sketch]:
    """The sketches by epoch; those before the last two epochs are let go."""
    latest = max([*one, *other])
    return {
        epoch: one.get(epoch, Sketch()).merged(other.get(epoch, Sketch()))
        for epoch in sorted({*one, *other})
        if epoch >= latest - 1
    }
