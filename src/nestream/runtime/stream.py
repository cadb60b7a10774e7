"""A query over events that keep coming: push events or batches, get matches as soon as they are decided.

Events may be late by the allowed lateness: they wait until the watermark (the greatest time seen, less the
lateness) has reached them, and are then taken by time and arrival. Events behind the watermark go to the late
output, events that cannot be read to the dead letters; both are counted. How the events are split into
batches never changes the matches.

Events are taken in two steps: the first looks at them and changes nothing, so that it can refuse them; the
second cannot fail. So what is held stays held, whatever comes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.engine.matcher import END
from nestream.model.columns import roomy, with_columns
from nestream.model.diagnostics import QueryError
from nestream.model.event_types import fits
from nestream.model.lengths import length_of_time
from nestream.model.memory import collected, first_rows
from nestream.model.plain import empty_table
from nestream.model.python_values import a
from nestream.model.schema import EventError, Schema
from nestream.model.unseen import Seen, warn_of
from nestream.runtime.compiled import Compiled
from nestream.runtime.intake import (
    Columns,
    batch_of,
    check_computable,
    event_at,
    grown,
    is_batch,
    table_of_events,
    without_role,
)
from nestream.runtime.local import LocalRun
from nestream.runtime.progress import Progress
from nestream.runtime.runs import AnyRun, started
from nestream.runtime.single import Single
from nestream.runtime.state import SavedState, StateError
from nestream.runtime.waiting import Times

_MOST_PENDING = 4096
"""So many events that cannot decide a match are looked at together."""
_FEW = 256
"""Batches of at most so many events between single ones are held for these too."""


@dataclass(frozen=True)
class Compiler:
    """A query before its events are known: what it asks of them, and how it is compiled for their schema.

    `compiled` raises where the query does not fit the schema. `identity` is what a saved state must agree
    with. `attributes` are those that the query reads, `computed` those that it does not only show, and
    `types` the event types that it names. With `whole` a match shows events with all their columns; otherwise
    those that the query does not read do not matter.
    """

    compiled: Callable[[Schema], Compiled]
    identity: str
    attributes: tuple[str, ...]
    computed: tuple[str, ...]
    types: tuple[str, ...]
    whole: bool
    limit: int | None = None


@dataclass(frozen=True)
class _Arrival:
    """Events that were looked at and can be taken: row numbers are those of the table that arrived."""

    progress: Progress | None
    table: pa.Table
    times: Times
    dead: list[tuple[int, str]]
    late: list[int]


class Stream:
    """A running query.

    `late` and `dead_letter` are called with each event that is too late, or that cannot be used and why.
    """

    def __init__(
        self,
        compiler: Compiler,
        *,
        time: str,
        type: str,
        schema: Schema | None = None,
        lateness: int | timedelta | str = 0,
        late: Callable[[dict[str, Any]], None] | None = None,
        dead_letter: Callable[[Any, str], None] | None = None,
    ) -> None:
        for name, handler in (("late", late), ("dead_letter", dead_letter)):
            if handler is not None and not callable(handler):
                raise TypeError(f"{name} is a function that is called with each such event, not {handler!r}")
        if schema is not None and not isinstance(schema, Schema):
            raise TypeError(
                f"the schema is an Arrow schema, not a {schema.__class__.__name__}\n"
                '  hint: write schema=pyarrow.schema([("ts", pyarrow.int64()), ("type", pyarrow.string())])'
            )
        self._compiler = compiler
        self._identity = compiler.identity
        self._reads = frozenset(compiler.attributes)
        self._mentioned = [name for name in compiler.attributes if name not in ("ts", "type")]
        self.time = time
        self.type = type
        self.lateness = length_of_time(lateness, "lateness")
        self._types = schema.types if schema is not None else {}
        self._used = None if compiler.whole else {*self._reads, time, type}
        declared = {} if schema is None else schema.columns
        self._declared = {name: roomy(kind) for name, kind in declared.items() if self._is_used(name)}
        self._progress: Progress | None = self._begun(self._declared) if schema is not None else None
        self._late = late
        self._dead_letter = dead_letter
        self._pending: list[dict[str, Any]] = []
        self._limit = compiler.limit
        self._finished = False
        self._single: Single | None = None
        self._alone = 0
        """How many events were pushed one by one since the engine last got others."""
        self._never_singly = False
        self._seen = Seen(compiler.types)
        self.late_count = 0
        self.dead_count = 0
        self.events_in = 0
        self.matches_out = 0

    def __repr__(self) -> str:
        counts = {
            "events_in": self.events_in,
            "matches_out": self.matches_out,
            "late_count": self.late_count,
            "dead_count": self.dead_count,
        }
        return f"Stream({', '.join(f'{name}={value}' for name, value in counts.items())})"

    # -- events in, matches out ----------------------------------------------------------------------------

    def push(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take one event; the matches it decides, each a dictionary.

        An event that cannot be used becomes a dead letter.
        """
        if self._single is None:
            self._refuse_if_finished()
            self._begin_singly()
        single = self._single
        if single is not None:
            time = single.time_of(event)
            if time is not None:
                return self._push_plain(single, event, time)
        if not isinstance(event, Mapping):
            if is_batch(event):
                raise EventError(
                    f"push takes one event, a dictionary, and this is a {event.__class__.__name__}\n"
                    "  hint: push_batch takes many events at once"
                )
            self._bury(event, f"an event is a dictionary, not a value of type {event.__class__.__name__}")
            return []
        self._hand_over()
        self._pending.append(dict(event))
        if single is None and not self._is_awaited(event):
            return []
        return self._emitted(self._taken(self._flushed()))

    def _push_plain(self, single: Single, event: Mapping[str, Any], time: int) -> list[dict[str, Any]]:
        """Take one event that every column takes as it is."""
        if time < single.watermark:
            self.events_in += 1
            self._leave(event)
            return []
        if self._has_all:
            self.events_in += 1
            return []
        own = dict(event)
        found = single.take(own, time)
        if found is None:
            return self._round(single, own)
        self.events_in += 1
        self._pending.append(own)
        if len(self._pending) >= _MOST_PENDING:
            self._hand_over()
        if found:
            if self._limit is not None:
                found = found[: self._limit - self.matches_out]
            self.matches_out += len(found)
        return found

    def _round(self, single: Single, event: dict[str, Any]) -> list[dict[str, Any]]:
        """Let the engine look at an event."""
        self._hand_over()
        arrival = self._look(single.table([event]))
        found = self._emitted([self._take(arrival, [event].__getitem__, known=True)])
        if not single.is_worth_it:
            self._single, self._never_singly = None, True
        return found

    def _begin_singly(self) -> None:
        """Keep single events apart once there are as many as the engine holds, so that it pays."""
        progress = self._progress
        if progress is None or self._never_singly:
            return
        self._alone += 1
        if self._alone > len(progress.run.store) + len(progress.waiting):
            self._take_pending()
            assert self._progress is not None
            self._single = Single.of(self._progress, whole=self._used is None)
            self._never_singly = self._single is None

    def _hand_over(self) -> None:
        """Give the engine the events pushed one by one whose matches were emitted."""
        if self._single is None or self._progress is None or not self._pending:
            return
        table = self._single.table(self._flushed())
        self._seen.note(table.column(self.type))
        self._progress.take(table, self._progress.times(table))
        self._progress.pass_over()

    def push_batch(self, events: Any) -> pa.Table:
        """Take events in the order of their arrival; the matches they decide, as a table.

        Raises an `EventError`, or a `QueryError` where the query cannot compute with a column; then none of
        the events is taken.
        """
        self._refuse_if_finished()
        table = batch_of(events, self.type)
        self._take_pending()
        arrival = self._look(table)
        return self._joined(self._take(arrival, partial(event_at, table)))

    def finish(self) -> list[dict[str, Any]]:
        """End the input: the matches that this decides."""
        return self.finish_batch().to_pylist()  # type: ignore[no-any-return]

    def finish_batch(self) -> pa.Table:
        """The same as `finish`, as a table."""
        self._take_pending()
        self._single, self._finished = None, True
        if self._progress is None:
            return pa.table({})
        warn_of(self._seen.sentences())
        return self._joined(iter(()) if self._has_all else self._progress.up_to(END))

    def run(self, events: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """The matches over an iterable of events (dictionaries) or batches of them, as they are decided."""
        if is_batch(events):
            events = [batch_of(events, self.type)]
        elif isinstance(events, str | bytes) or not isinstance(events, Iterable):
            raise EventError(
                f"cannot read events from {a(events.__class__.__name__)}\n"
                "  hint: give an iterable of dictionaries or of batches, or push events into query.stream()"
            )
        return self._matches(events)

    def _matches(self, events: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for event in events:
            batch = isinstance(event, Iterable) and not isinstance(event, Mapping | str | bytes)
            if batch or (is_batch(event) and not isinstance(event, Mapping)):
                yield from self.push_batch(event).to_pylist()
            else:
                yield from self.push(event)
            if self._limit is not None and self.matches_out >= self._limit:
                return
        yield from self.finish()

    def flush(self) -> list[dict[str, Any]]:
        """Look at the events pushed one by one that wait for a later one to decide something."""
        self._hand_over()
        return self._emitted(self._taken(self._flushed()))

    def _flushed(self) -> list[dict[str, Any]]:
        pending, self._pending = self._pending, []
        return pending

    def _emitted(self, parts: Iterable[Iterator[pa.Table]]) -> list[dict[str, Any]]:
        return [match for found in parts for match in self._joined(found).to_pylist()]

    def _joined(self, tables: Iterator[pa.Table]) -> pa.Table:
        """The matches together, counted; no more are looked for than the LIMIT of the query leaves."""
        if self._progress is None:
            return pa.table({})
        if self._limit is not None:
            tables = first_rows(tables, self._limit - self.matches_out)
        first = next(tables, None)
        if first is None:
            return empty_table(self._progress.run.wanted)
        found = collected(chain([first], tables))
        self.matches_out += found.num_rows
        return found

    @property
    def _has_all(self) -> bool:
        """Whether the LIMIT of the query is reached, so that nothing has to be held any more."""
        return self._limit is not None and self.matches_out >= self._limit

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise ValueError("the stream is finished and takes no more events\n  hint: start a new stream")

    # -- one event at a time -------------------------------------------------------------------------------

    def _is_awaited(self, event: Mapping[str, Any]) -> bool:
        """Whether the event may decide a match, or is a dead letter, so that it must be looked at now."""
        if self._progress is None or self._progress.patience or len(self._pending) >= _MOST_PENDING:
            return True
        run, kind = self._progress.run, event.get(self.type)
        return (
            run.awaits_time
            or not isinstance(kind, str)
            or fits(kind, run.awaited_types)
            or event.get(self.time) is None
        )

    def _take_pending(self) -> None:
        """Take the pending events, none of which can decide a match."""
        decided = self.flush()
        assert not decided

    def _taken(self, events: list[dict[str, Any]]) -> Iterator[Iterator[pa.Table]]:
        """The matches of the events, taken together, or in parts where they do not fit together."""
        if not events:
            return
        try:
            arrival = self._look(table_of_events(events, self.time, self.type))
        except (EventError, QueryError) as problem:
            if len(events) == 1:
                self._bury(events[0], str(problem))
                return
            half = len(events) // 2
            yield from self._taken(events[:half])
            yield from self._taken(events[half:])
            return
        yield self._take(arrival, events.__getitem__)

    # -- looking at events, and taking them ----------------------------------------------------------------

    def _look(self, table: pa.Table) -> _Arrival:
        """Sort out the events: to be taken, late, or dead. Raises where they do not fit; changes nothing."""
        dead: list[tuple[int, str]] = []
        table, rows = self._readable(table, np.arange(table.num_rows), dead)
        progress = self._progress
        known = progress is not None and table.schema.equals(progress.run.schema.arrow)
        if table.num_rows and not known:
            table = table.select([name for name in table.column_names if self._is_used(name)])
            columns = self._grown(table)
            table = with_columns(table, columns)
            table, rows = self._readable(table, rows, dead)  # NaN for a time is NULL
        if not table.num_rows:
            return _Arrival(progress, table, np.empty(0, np.int64), dead, [])
        if progress is None:
            progress = self._begun(columns)
        elif not known and columns != progress.run.schema.columns:
            self._refuse_shadows(columns, progress.run.schema)
            progress = progress.going_on(self._run(columns), self.lateness, self._compiler.computed)
        times = progress.times(table)
        check_computable(table, self._compiler.computed, progress.run.schema.unit)
        behind = progress.late(times)
        if not behind.any():
            return _Arrival(progress, table, times, dead, [])
        on_time = table.filter(pa.array(~behind))
        return _Arrival(progress, on_time, times[~behind], dead, rows[behind].tolist())

    def _readable(self, table: pa.Table, rows: Any, dead: list[tuple[int, str]]) -> tuple[pa.Table, Any]:
        """The events with a time and a type, and their row numbers; the others are dead letters."""
        for role, name in (("time", self.time), ("type", self.type)):
            lacking = without_role(table, role, name)
            if lacking is not None:
                absent, reason = lacking
                dead += [(row, reason) for row in rows[absent].tolist()]
                table, rows = table.filter(pa.array(~absent)), rows[~absent]
        return table, rows

    def _is_used(self, name: str) -> bool:
        return self._used is None or name in self._used

    def _grown(self, table: pa.Table) -> Columns:
        known = {} if self._progress is None else dict(self._progress.run.schema.columns)
        return grown(known, table, {*self._declared, self.time, self.type}, self._mentioned)

    def _take(
        self, arrival: _Arrival, event: Callable[[int], Any], *, known: bool = False
    ) -> Iterator[pa.Table]:
        """Take events that were looked at; the matches that they decide.

        They are `known` where they are held for single events already.
        """
        for row, reason in arrival.dead:
            self._bury(event(row), reason)
        for row in arrival.late:
            self._leave(event(row))
        if self._single is not None and not known:
            if self._progress is arrival.progress and len(arrival.times) <= _FEW:
                self._single.absorb(arrival.table, arrival.times)
            else:
                self._single, self._alone = None, 0
        self._progress = arrival.progress
        self.events_in += len(arrival.times) + len(arrival.late)
        if self._progress is None or self._has_all:
            return iter(())
        self._seen.note(arrival.table.column(self.type))
        self._progress.take(arrival.table, arrival.times)
        return self._progress.decided()

    def _bury(self, event: Any, reason: str) -> None:
        self.dead_count += 1
        if self._dead_letter is not None:
            self._dead_letter(event, reason)
        elif self.dead_count == 1:
            said = f"an event was left out: {reason}\n  hint: pass dead_letter=... to get such events"
            warnings.warn(said, stacklevel=2)

    def _leave(self, event: Any) -> None:
        self.late_count += 1
        if self._late is not None:
            self._late(event)
        elif self.late_count == 1:
            said = (
                f"an event was left out because it is late: `{self.time}` is {event[self.time]}\n"
                "  hint: allow more with lateness=..., or pass late=... to get such events"
            )
            warnings.warn(said, stacklevel=2)

    def _run(self, columns: Columns) -> AnyRun:
        return started(self._compiler.compiled(Schema(columns, self.time, self.type, self._types)))

    def _refuse_shadows(self, columns: Columns, before: Schema) -> None:
        """Raise where a column would change what the query has read so far by its name."""
        after = Schema(columns, self.time, self.type, self._types)
        for name in after.shadowed.keys() - before.shadowed.keys():
            if name in self._reads:
                raise EventError(
                    f"column `{name}` came after the query began to read `{name}` as the event's own\n"
                    "  hint: declare the columns with schema=, or rename this one"
                )

    def _begun(self, columns: Columns) -> Progress:
        return Progress.of(self._run(columns), self.lateness)

    # -- state ---------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The state, from which another process can go on."""
        self._take_pending()
        numbers, tables = ({}, {}) if self._progress is None else self._progress.save()
        return SavedState(self._identity, {**numbers, "counts": self._counts()}, tables).to_bytes()

    def restore(self, data: bytes) -> Stream:
        """Go on from a saved state of the same query; returns the stream itself."""
        if self.events_in or self._pending or self._finished:
            raise StateError("the stream has taken events already\n  hint: restore into a new stream")
        saved = SavedState.from_bytes(data)
        if saved.query != self._identity:
            raise StateError(
                "the state belongs to another query\n"
                f"  it was saved by:\n{_indented(saved.query)}\n  and this is:\n{_indented(self._identity)}\n"
                "  hint: start the changed query without the state, or go on with the old query"
            )
        self._seen = Seen(())  # nobody knows what came before
        if "schema" in saved.tables:
            schema = saved.tables["schema"].schema
            columns = dict(zip(schema.names, schema.types, strict=True))
            self._check_columns(columns)
            progress = self._begun(columns)
            progress.load(saved.numbers, saved.tables)
            self._progress = progress
            self._finished = saved.numbers["watermark"] == END
        counts = saved.numbers["counts"]
        self.late_count, self.dead_count = counts["late"], counts["dead"]
        self.events_in, self.matches_out = counts["in"], counts["out"]
        return self

    def _check_columns(self, columns: Columns) -> None:
        """Raise where the saved events have other columns than this stream."""
        for role, name in (("time", self.time), ("type", self.type)):
            if name not in columns:
                raise StateError(
                    f"the saved events have no column `{name}` for their {role}: "
                    f"they have {', '.join(columns)}"
                )
        for name, datatype in self._declared.items():
            if columns.get(name, datatype) != datatype:
                raise StateError(
                    f"the schema says that column `{name}` is {datatype}, and in the saved state it is "
                    f"{columns[name]}\n  hint: go on with the schema that the state was saved with"
                )

    def _counts(self) -> dict[str, int]:
        return {
            "late": self.late_count,
            "dead": self.dead_count,
            "in": self.events_in,
            "out": self.matches_out,
        }

    @property
    def is_prompt(self) -> bool:
        """Whether every match comes with its last event, and so in the order of the output.

        Known once the columns of the events are; of a query set, whose matches are ordered by query, never.
        """
        run = None if self._progress is None else self._progress.run
        return isinstance(run, LocalRun) and not run.awaits_time and not run.program.distinct

    def describe(self) -> dict[str, Any]:
        """What is held: events by leaf, bytes, the oldest time, the watermark, and the counts so far."""
        self._take_pending()
        progress = self._progress
        held = progress.run.describe() if progress is not None else {"events": 0, "leaves": {}, "bytes": 0}
        return {
            **held,
            "waiting": 0 if progress is None else len(progress.waiting),
            "events_in": self.events_in,
            "matches_out": self.matches_out,
            "late": self.late_count,
            "dead_letters": self.dead_count,
        }


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
