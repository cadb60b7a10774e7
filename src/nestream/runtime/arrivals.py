"""Classifies arriving events: to be taken, late, or dead letters. The stream changes only when it takes them.

The schema of a stream grows with its events, so checking events may lead to a run for a wider schema, which
takes over from the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nestream.model.columns import to_table, with_columns, with_room
from nestream.model.iso_times import with_times
from nestream.model.plain import has_one_dictionary, roomy
from nestream.model.schema import EventError, Schema
from nestream.model.time import Duration
from nestream.runtime.compiled import Begin, Compiled, Since
from nestream.runtime.intake import Columns, check_computable, grown, without_role
from nestream.runtime.joining import Joining
from nestream.runtime.progress import Progress
from nestream.runtime.reorder_buffer import Times
from nestream.runtime.runs import AnyRun, started
from nestream.runtime.state import StateError


@dataclass(frozen=True)
class Compiler:
    """A query before its events are known: what it needs of them, and how it is compiled for their schema.

    `compiled` raises where the query does not fit the schema. `identity` is what a saved state must agree
    with. `attributes` are those that the query reads, `computed` those that it computes with, and `types` the
    event types that it names. With `whole` a match shows events with all their columns; otherwise columns
    that the query does not read are ignored. `members` are the identities of the queries of a set. With
    `fixed` the columns are known and never change, and events that no query reads never arrive.
    """

    compiled: Callable[[Schema, Begin | None], Compiled]
    identity: str
    attributes: tuple[str, ...]
    computed: tuple[str, ...]
    types: tuple[str, ...]
    whole: bool
    members: Mapping[str, str]
    limit: int | None = None
    fixed: bool = False


@dataclass(frozen=True)
class Arrival:
    """Checked events that can be taken: row numbers refer to the table that arrived."""

    progress: Progress | None
    table: pa.Table
    times: Times
    dead: list[tuple[int, str]]
    late: list[int]


class Arrivals:
    """What a stream knows of its events before they arrive."""

    def __init__(
        self, compiler: Compiler, *, time: str, type: str, lateness: int | Duration, schema: Schema | None
    ) -> None:
        self.compiler = compiler
        self.time = time
        self.type = type
        self.lateness = lateness
        self._reads = frozenset(compiler.attributes)
        self._mentioned = [name for name in compiler.attributes if name not in ("ts", "type")]
        self._given = schema
        self._types = schema.types if schema is not None else {}
        self._used = {*self._reads, time, type}
        declared = {} if schema is None else schema.columns
        self._declared = {name: roomy(kind) for name, kind in declared.items() if self._is_used(name)}
        self._plain: pa.Schema | None = None
        """The columns of the last table, in plain types."""
        self._roomy: pa.Schema | None = None
        """These columns, with room for more words in their dictionaries."""
        self._dictionaries: list[int] = []
        """The places of its dictionaries."""

    def begin(self, columns: Columns | None = None, since: Mapping[str, int] | None = None) -> Progress:
        """The beginning of a stream with some columns, by default the declared ones.

        Queries that joined a running set see events `since` a time.
        """
        schema = self._schema(self._declared if columns is None else columns)
        return Progress.of(self._run(schema, since or {}), self.lateness)

    def _run(self, schema: Schema, since: Mapping[str, int]) -> AnyRun:
        return started(self.compiler.compiled(schema, Since(since) if since else None))

    def _schema(self, columns: Columns) -> Schema:
        return Schema(columns, self.time, self.type, self._types)

    def _is_used(self, name: str) -> bool:
        return self.compiler.whole or name in self._used

    # -- other queries -------------------------------------------------------------------------------------

    def changed(self, compiler: Compiler) -> Arrivals:
        """What a stream knows before its events arrive, for the queries of another compiler."""
        return Arrivals(compiler, time=self.time, type=self.type, lateness=self.lateness, schema=self._given)

    def take_over(self, progress: Progress, before: Compiler) -> tuple[Progress, list[str]]:
        """Carry the progress of a set over to the queries of this one; raises if they do not fit the events.

        Queries in both sets continue; the others leave, or join. Also returns the names of those that join.
        """
        held = progress.run.schema.columns
        columns = {**self._declared, **{name: kind for name, kind in held.items() if self._is_used(name)}}
        if not self.compiler.fixed:
            columns |= {name: pa.null() for name in self._mentioned if name not in columns}
        members = self.compiler.members
        staying = {name for name, identity in before.members.items() if members.get(name) == identity}
        joining = Joining(progress, staying, columns, whole=before.whole, fixed=before.fixed)
        run = started(self.compiler.compiled(self._schema(columns), joining))
        return progress.going_on(run, self.lateness, self.compiler.computed, staying), joining.joined

    # -- batches -------------------------------------------------------------------------------------------

    def batch(self, events: Any) -> pa.Table:
        """Convert a batch, as users pass it, to a table."""
        if isinstance(events, pa.Table) and events.schema == self._plain and self._is_plain(events):
            return events
        table = to_table(events, self.type, self.time)
        self._plain = table.schema
        self._roomy = pa.schema([field.with_type(roomy(field.type)) for field in table.schema])
        self._dictionaries = [
            place for place, field in enumerate(table.schema) if pa.types.is_dictionary(field.type)
        ]
        return table

    def _is_plain(self, table: pa.Table) -> bool:
        """Whether the dictionaries of a table in plain types are plain too: one a column, without NULL."""
        columns = map(table.column, self._dictionaries)
        return all(
            has_one_dictionary(column) and not any(chunk.dictionary.null_count for chunk in column.chunks)
            for column in columns
        )

    # -- looking -------------------------------------------------------------------------------------------

    def look(self, table: pa.Table, progress: Progress | None) -> Arrival:
        """Classify the events. Raises if they do not fit; changes nothing."""
        dead: list[tuple[int, str]] = []
        table, rows = self._readable(self._timed(table, progress), None, dead)
        known = progress is not None and self._is_known(table.schema, progress.run.schema.arrow)
        if table.num_rows and not known:
            table = with_room(table.select([name for name in table.column_names if self._is_used(name)]))
            columns = self._grown(table, progress)
            table = with_columns(table, columns)
            table, rows = self._readable(table, rows, dead)  # NaN for a time is NULL
        if not table.num_rows:
            return Arrival(progress, table, np.empty(0, np.int64), dead, [])
        if progress is None:
            progress = self.begin(columns)
        elif not known and columns != progress.run.schema.columns:
            self._refuse_shadows(columns, progress.run.schema)
            progress = self._widened(progress, self._schema(columns))
        times = progress.times(table)
        check_computable(table, self.compiler.computed, progress.run.schema.unit)
        behind = progress.late(times)
        if behind is None:
            return Arrival(progress, table, times, dead, [])
        on_time = table.filter(pa.array(~behind))
        late = np.flatnonzero(behind) if rows is None else rows[behind]
        return Arrival(progress, on_time, times[~behind], dead, late.tolist())

    def _is_known(self, found: pa.Schema, known: pa.Schema) -> bool:
        """Whether columns are those of a run, as they are or with fewer words in their dictionaries."""
        return bool(found == known or (found == self._plain and self._roomy == known))

    def _timed(self, table: pa.Table, progress: Progress | None) -> pa.Table:
        """Convert times that are text to timestamps, unless times are known to be integers."""
        columns = self._declared if progress is None else progress.run.schema.columns
        known = columns.get(self.time)
        return table if known is not None and pa.types.is_integer(known) else with_times(table, self.time)

    def _readable(self, table: pa.Table, rows: Any, dead: list[tuple[int, str]]) -> tuple[pa.Table, Any]:
        """The events with a time and a type, and their rows (None for all); the others are dead letters."""
        for role, name in (("time", self.time), ("type", self.type)):
            lacking = without_role(table, role, name)
            if lacking is not None:
                absent, reason = lacking
                rows = np.arange(table.num_rows) if rows is None else rows
                dead += [(row, reason) for row in rows[absent].tolist()]
                table, rows = table.filter(pa.array(~absent)), rows[~absent]
        return table, rows

    def _widened(self, progress: Progress, schema: Schema) -> Progress:
        """The progress with a run for a wider schema."""
        scale = progress.scale(schema)
        since = {name: time * scale for name, time in progress.run.since.items()}
        return progress.going_on(self._run(schema, since), self.lateness, self.compiler.computed)

    def _grown(self, table: pa.Table, progress: Progress | None) -> Columns:
        known = {} if progress is None else dict(progress.run.schema.columns)
        return grown(known, table, {*self._declared, self.time, self.type}, self._mentioned)

    def _refuse_shadows(self, columns: Columns, before: Schema) -> None:
        """Raise if a column would change the meaning of a name that the query has read so far."""
        for name in self._schema(columns).shadowed.keys() - before.shadowed.keys():
            if name in self._reads:
                raise EventError(
                    f"column `{name}` came after the query began to read `{name}` as the event's own\n"
                    "  hint: declare the columns with schema=, or rename this one"
                )

    # -- restoring -----------------------------------------------------------------------------------------

    def check_saved(self, columns: Columns) -> None:
        """Raise if the saved events have other columns than this stream."""
        for role, name in (("time", self.time), ("type", self.type)):
            if name not in columns:
                raise StateError(
                    f"the saved events have no column `{name}` for their {role}: "
                    f"they have {', '.join(columns)}"
                )
        for name, datatype in self._declared.items():
            if columns.get(name, datatype) != datatype:
                raise StateError(
                    f"the schema says that column `{name}` is {datatype}, but in the saved state it is "
                    f"{columns[name]}\n  hint: use the schema that the state was saved with"
                )
