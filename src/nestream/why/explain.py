"""Answers "why did this not match?": reads the events, tries every alternative, keeps the best of each."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.logical.nodes import Plan, target_variables
from nestream.model.python_rows import python_value
from nestream.model.schema import EventError
from nestream.model.text import print_name
from nestream.reference import Event, Meaning
from nestream.why.answer import Alternative, Why
from nestream.why.assign import Assigning, without_place
from nestream.why.missing import Completed, Completing
from nestream.why.obstacles import Judge
from nestream.why.output import Output
from nestream.why.places import Places
from nestream.why.reach import Timeline
from nestream.why.search import Search
from nestream.why.shapes import Shape, shapes
from nestream.why.words import Words, plain

MOST_ALTERNATIVES = 32
"""How many alternatives of a query with many ORs are reported: those with the most picked events."""
MOST_PICKED = 100
"""How many events can be picked at once."""


def explain_why(
    query: Any,
    events: Any,
    picked: Sequence[Any] | Mapping[str, Any],
    *,
    by: str | None = None,
    time: str = "ts",
    type: str = "type",
    types: Mapping[str, Iterable[str]] | None = None,
    order: str = "time",
    first: int = 0,
) -> Why:
    """Explain whether the picked events are (part of) a match of the query, and everything that stops them.

    `picked` are row numbers of the events, from 0, or with `by` their values in that column; a mapping fixes
    the variable of each. `first` is the number of row 0 in sentences. The other arguments are those of
    `Query.match`.
    """
    table, schema = query.read(events, time=time, type=type, types=types, order=order)
    plan, _ = query.typed(schema)
    rows, wanted = _picked(picked if by is None else _rows_by(table, by, picked))
    _check_variables(plan, wanted.values())
    timeline = Timeline(table, schema)
    timeline.check(rows)
    meaning = Meaning(plan, schema.order, schema.per_microsecond)
    reach = timeline.around(rows, plan, meaning)
    names = {event: wanted[event.row] for event in reach.picked if event.row in wanted}
    words = Words(schema, first=first)
    words = words.dated(event.ts for event in (reach.events[0], reach.events[-1]))
    places = Places(query.bound.tree, plan, query.text)
    judge = Judge(meaning, places, words, Search(meaning))
    read = {"time": time, "type": type, "types": schema.types or None, "order": order}
    completing = Completing(judge, reach, timeline, Output(query, plan, timeline, words, places, read))
    chosen, left_out = _alternatives(plan, reach.picked, names, judge)
    told = [_alternative(plan, assigning, names, completing) for assigning in chosen]
    told.sort(key=lambda alternative: (alternative.match is None, len(alternative.obstacles)))
    return Why(query.text, table, schema, words, tuple(rows), tuple(told), left_out)


def _picked(picked: Sequence[int] | Mapping[str, int]) -> tuple[list[int], dict[int, str]]:
    named = isinstance(picked, Mapping)
    rows = [
        _row_number(row) for row in (picked.values() if isinstance(picked, Mapping) else _several(picked))
    ]
    wanted = dict(zip(rows, picked, strict=True)) if isinstance(picked, Mapping) else {}
    twice = next((row for row, count in Counter(rows).items() if count > 1), None)
    if twice is not None:
        why = "for two variables" if named else "twice"
        raise EventError(f"event {twice} was picked {why}, and an event can be only one variable of a match")
    if len(rows) > MOST_PICKED:
        raise EventError(f"{len(rows)} events were picked; the limit is {MOST_PICKED}")
    if not rows:
        raise EventError("no event was picked\n  hint: pass the row numbers of one or more events, from 0")
    return rows, wanted


def _several(picked: Any) -> Iterable[Any]:
    if isinstance(picked, str | bytes) or not isinstance(picked, Iterable):
        raise EventError(
            f"{picked!r} does not pick events\n"
            '  hint: pass a list of row numbers, [0, 2], or a mapping of variables to them, {"a": 0, "b": 2}'
        )
    return picked


def _row_number(row: Any) -> int:
    try:
        if not isinstance(row, bool):
            return operator.index(row)
    except TypeError:
        pass
    raise EventError(
        f"{row!r} is not the number of a row\n"
        "  hint: pass row numbers from 0, or pick events by the values of a column with by="
    )


def _check_variables(plan: Plan, names: Iterable[str]) -> None:
    """Raise for a variable that no match binds."""
    bound = [name for name in plan.variables if name in target_variables(plan.root)]
    known = ", ".join(map(print_name, bound))
    for name in names:
        if name in bound:
            continue
        if name in plan.variables:
            raise EventError(f"`{name}` is negated, so a match has no event for it: a match has {known}")
        raise EventError(f"the query has no variable `{name}`: a match has {known}")


def _rows_by(
    table: pa.Table, column: str, picked: Sequence[Any] | Mapping[str, Any]
) -> list[int] | dict[str, int]:
    """The rows whose value in a column equals, as text, one of the picked values; each must occur once."""
    if column not in table.column_names:
        known = ", ".join(table.column_names)
        raise EventError(
            f"the events have no column `{column}` to pick them by\n  their columns are: {known}"
        )
    texts = np.array([str(plain(python_value(value))) for value in table.column(column)], dtype=object)

    def row(value: Any) -> int:
        found = np.flatnonzero(texts == str(plain(value)))
        if len(found) != 1:
            what = "no event has" if not len(found) else f"{len(found)} events have"
            raise EventError(
                f"{what} {column} = {value}\n  hint: pick by a column with another value for each event"
            )
        return int(found[0])

    if isinstance(picked, Mapping):
        return {name: row(value) for name, value in picked.items()}
    return [row(value) for value in _several(picked)]


def _alternatives(
    plan: Plan, picked: Sequence[Event], wanted: Mapping[Event, str], judge: Judge
) -> tuple[list[Assigning], int]:
    """The alternatives of the query with a place for most picked events, and how many more there are."""
    found = [Assigning(shape, picked, wanted, judge) for shape in shapes(plan.root)]
    found.sort(key=lambda assigning: -assigning.most)
    return found[:MOST_ALTERNATIVES], max(len(found) - MOST_ALTERNATIVES, 0)


def _alternative(
    plan: Plan, assigning: Assigning, wanted: Mapping[Event, str], completing: Completing
) -> Alternative:
    """The match of an alternative, or its assignment with the fewest obstacles."""
    shape = assigning.shape
    best: Alternative | None = None
    for binding in assigning.sound():
        completed = completing.complete(shape, binding)
        best = _better(best, _told(shape, binding, completed))
        if completed.match is not None:
            evidence = completing.judge.evidence(shape, completed.match, completing.reach)
            return replace(best, evidence=evidence)
    if best is None:
        best = _stopped(plan, assigning, wanted, completing)
    return best


def _stopped(
    plan: Plan, assigning: Assigning, wanted: Mapping[Event, str], completing: Completing
) -> Alternative:
    """The best of the assignments that the picked events themselves rule out."""
    shape, judge = assigning.shape, completing.judge
    ranked = sorted(assigning.some(), key=lambda binding: len(judge.among(shape, binding)))
    best: Alternative | None = None
    for binding in ranked[:3]:
        placed = set(binding.values())
        strangers = [
            without_place(plan, shape, event, wanted.get(event), judge)
            for event in assigning.picked
            if event not in placed
        ]
        completed = completing.complete(shape, binding) if binding else Completed(None, {}, [])
        obstacles = [*strangers, *completed.obstacles]
        best = _better(best, _told(shape, binding, replace(completed, match=None, obstacles=obstacles)))
    assert best is not None, "there is always an assignment of as many events as have a place"
    return best


def _told(shape: Shape, binding: dict[str, Event], completed: Completed) -> Alternative:
    missing = tuple(name for name in shape.variables if name not in binding)
    return Alternative(binding, missing, completed.completion, tuple(completed.obstacles), completed.match)


def _better(one: Alternative | None, other: Alternative) -> Alternative:
    if one is None or (other.match is not None and one.match is None):
        return other
    return other if one.match is None and len(other.obstacles) < len(one.obstacles) else one
