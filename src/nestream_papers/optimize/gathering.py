"""Gathers statistics, testing predicates on events with the engine's own rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.values import Evaluator
from nestream.model.columns import computable, field_of
from nestream.model.expression import Expression
from nestream.model.schema import Schema
from nestream.model.vector import Vector
from nestream_papers.optimize.sample import gathered
from nestream_papers.optimize.shape import Shape
from nestream_papers.optimize.statistics import Statistics

SAMPLE = 20_000
"""How many events are sampled before a run."""


def statistics_of(
    shapes: list[Shape],
    schema: Schema | None,
    events: pa.Table | None,
    *,
    whole: bool = False,
) -> Statistics:
    """What the cost model needs to know about some expressions, from the first events or from all."""
    if schema is None or events is None or not events.num_rows:
        return Statistics()
    evaluator = Evaluator(schema.per_microsecond)

    def evaluate(formula: Expression, tables: Mapping[str, pa.Table]) -> npt.NDArray[np.bool_]:
        def fetch(variable: str, attribute: str) -> Vector:
            column = tables[variable].column(schema.column(attribute))
            return Vector.of(computable(field_of(column, attribute), schema.unit))

        return evaluator.satisfied(formula, fetch, next(iter(tables.values())).num_rows)

    sample = events if whole else events.slice(0, SAMPLE)
    found = gathered(shapes, sample, schema, evaluate)
    return found if whole else found.scaled(events.num_rows / sample.num_rows)
