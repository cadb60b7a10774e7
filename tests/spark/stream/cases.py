"""Random cases for streams: times are timestamps, windows durations, and time goes on after the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import nestream
from nestream.engine.program import Decided, Measure
from nestream.language.ast import Composite, InnerWindow, Pattern, Primitive
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.model.expression import Literal, attributes
from nestream.model.time import Duration, Window, WindowKind
from tests.property.cases import Case, random_case
from tests.property.harness import assert_same_matches
from tests.property.sets import is_endless

START = datetime(2024, 3, 1)
MOMENT = pa.timestamp("us", "UTC")
SECOND = 1_000_000
LATER = 40
"""How many events of a type that no query has follow the history, so that every window ends."""


def stream_cases(seed: int, first: int = 0) -> Iterator[Case]:
    """Random cases whose matches are all decided by time and later events."""
    number = first
    while True:
        case = random_case(seed, number)
        number += 1
        if not case.table.num_rows:
            continue
        tree = replace(parse(case.text), limit=None)
        if re.search(r"\bANY \w", case.text):  # the events that follow would be taken
            continue
        tree = replace(tree, pattern=_in_seconds(tree.pattern))
        if tree.keep is not None and isinstance(tree.keep.every, Literal):
            every = Literal(Duration(tree.keep.every.value * SECOND))  # type: ignore[operator, arg-type]
            tree = replace(tree, keep=replace(tree.keep, every=every))
        if isinstance(tree.window, Window):
            tree = replace(tree, window=_of_time(tree.window))
        changed = replace(case, text=print_query(tree), table=with_timestamps(case.table))
        try:
            query = nestream.query(changed.text)
            run = query.prepare(changed.table, order=case.order)
        except nestream.QueryError:  # computes with times as numbers
            continue
        program = run.compiled().program
        never = program.measure is Measure.NONE and Decided.WINDOW in program.decided
        if not never and not _computes_with_time(query) and not is_endless(query):
            yield changed


def check_cases(run: Callable[..., pa.Table], seed: int, first: int, count: int) -> None:
    """Compare the matches that a stream finds in random cases with those of the reference."""
    for case in islice(stream_cases(seed, first), count):
        assert_same_matches(case.text, case.table, run, order=case.order, seed=case.seed, name=case.name)


def _of_time(window: Any) -> Any:
    return Window(WindowKind.TIME, window.size * SECOND) if window.kind is WindowKind.NUMBER else window


def _in_seconds(pattern: Pattern) -> Pattern:
    """The pattern with its windows in seconds."""
    match pattern:
        case Primitive():
            return pattern
        case Composite(components=components, windows=windows):
            return replace(
                pattern,
                components=tuple(map(_in_seconds, components)),
                windows=tuple(InnerWindow(_of_time(inner.window)) for inner in windows),
            )
        case _:
            return replace(pattern, body=_in_seconds(pattern.body))


def _computes_with_time(query: nestream.Query) -> bool:
    returned = [column.expression for column in query.plan.output.columns if hasattr(column, "expression")]
    return any(part.name == "ts" for expression in returned for part in attributes(expression))


def with_timestamps(table: pa.Table) -> pa.Table:
    """The history with a second for each number of its times."""
    offset = int((START - datetime(1970, 1, 1)) / timedelta(microseconds=1))
    moments = pc.add(pc.multiply(table.column("ts"), SECOND), offset).cast(pa.timestamp("us"))
    column = moments.cast(MOMENT)
    return table.set_column(table.schema.get_field_index("ts"), "ts", column)


def later_events(table: pa.Table) -> pa.Table:
    """Events that no query asks for, long after the history."""
    last = max(table.column("ts").to_pylist())
    rows = [{"ts": last + timedelta(hours=1, seconds=n), "type": "Z", "n": -1} for n in range(LATER)]
    return pa.Table.from_pylist(rows, table.schema)


def lateness(table: pa.Table) -> timedelta:
    """By how much an event is behind the latest before it, at most."""
    worst, latest = timedelta(), None
    for moment in table.column("ts").to_pylist():
        latest = moment if latest is None else max(latest, moment)
        worst = max(worst, latest - moment)
    return worst
