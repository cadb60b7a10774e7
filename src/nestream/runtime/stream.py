"""A query over a stream of events: push events or batches, get matches as soon as they are decided.

Events may be late by the allowed lateness. They wait until the watermark (the greatest time seen minus the
lateness) reaches them, and are then taken by time and arrival. Events behind the watermark go to the late
output, events that cannot be read to the dead letters; both are counted. How the events are split into
batches never changes the matches.

Events are taken in two steps: the first checks them and changes nothing, so it can refuse them; the second
cannot fail. So nothing held is lost, whatever arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from nestream.engine.matcher import END
from nestream.model.diagnostics import QueryError
from nestream.model.event_types import fits
from nestream.model.lengths import length_of_time
from nestream.model.memory import collected, first_rows
from nestream.model.plain import empty_table
from nestream.model.python_values import a
from nestream.model.schema import EventError, Schema
from nestream.model.unseen import Seen, warn_of
from nestream.runtime.arrivals import Arrival, Arrivals
from nestream.runtime.arrivals import Compiler as Compiler
from nestream.runtime.intake import event_at, is_batch, table_of_events
from nestream.runtime.local import LocalRun
from nestream.runtime.progress import Progress
from nestream.runtime.set_aside import SetAside
from nestream.runtime.single import Single
from nestream.runtime.state import SavedState, StateError

_MOST_PENDING = 4096
"""How many events that cannot decide a match are buffered before the engine sees them."""
_FEW = 256
"""Batches of at most this many events between single ones are kept for single matching too."""


class Stream:
    """A running query.

    `late` is called with each late event, `dead_letter` with each event that cannot be used and the reason.
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
        compiler_of: Callable[[Any], Compiler] | None = None,
    ) -> None:
        if schema is not None and not isinstance(schema, Schema):
            raise TypeError(
                f"the schema must be an Arrow schema, not a {schema.__class__.__name__}\n"
                '  hint: write schema=pyarrow.schema([("ts", pyarrow.int64()), ("type", pyarrow.string())])'
            )
        self._compiler_of = compiler_of
        self._aside = SetAside(time, late, dead_letter)
        self.time = time
        self.type = type
        self.lateness = length_of_time(lateness, "lateness")
        self._arrivals = Arrivals(compiler, time=time, type=type, lateness=self.lateness, schema=schema)
        self._progress: Progress | None = self._arrivals.begin() if schema is not None else None
        self._pending: list[dict[str, Any]] = []
        self._limit = compiler.limit
        self._finished = False
        self._single: Single | None = None
        self._alone = 0
        """How many events were pushed one by one since the engine last got a batch."""
        self._never_singly = False
        self._seen = Seen(compiler.types)
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

    @property
    def late_count(self) -> int:
        """The number of late events."""
        return self._aside.late_count

    @property
    def dead_count(self) -> int:
        """The number of dead letters."""
        return self._aside.dead_count

    # -- events in, matches out ----------------------------------------------------------------------------

    def push(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take one event; return the matches it decides, each as a dictionary.

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
                    f"push takes one event as a dictionary, not a {event.__class__.__name__}\n"
                    "  hint: push_batch takes many events at once"
                )
            self._aside.bury(
                event, f"an event is a dictionary, not a value of type {event.__class__.__name__}"
            )
            return []
        self._hand_over()
        self._pending.append(dict(event))
        if single is None and not self._is_awaited(event):
            return []
        return self._emitted(self._taken(self._flushed()))

    def _push_plain(self, single: Single, event: Mapping[str, Any], time: int) -> list[dict[str, Any]]:
        """Take one event that every column takes unchanged."""
        if time < single.watermark:
            self.events_in += 1
            self._aside.leave(event)
            return []
        if self._limit is not None and self._has_all:
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
        """Run the engine on an event."""
        self._hand_over()
        arrival = self._arrivals.look(single.table([event]), self._progress)
        found = self._emitted([self._take(arrival, [event].__getitem__, known=True)])
        if not single.is_worth_it:
            self._single, self._never_singly = None, True
        return found

    def _begin_singly(self) -> None:
        """Begin to match single events in Python once as many were pushed as the engine holds.

        The search takes over a copy of these, which pays off only then.
        """
        progress = self._progress
        if progress is None or self._never_singly:
            return
        self._alone += 1
        if self._alone > len(progress.run.store) + len(progress.waiting):
            self._take_pending()
            assert self._progress is not None
            self._single = Single.of(self._progress, whole=self._arrivals.compiler.whole)
            self._never_singly = self._single is None

    def _hand_over(self) -> None:
        """Pass the engine the events pushed one by one, whose matches were emitted."""
        if self._single is None or self._progress is None or not self._pending:
            return
        table = self._single.table(self._flushed())
        self._seen.note(table.column(self.type))
        self._progress.take(table, self._progress.times(table))
        self._progress.pass_over()

    def push_batch(self, events: Any) -> pa.Table:
        """Take events in arrival order; return the matches they decide as a table.

        Raises an `EventError`, or a `QueryError` if the query cannot compute with a column. Then none of the
        events is taken.
        """
        self._refuse_if_finished()
        table = self._arrivals.batch(events)
        self._take_pending()
        arrival = self._arrivals.look(table, self._progress)
        return self._joined(self._take(arrival, partial(event_at, table)))

    def finish(self) -> list[dict[str, Any]]:
        """End the input; return the pending matches that this decides."""
        return self.finish_batch().to_pylist()  # type: ignore[no-any-return]

    def finish_batch(self) -> pa.Table:
        """Like `finish`, but returns a table."""
        self._take_pending()
        self._single, self._finished = None, True
        if self._progress is None:
            return pa.table({})
        warn_of(self._seen.sentences())
        return self._joined(iter(()) if self._has_all else self._progress.up_to(END))

    def run(self, events: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Yield the matches over an iterable of events (dictionaries) or batches as they are decided."""
        if is_batch(events):
            events = [self._arrivals.batch(events)]
        elif isinstance(events, str | bytes) or not isinstance(events, Iterable):
            raise EventError(
                f"cannot read events from {a(events.__class__.__name__)}\n"
                "  hint: pass an iterable of dictionaries or of batches, or push events into query.stream()"
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
        """Run the engine on buffered events that were pushed one by one."""
        self._hand_over()
        return self._emitted(self._taken(self._flushed()))

    def _flushed(self) -> list[dict[str, Any]]:
        pending, self._pending = self._pending, []
        return pending

    def _emitted(self, parts: Iterable[Iterator[pa.Table]]) -> list[dict[str, Any]]:
        return [match for found in parts for match in self._joined(found).to_pylist()]

    def _joined(self, tables: Iterator[pa.Table]) -> pa.Table:
        """Join and count the matches; the search stops at the LIMIT of the query."""
        if self._progress is None:
            return pa.table({})
        if self._limit is not None:
            tables = first_rows(tables, self._limit - self.matches_out)
        first, second = next(tables, None), next(tables, None)
        if first is None:
            return empty_table(self._progress.run.wanted)
        found = first if second is None else collected(chain((first, second), tables))
        self.matches_out += found.num_rows
        return found

    @property
    def _has_all(self) -> bool:
        """Whether the LIMIT of the query is reached, so that nothing more needs to be held."""
        return self._limit is not None and self.matches_out >= self._limit

    def _refuse_if_finished(self) -> None:
        if self._finished:
            raise ValueError("the stream is finished and takes no more events\n  hint: start a new stream")

    # -- one event at a time -------------------------------------------------------------------------------

    def _is_awaited(self, event: Mapping[str, Any]) -> bool:
        """Whether the event may decide a match, or is a dead letter, so that it must be handled now."""
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
        """Take the buffered events, none of which can decide a match."""
        decided = self.flush()
        assert not decided

    def _taken(self, events: list[dict[str, Any]]) -> Iterator[Iterator[pa.Table]]:
        """Take the events, together or in parts if they do not fit together; return their matches."""
        if not events:
            return
        try:
            table = table_of_events(events, self.time, self.type)
            arrival = self._arrivals.look(table, self._progress)
        except (EventError, QueryError) as problem:
            if len(events) == 1:
                self._aside.bury(events[0], str(problem))
                return
            half = len(events) // 2
            yield from self._taken(events[:half])
            yield from self._taken(events[half:])
            return
        yield self._take(arrival, events.__getitem__)

    # -- looking at events, and taking them ----------------------------------------------------------------

    def _take(
        self, arrival: Arrival, event: Callable[[int], Any], *, known: bool = False
    ) -> Iterator[pa.Table]:
        """Take checked events; return the matches they decide.

        They are `known` if they are already held for single matching.
        """
        for row, reason in arrival.dead:
            self._aside.bury(event(row), reason)
        for row in arrival.late:
            self._aside.leave(event(row))
        if self._single is not None and not known and not self._has_all:
            few = self._progress is arrival.progress and len(arrival.times) <= _FEW
            if not (few and self._single.absorb(arrival.table, arrival.times)):
                self._single, self._alone = None, 0
        self._progress = arrival.progress
        self.events_in += len(arrival.times) + len(arrival.late)
        if self._progress is None or self._has_all:
            return iter(())
        self._seen.note(arrival.table.column(self.type))
        self._progress.take(arrival.table, arrival.times)
        return self._progress.decided()

    # -- other rules ---------------------------------------------------------------------------------------

    def change(self, rules: Any) -> dict[str, Any]:
        """Replace the queries of a set from now on.

        Queries with the same name and text in both sets continue undisturbed. A query that joins sees the
        held events if everything it reads is held, and otherwise only later ones; it emits the matches that
        are decided from now on. A query that leaves loses its state. So does one that now reads other
        composite types; it joins again. Returns the names of the queries that join, each with the time since
        which it sees events; None means all. Raises a `QueryError` or an `EventError` if the queries do not
        fit the events; nothing has changed then.
        """
        self._refuse_if_finished()
        if self._compiler_of is None:
            raise TypeError(
                "only the queries of a set can be changed\n"
                '  hint: stream a set, nestream.queries({"name": ...}).stream()'
            )
        compiler, before = self._compiler_of(rules), self._arrivals.compiler
        self._take_pending()
        arrivals = self._arrivals.changed(compiler)
        joined = [name for name, own in compiler.members.items() if before.members.get(name) != own]
        if self._progress is not None:
            self._progress, joined = arrivals.take_over(self._progress, before)
        self._arrivals = arrivals
        self._single, self._alone, self._never_singly = None, 0, False
        self._seen = Seen(())  # which types came before is unknown
        return {name: None if self._progress is None else self._progress.since(name) for name in joined}

    # -- state ---------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """Return the state, from which another process can continue."""
        self._take_pending()
        numbers, tables = ({}, {}) if self._progress is None else self._progress.save()
        identity = self._arrivals.compiler.identity
        return SavedState(identity, {**numbers, "counts": self._counts()}, tables).to_bytes()

    def restore(self, data: bytes) -> Stream:
        """Continue from a saved state of the same query; returns the stream itself."""
        if self.events_in or self._pending or self._finished:
            raise StateError("the stream has already taken events\n  hint: restore into a new stream")
        saved = SavedState.from_bytes(data)
        identity = self._arrivals.compiler.identity
        if saved.query != identity:
            raise StateError(
                "the state belongs to another query\n"
                f"  it was saved by:\n{_indented(saved.query)}\n  and this is:\n{_indented(identity)}\n"
                "  hint: start the changed query without the state, or continue with the old query"
            )
        self._seen = Seen(())  # what came before is unknown
        if "schema" in saved.tables:
            schema = saved.tables["schema"].schema
            columns = dict(zip(schema.names, schema.types, strict=True))
            self._arrivals.check_saved(columns)
            progress = self._arrivals.begin(columns, saved.numbers.get("since"))
            progress.load(saved.numbers, saved.tables)
            self._progress = progress
            self._finished = saved.numbers["watermark"] == END
        counts = saved.numbers["counts"]
        self._aside.late_count, self._aside.dead_count = counts["late"], counts["dead"]
        self.events_in, self.matches_out = counts["in"], counts["out"]
        return self

    def _counts(self) -> dict[str, int]:
        return {
            "late": self.late_count,
            "dead": self.dead_count,
            "in": self.events_in,
            "out": self.matches_out,
        }

    @property
    def is_prompt(self) -> bool:
        """Whether every match is emitted with its last event, and so in output order.

        Known once the columns of the events are known. Never true for a query set, whose matches are ordered
        by query.
        """
        run = None if self._progress is None else self._progress.run
        return isinstance(run, LocalRun) and not run.awaits_time and not run.program.distinct

    def describe(self) -> dict[str, Any]:
        """Describe the state: events by leaf, bytes, the oldest time, the watermark and the counts."""
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
