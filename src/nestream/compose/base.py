"""What a query and a query set share: running over tables, as a stream, and on Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nestream.logical.nodes import Plan, expressions, leaves
from nestream.model.diagnostics import Diagnostic
from nestream.model.event_types import named_types
from nestream.model.expression import END_ATTRIBUTE, Attribute, Expression, attributes, column_name
from nestream.model.lazy import lazy, pa
from nestream.model.plain import empty_table
from nestream.model.results import Form, Matchable, in_form, known_form
from nestream.model.schema import Order, Schema
from nestream.model.time import WindowKind
from nestream.model.unseen import warn_of

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Unpack

    from nestream.compose.inputs import batches_of, held, is_place
    from nestream.compose.settings import How, Settings, known_threads
    from nestream.compose.spark import (
        dataframe_of,
        in_process,
        is_dataframe,
        planned_from,
        refuse_dataframe,
        stream_files,
        zone_that_matters,
    )
    from nestream.model.columns import check_events, quiet, to_table
    from nestream.model.lengths import Length
    from nestream.model.memory import collected
    from nestream.runtime.compiled import Begin, Compiled
    from nestream.runtime.intake import check_computable
    from nestream.runtime.runs import AnyRun, started
    from nestream.runtime.stream import Compiler, Stream
    from nestream.strategies import Options
else:  # loaded on use: parsing and printing a query needs none of them
    Settings, known_threads = lazy("nestream.compose.settings", "Settings", "known_threads")
    batches_of, held, is_place = lazy("nestream.compose.inputs", "batches_of", "held", "is_place")
    dataframe_of, in_process, is_dataframe = lazy(
        "nestream.compose.spark", "dataframe_of", "in_process", "is_dataframe"
    )
    planned_from, refuse_dataframe, stream_files, zone_that_matters = lazy(
        "nestream.compose.spark", "planned_from", "refuse_dataframe", "stream_files", "zone_that_matters"
    )
    check_events, quiet, to_table = lazy("nestream.model.columns", "check_events", "quiet", "to_table")
    (collected,) = lazy("nestream.model.memory", "collected")
    (check_computable,) = lazy("nestream.runtime.intake", "check_computable")
    (started,) = lazy("nestream.runtime.runs", "started")
    Compiler, Stream = lazy("nestream.runtime.stream", "Compiler", "Stream")

SPLITTING = ("partition_by", "partitions", "slice_length", "statistics")
"""The arguments that say how Spark splits the events."""
COUNTED = 2.0
"""For how many seconds the matches of a result that may not fit in memory are counted."""


class Matching(Matchable, ABC):
    """Runs one query or many over events: in this process, as a stream, or on Spark."""

    # -- what is to be said of each ------------------------------------------------------------------------

    @property
    @abstractmethod
    def plans(self) -> tuple[Plan, ...]:
        """The logical plans."""

    @abstractmethod
    def compiled(
        self,
        schema: Schema,
        settings: Settings,
        events: pa.Table | None = None,
        begin: Begin | None = None,
    ) -> Compiled:
        """What runs over events of a schema; a strategy may look at the first events.

        `begin` says since when each query of a set sees events.
        """

    @abstractmethod
    def identity(self, order: str, strategy: str) -> str:
        """What a saved state must agree with."""

    @abstractmethod
    def as_of(self, time: Any) -> Matching:
        """The same over events that are complete up to a time."""

    @abstractmethod
    def unseen(self, table: pa.Table, type: str = "type") -> list[str]:
        """Messages about types that the query names and no event has, most likely misspelt."""

    @abstractmethod
    def unknown_attributes(
        self, columns: Mapping[str, pa.DataType], came: Collection[str] | None, time: str, type: str
    ) -> dict[str, list[Diagnostic]]:
        """The attributes that the events lack, given all their columns, by the name of the query.

        With `came`, a type that is not among them may still have any attribute.
        """

    @abstractmethod
    def types_by_query(self) -> dict[str, tuple[str, ...]]:
        """The event types that each query names and no other makes, by the name of the query."""

    @abstractmethod
    def _check_stream(self) -> int | None:
        """Return the LIMIT of a stream; raises if there can be none."""

    @abstractmethod
    def _typed(self, schema: Schema) -> Any:
        """The plans typed for events of a schema."""

    @abstractmethod
    def _on_spark(
        self, df: Any, schema: Schema, settings: Settings, sample: Any = None, **partitioning: Any
    ) -> Any:
        """The matches over a DataFrame."""

    # -- what is asked of the events -----------------------------------------------------------------------

    @property
    def event_types(self) -> tuple[str, ...]:
        """The event types that are named."""
        return named_types(name for plan in self.plans for leaf in leaves(plan.root) for name in leaf.types)

    @property
    def expected_types(self) -> tuple[str, ...]:
        """The event types that the events are expected to have."""
        return self.event_types

    @property
    def attributes_read(self) -> tuple[str, ...]:
        """The attributes that are read, including time and type, but not the end of an event."""
        formulas = (formula for plan in self.plans for formula in expressions(plan))
        read = dict.fromkeys(column_name(part.name) for formula in formulas for part in attributes(formula))
        return tuple(name for name in read if name != END_ATTRIBUTE)

    @property
    def computed(self) -> tuple[str, ...]:
        """The attributes that are computed with, and not only shown; without time and type."""
        return _names(
            part for plan in self.plans for part in expressions(plan) if not isinstance(part, Attribute)
        )

    @property
    def shows_events(self) -> bool:
        """Whether a match has whole events, with all their columns."""
        return any(plan.output.shows_events for plan in self.plans)

    def fitted(self, table: pa.Table, time: str, type: str) -> pa.Table:
        """The events; if there are none, with columns that the plans can be typed against."""
        numbers = self.plans[0].window.kind is WindowKind.NUMBER
        read = _names(formula for plan in self.plans for formula in expressions(plan))
        return quiet(table, time, type, pa.int64() if numbers else pa.timestamp("us"), read)

    def read(self, events: Any, **how: Unpack[How]) -> tuple[pa.Table, Schema]:
        """The events as a checked table, and their schema."""
        settings = Settings.of(how)
        events = held(events, settings.time, settings.type)
        table = self.fitted(to_table(events, settings.type, settings.time), settings.time, settings.type)
        schema = settings.schema(table.schema, events)
        check_events(table, schema)
        return table, schema

    # -- finite events -------------------------------------------------------------------------------------

    def _match(
        self,
        events: Any,
        *,
        to: Form | None = None,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Options | None = None,
        threads: int | None = None,
        as_of: Any = None,
        **on_spark: Any,
    ) -> Any:
        form = known_form(to)
        how: How = {"time": time, "type": type, "types": types, "order": order}
        how |= {"strategy": strategy, "options": options}
        if as_of is not None:
            return self.as_of(as_of).match(events, to=to, threads=threads, **how, **on_spark)
        if is_dataframe(events):
            found = self.on_spark(events, **how, **on_spark)
            return found if form is None else in_form(in_process(found), form)
        for name in on_spark:
            if name not in SPLITTING:
                raise TypeError(f"unknown argument {name!r}: use one of {', '.join((*how, 'threads', 'to'))}")
            raise TypeError(f"{name} only applies to Spark DataFrames")
        events = held(events, time, type)
        tables = self.batches(events, threads=threads, **how)
        return in_form(collected(tables, lambda: self.count_within(COUNTED, events, **how)), form)

    def count_within(self, seconds: float, events: Any, **how: Unpack[How]) -> int | None:
        """The number of matches; None if it is not known within that many seconds."""
        return None

    def batches(self, events: Any, *, threads: int | None = None, **how: Unpack[How]) -> Iterator[pa.Table]:
        """Yield the matches of `match` as tables, within the memory budget of the options.

        The first table is empty and has the columns. Stop iterating to stop matching. Takes the options of
        `match`.
        """
        run, table = self._started(events, how)
        yield empty_table(run.wanted)
        yield from run.over(table, known_threads(threads))

    def _started(self, events: Any, how: Mapping[str, Any]) -> tuple[AnyRun, pa.Table]:
        """The run over finite events, and their table."""
        settings = Settings.of(how)
        table, schema = self.read(events, **how)
        run = started(self.compiled(schema, settings, table))
        check_computable(table, self.computed, schema.unit)
        warn_of(self.unseen(table, settings.type))
        return run, table

    # -- events that keep coming ---------------------------------------------------------------------------

    def stream(
        self,
        events: Iterable[Any] | None = None,
        *,
        time: str = "ts",
        type: str = "type",
        schema: pa.Schema | Schema | None = None,
        order: str = "time",
        lateness: int | timedelta | str = 0,
        late: Callable[[dict[str, Any]], None] | None = None,
        dead_letter: Callable[[Any, str], None] | None = None,
        strategy: str = "auto",
        options: Options | None = None,
    ) -> Any:
        """Match events as they arrive.

        With `events`, an iterable of dictionaries or batches, or the path of files, returns an iterator over
        the matches:
        `for match in query.stream(events): ...`. Without, returns a `Stream` to push events into:
        `stream.push(event)`, `stream.push_batch(table)`, `stream.finish()`, `stream.save()`. A match of a
        query set has the name of its query.

        Events may arrive out of order by up to `lateness`: a duration such as "5 s", a timedelta, or a number
        in the unit of the time column. `late` is called with events that are later than that, and
        `dead_letter` with events that have no time or type, or whose values do not fit. Both are counted;
        without a handler, the first one issues a warning.

        >>> import nestream
        >>> query = nestream.query("SEQ(A a, B b) WITHIN 10 RETURN b.ts - a.ts AS took")
        >>> list(query.stream([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}]))
        [{'took': 2, 'match_start': 1, 'match_end': 3}]
        """
        settings = Settings(time, type, None, order, strategy, options)
        settings.without_reference("cannot run on a stream: it needs all events at once")
        refuse_dataframe(events)
        if is_place(events):
            events = batches_of(events, time, type)
        if isinstance(schema, pa.Schema):
            schema = Schema.of(schema, time, type)
        stream = Stream(
            self._compiler(settings),
            time=time,
            type=type,
            schema=schema,
            lateness=lateness,
            late=late,
            dead_letter=dead_letter,
            compiler_of=self._changed_compiler(settings),
        )
        return stream if events is None else stream.run(events)

    def _compiler(self, settings: Settings) -> Compiler:
        """How to compile this once the events of a stream are known."""

        def compiled(known: Schema, begin: Begin | None) -> Compiled:
            return self.compiled(replace(known, order=Order.named(settings.order)), settings, begin=begin)

        return Compiler(
            compiled,
            self.identity(settings.order, settings.strategy),
            self.attributes_read,
            self.computed,
            self.expected_types,
            whole=self.shows_events,
            limit=self._check_stream(),
            members=self._identities(settings),
        )

    def _identities(self, settings: Settings) -> dict[str, str]:
        """The identities of the queries of a set."""
        return {}

    def _changed_compiler(self, settings: Settings) -> Callable[[Any], Compiler] | None:
        """How to compile a set that replaces this one; None if none can."""
        return None

    # -- Spark ---------------------------------------------------------------------------------------------

    def on_spark(
        self,
        events: Any,
        *,
        partition_by: str | None = None,
        partitions: int | None = None,
        slice_length: Length | None = None,
        statistics: bool = True,
        sample: Any = None,
        **how: Unpack[How],
    ) -> Any:
        """Return the matches over a Spark DataFrame, or a mapping of types to DataFrames, as a DataFrame.

        Takes the options of `match`. Nothing runs before you use the result. nestream chooses how to split
        the events over partitions, and `explain` shows the choice. Override it with `partition_by` ("key",
        "time", "key+time" or "single"), the number of `partitions`, and the `slice_length` of time slices:
        a duration such as "1 day", a timedelta, or a number in the unit of the time column.

        If a batch may have a key with too many events for one task, or is split by key and time, its first
        rows are sampled for the choice, unless `statistics` is False. A strategy that uses statistics is
        planned from the first events of each partition, or from a `sample` of events in this process.

        A streaming DataFrame needs a watermark on its time column and returns a streaming DataFrame. It is
        split by key or not at all, and `partitions` is the number of key buckets.

        Queries of a set whose events can be split in the same way run together, in one pass. A batch reads
        the events once for each such group; a stream is one group.
        """
        settings = Settings.of(how)
        settings.without_reference("does not run on Spark")
        df, schema = dataframe_of(events, settings)
        return self._on_spark(
            df,
            schema,
            settings,
            partition_by=partition_by,
            partitions=partitions,
            slice_length=slice_length,
            statistics=statistics,
            sample=sample,
        )

    def _compiled_for(
        self, df: Any, schema: Schema, settings: Settings, sample: Any = None
    ) -> tuple[Any, str]:
        """What is compiled for a DataFrame, and what a saved state must agree with."""
        identity = self.identity(settings.order, settings.strategy)
        compiled = planned_from(self.compiled(schema, settings), sample, settings)
        return compiled, identity + zone_that_matters(self._typed, schema, df)

    def stream_files(
        self, spark: Any, source: str, sink: str, *, time: str = "ts", type: str = "type", **options: Any
    ) -> Any:
        """Match the files of a folder on Spark, present and future, and write the matches to another folder.

        Returns the running stream, with `wait(seconds)`, `stop()` and `progress`.
        """
        limit = self._check_stream()
        return stream_files(
            self._compiled_for, spark, source, sink, time=time, type=type, limit=limit, **options
        )


def _names(formulas: Iterable[Expression]) -> tuple[str, ...]:
    """The attributes that formulas read, without time and type."""
    read = dict.fromkeys(column_name(part.name) for formula in formulas for part in attributes(formula))
    return tuple(name for name in read if name not in ("ts", "te", "type"))
