"""Measures on a sample for which share of the events, or of events within a window, a predicate holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Expression
from nestream.model.schema import Schema
from nestream.model.time import WindowKind
from nestream_papers.optimize.rates import filter_name, joint_name
from nestream_papers.optimize.shape import EVENT, Joint, Shape, Step, mentioned
from nestream_papers.optimize.statistics import Share, Statistics, times_of

Ints = npt.NDArray[np.int64]
Evaluate = Callable[[Expression, Mapping[str, pa.Table]], npt.NDArray[np.bool_]]
"""Returns for which rows a formula holds, given a table of events for each of its variables."""
SIZE = 2_000
"""How many events, or rows of events, a predicate is tested on."""


def gathered(
    shapes: Iterable[Shape],
    table: pa.Table,
    schema: Schema,
    evaluate: Evaluate,
    *,
    seed: int = 0,
) -> Statistics:
    """All that the cost model needs about some expressions, from a table of events."""
    known = list(shapes)
    sampling = _Sampling(table, schema, evaluate, np.random.default_rng(seed))
    shares = dict(share for shape in known for share in sampling.shares(shape)) if table.num_rows else {}
    return Statistics.of(table, schema, equated(known), shares=shares)


def equated(shapes: Iterable[Shape]) -> list[str]:
    """The attributes whose number of values matters: those that equalities compare."""
    found: dict[str, None] = {}
    for shape in shapes:
        for joint in shape.joints:
            found.update(dict.fromkeys(joint.equal or ()))
        for step in shape.steps:
            found.update(dict.fromkeys(name for formula in step.filters for name in mentioned(formula)))
        found.update(dict.fromkeys(c.key for c in shape.constraints if c.key is not None))
    return list(found)


@dataclass
class _Sampling:
    table: pa.Table
    schema: Schema
    evaluate: Evaluate
    random: np.random.Generator

    def __post_init__(self) -> None:
        self.times = times_of(self.table, self.schema)
        if len(self.times) > 1 and (np.diff(self.times) < 0).any():
            order = np.argsort(self.times, kind="stable")
            self.table, self.times = self.table.take(pa.array(order)), self.times[order]
        self.rows: dict[tuple[str, ...], Ints] = {}

    def shares(self, shape: Shape) -> Iterator[tuple[str, Share]]:
        """The predicates of an expression, each with its share."""
        inner = [step for c in shape.constraints for step in (*c.absent, *c.chain)]
        for step in (*shape.steps, *inner):
            for formula in step.filters:
                rows = self.of(step)
                if len(rows):
                    chosen = self.random.choice(rows, min(SIZE, len(rows)), replace=False)
                    yield filter_name(step, formula), self.share(formula, {EVENT: np.sort(chosen)})
        for joint in shape.joints:
            if joint.equal is None and (found := self.within(shape, joint)) is not None:
                yield joint_name(shape.steps, joint), self.share(joint.formula, found)

    def share(self, formula: Expression, rows: Mapping[str, Ints]) -> Share:
        """The share of the rows for which a formula holds."""
        read = {self.schema.column(name) for name in mentioned(formula)} & set(self.table.column_names)
        few = self.table.select(sorted(read) or [self.schema.time])
        tables = {name: few.take(pa.array(column)) for name, column in rows.items()}
        held = self.evaluate(formula, tables)
        return Share(float(np.count_nonzero(held)), float(len(held)))

    def of(self, step: Step) -> Ints:
        """The rows of a step's types."""
        if step.types not in self.rows:
            kinds = self.table.column(self.schema.type).cast(pa.string())
            found = pc.is_in(kinds, pa.array(step.types, pa.string())).to_numpy(zero_copy_only=False)
            self.rows[step.types] = np.flatnonzero(found | (ANY_TYPE in step.types))
        return self.rows[step.types]

    def within(self, shape: Shape, joint: Joint) -> dict[str, Ints] | None:
        """Events of the joined steps, each earlier one drawn at random from the window before the latest."""
        last = self.of(shape.steps[joint.last])
        if not len(last):
            return None
        anchors = np.sort(self.random.choice(last, min(SIZE, len(last)), replace=False))
        chosen: dict[str, Ints] = {str(joint.last - joint.first): anchors}
        kept = np.ones(len(anchors), bool)
        for place in range(joint.first, joint.last):
            rows = self.of(shape.steps[place])
            end = np.searchsorted(rows, anchors, "left")
            begin = np.searchsorted(rows, self._reach(shape, anchors), "left")
            kept &= end > begin
            if not len(rows):
                return None
            picked = begin + (self.random.random(len(anchors)) * np.maximum(end - begin, 0)).astype(np.int64)
            chosen[str(place - joint.first)] = rows[np.minimum(picked, len(rows) - 1)]
        return {name: column[kept] for name, column in chosen.items()} if kept.any() else None

    def _reach(self, shape: Shape, anchors: Ints) -> Ints:
        """The first row that is in one window with each anchor."""
        window = shape.window
        if window is None or window.kind is WindowKind.UNBOUNDED:
            return np.zeros(len(anchors), np.int64)
        if window.kind is WindowKind.EVENTS:
            return np.maximum(anchors - (window.size - 1), 0)
        first: Ints = np.searchsorted(self.times, self.times[anchors] - window.size, "left")
        return first
