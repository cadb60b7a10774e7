"""The progress of a stream: the run of its query, the events waiting for the watermark, the greatest time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.matcher import END
from nestream.engine.retention import LEAST
from nestream.model.columns import times_of, with_columns
from nestream.model.lengths import in_resolution
from nestream.model.plain import empty_table
from nestream.model.schema import EventError, Schema
from nestream.model.time import Duration
from nestream.runtime.intake import check_computable
from nestream.runtime.layers import HIDDEN, QUERY, LayeredRun, RunningLayer
from nestream.runtime.local import LocalRun
from nestream.runtime.query_set import SetRun
from nestream.runtime.reorder_buffer import ReorderBuffer, Times, together
from nestream.runtime.runs import AnyRun
from nestream.runtime.saved_events import TIME, TYPE


@dataclass
class Progress:
    """A run with the events that have arrived and wait; times are in the resolution of the run."""

    run: AnyRun
    patience: int
    waiting: ReorderBuffer = field(default_factory=ReorderBuffer)
    greatest: int | None = None

    @classmethod
    def of(cls, run: AnyRun, lateness: int | Duration) -> Progress:
        """The beginning of a stream."""
        return cls(run, in_resolution(lateness, "lateness", run.schema))

    # -- events --------------------------------------------------------------------------------------------

    def times(self, table: pa.Table) -> Times:
        """The times of events; raises an `EventError` for a value that cannot be an event's time."""
        schema = self.run.schema
        times = times_of(table.column(schema.time), schema)
        if len(times) and times.max() == END:
            raise EventError(
                f"column `{schema.time}`: {END} marks the end of time, so it cannot be an event's time\n"
                "  hint: use smaller times; the greatest is one less"
            )
        return times

    @property
    def watermark(self) -> int | None:
        """The time that no further event may be before; None before the first event."""
        if self.greatest is None:
            return self.run.watermark
        reached = max(self.greatest - self.patience, LEAST)
        return reached if self.run.watermark is None else max(reached, self.run.watermark)

    def late(self, times: Times) -> npt.NDArray[np.bool_] | None:
        """Which events are behind the watermark when they arrive, one after the other; None if none are."""
        now = self.watermark
        if (now is None or times[0] >= now) and bool((times[1:] >= times[:-1]).all()):
            return None
        before = np.concatenate((times[:1], np.maximum.accumulate(times)[:-1]))
        if self.greatest is not None:
            before = np.maximum(before, self.greatest)
        patience = min(self.patience, END)
        reached = np.where(before < LEAST + patience, LEAST, before - patience)
        if self.run.watermark is not None:  # may be further, if the lateness was different before a restart
            reached = np.maximum(reached, self.run.watermark)
        behind = np.asarray(times < reached)
        return behind if behind.any() else None

    def take(self, table: pa.Table, times: Times) -> None:
        """Take events that are not late, in arrival order."""
        if len(times):
            most = int(times.max())
            self.greatest = most if self.greatest is None else max(most, self.greatest)
            self.waiting.add(table, times)

    def decided(self) -> Iterator[pa.Table]:
        """The matches that the watermark decides."""
        watermark = self.watermark
        return iter(()) if watermark is None else self.up_to(watermark)

    def up_to(self, watermark: int) -> Iterator[pa.Table]:
        """Pass the events up to a time to the engine, by time and arrival; return the matches it decides."""
        self._settle(watermark)
        return self.run.advance(watermark)

    def pass_over(self) -> None:
        """Pass the events up to the watermark to the engine; their matches were already emitted."""
        watermark = self.watermark
        if watermark is not None:
            self._settle(watermark)
            self.run.pass_over(watermark)

    def _settle(self, watermark: int) -> None:
        ready = self.waiting.settled(watermark)
        if ready is not None:
            self.run.append(ready)

    # -- a schema that grows -------------------------------------------------------------------------------

    def going_on(
        self,
        run: AnyRun,
        lateness: int | Duration,
        read: Iterable[str],
        staying: Collection[str] | None = None,
    ) -> Progress:
        """The same progress with a run for a wider schema or other queries, which takes over from this one.

        This object does not change. All times move to the resolution of the new run together. For a set,
        `staying` are the queries that continue; None for all. Raises an `EventError` if something held does
        not fit.
        """
        read = list(read)
        later = Progress.of(run, lateness)
        scale = self.scale(run.schema)
        columns = run.schema.columns
        before = layers_of(self.run)
        for reads, new in layers_of(run).items():
            old = before.get(reads)
            if old is None:
                continue
            _carry_over(_run(old), _run(new), scale, read, staying)
            if isinstance(old, RunningLayer) and isinstance(new, RunningLayer):
                for table in old.events.tables():
                    new.wait(new.events, with_columns(table, new.columns, held=True))
                for table in old.composites.tables():
                    own = {**new.columns, **{n: t for n, t in _types(table).items() if n in HIDDEN}}
                    table = with_columns(table, own, held=True)
                    new.wait(new.composites, _renumbered(table, self.run, run))
        for part in self.waiting.parts:
            table = with_columns(part.table, columns, held=True)
            check_computable(table, read, run.schema.unit)
            later.waiting.add(table, later.times(table))
        later.greatest = None if self.greatest is None else self.greatest * scale
        if later.greatest is not None and not LEAST <= later.greatest < END:
            raise _too_fine(run.schema.time)
        return later

    def scale(self, schema: Schema) -> int:
        """The factor by which the resolution of times is finer in another schema."""
        if not pa.types.is_temporal(schema.columns[schema.time]):
            return 1
        return schema.per_microsecond // self.run.schema.per_microsecond

    def since(self, name: str) -> Any:
        """The time since which a query of a set sees events, as the events write it; None for all."""
        since, schema = self.run.since.get(name), self.run.schema
        kind = schema.columns[schema.time]
        if since is None or not pa.types.is_timestamp(kind):
            return since
        microseconds = pa.scalar(-(-since // schema.per_microsecond), pa.int64())
        return microseconds.cast(pa.timestamp("us", kind.tz)).as_py()

    # -- state ---------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """The state as numbers and tables."""
        numbers, tables = self.run.save()
        if len(self.waiting):
            tables["waiting"] = together(self.waiting.tables())
        schema = empty_table(self.run.schema.arrow)
        numbers = {**numbers, "greatest": self.greatest, "since": self.run.since}
        return numbers, {**tables, "schema": schema}

    def load(self, numbers: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """Continue from a saved state of the same query."""
        self.run.load(numbers, tables)
        self.greatest = numbers["greatest"]
        if "waiting" in tables:
            self.waiting.add(tables["waiting"], self.times(tables["waiting"]))


def layers_of(run: AnyRun) -> dict[frozenset[str], RunningLayer | SetRun | LocalRun]:
    """The layers of a run by the composite types they read; a run without layers is its own layer."""
    return {layer.reads: layer for layer in run.layers} if isinstance(run, LayeredRun) else {frozenset(): run}


def _run(layer: RunningLayer | SetRun | LocalRun) -> SetRun | LocalRun:
    return layer.run if isinstance(layer, RunningLayer) else layer


def _carry_over(
    before: SetRun | LocalRun,
    run: SetRun | LocalRun,
    scale: int,
    read: list[str],
    staying: Collection[str] | None,
) -> None:
    """Let a run for a wider schema, or with other queries, take over from another."""
    numbers, tables = before.save()
    if staying is not None:
        assert isinstance(before, SetRun)
        decided = {name: done for name, done in numbers["decided"].items() if name in staying}
        numbers = {**numbers, "decided": decided, "floor": before.complete_since()}
        gone = {
            f"{what} {name}" for name in before.names if name not in staying for what in ("given", "kept")
        }
        tables = {name: table for name, table in tables.items() if name not in gone}
    columns, events, type = run.schema.columns, tables["held"], run.schema.type
    if type not in events.column_names:
        events = events.append_column(type, events.column(TYPE))
    held = {name: columns.get(name, kind) for name, kind in _types(events).items()}
    held = {**held, **{name: kind for name, kind in columns.items() if name not in held}}
    tables = {**tables, "held": _scaled(with_columns(events, held, held=True), scale, run.schema.time)}
    tables |= {name: _scaled_kept(table, scale) for name, table in tables.items() if _is_kept(name)}
    check_computable(tables["held"], read, run.schema.unit)
    if numbers["watermark"] is not None:
        numbers = {**numbers, "watermark": max(numbers["watermark"] * scale, LEAST)}
    if "floor" in numbers:
        numbers = {**numbers, "floor": max(numbers["floor"] * scale, LEAST)}
    run.load(numbers, tables)
    if isinstance(before, SetRun) and isinstance(run, SetRun):
        run.seconds = before.seconds


def _renumbered(composites: pa.Table, before: AnyRun, run: AnyRun) -> pa.Table:
    """Composite events with the query numbers of another run; -1 for a query that is gone."""
    assert isinstance(before, LayeredRun)
    assert isinstance(run, LayeredRun)
    places = {name: place for place, name in enumerate(run.names)}
    numbers = np.array([places.get(name, -1) for name in before.names], np.int64)
    found = numbers[composites.column(QUERY).to_numpy()]
    return composites.set_column(composites.schema.get_field_index(QUERY), QUERY, pa.array(found))


def _types(table: pa.Table) -> dict[str, pa.DataType]:
    return dict(zip(table.column_names, table.schema.types, strict=True))


def _scaled(held: pa.Table, scale: int, time: str) -> pa.Table:
    """The held events, with times in a finer resolution."""
    if scale == 1:
        return held
    times = held.column(TIME).to_numpy()
    if len(times) and max(abs(int(times.min())), abs(int(times.max()))) >= END // scale:
        raise _too_fine(time)
    return held.set_column(held.schema.get_field_index(TIME), TIME, pa.array(times * scale))


def _is_kept(name: str) -> bool:
    return name == "kept" or name.startswith("kept ")


def _scaled_kept(kept: pa.Table, scale: int) -> pa.Table:
    """What KEEP holds and remembers, with times in a finer resolution."""
    for name in ("end", "until", "start") if scale != 1 else ():
        times = [min(max(time * scale, LEAST), END) for time in kept.column(name).to_pylist()]
        kept = kept.set_column(kept.schema.get_field_index(name), name, pa.array(times, pa.int64()))
    return kept


def _too_fine(time: str) -> EventError:
    return EventError(
        f"a column in nanoseconds came, and times held in `{time}` do not fit in 64 bits of nanoseconds\n"
        "  hint: convert the new column to microseconds"
    )
