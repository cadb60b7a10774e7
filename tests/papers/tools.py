"""Stores, evaluations and programs for the tests of single parts of the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.event_buffer import EventBuffer
from nestream.engine.matcher import Matcher
from nestream.engine.program import Program
from nestream.engine.windowed_events import WindowedEvents
from nestream.logical.nodes import Plan
from nestream.model.schema import Schema
from nestream.query import query
from nestream_papers import planner as planners
from nestream_papers.engine.context import Evaluation
from nestream_papers.engine.program import BlockProgram, Negation
from nestream_papers.execution import BlockExecution
from nestream_papers.options import Options
from nestream_papers.plan.compile import compile_plan

SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.int64())])


def program(text: str, schema: pa.Schema = SCHEMA, **switches: Any) -> BlockProgram:
    """The program of a query over events of a schema."""
    known = Schema.of(schema)
    plan, _ = query(text).typed(known)
    return compile_plan(plan, known, options=Options(**switches))


def events(text: str) -> pa.Table:
    """A history: `a1 b2.7` is an A at 1 and a B at 2 with id 7."""
    rows = []
    for word in text.split():
        time, _, key = word[1:].partition(".")
        rows.append({"ts": int(time), "type": word[0].upper(), "id": int(key or 1), "x": 0})
    return pa.Table.from_pylist(rows, SCHEMA)


def evaluation_over(text: str, table: pa.Table, **switches: Any) -> Evaluation:
    """An evaluation of the query's program over the events, which stand in the order of time."""
    made = program(text, table.schema, **switches)
    held = EventBuffer(made.leaves, Schema.of(table.schema), table.column_names)
    held.append(table)
    held.seal()
    return Evaluation(WindowedEvents(held, made))


def only_negation(made: BlockProgram) -> Negation:
    """The negation of a program with one."""
    (block,) = made.blocks
    (negation,) = block.negations
    return negation


def rows(*numbers: int) -> np.typing.NDArray[np.int64]:
    """Row numbers."""
    return np.array(numbers, np.int64)


def compiled(plan: Plan, strategy: str, options: Options | dict[str, Any] | None = None) -> BlockProgram:
    """The program of a plan by a strategy of the papers' engine."""
    planner: Callable[..., BlockProgram] = getattr(planners, strategy)
    return planner(plan, None, options=options, leaves=None)


def in_blocks(made: Program) -> BlockProgram:
    """A program that is known to be of the papers' engine."""
    assert isinstance(made, BlockProgram)
    return made


def at_work(matcher: Matcher) -> BlockExecution:
    """What a program of the papers' engine keeps in a matcher."""
    assert isinstance(matcher.execution, BlockExecution)
    return matcher.execution
