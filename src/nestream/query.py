"""The one composer: text to plan, plan and events to matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa

from nestream.binding.binder import BoundQuery, bind
from nestream.binding.typing import check_types, result_kind
from nestream.compose.explaining import analyzed, as_operators, explained, known_format, with_rewriting
from nestream.compose.run import STRATEGIES as STRATEGIES  # for the command line
from nestream.compose.run import SWITCHES as SWITCHES
from nestream.compose.run import Run, check_lateness, known_order, known_strategy
from nestream.compose.spark import SparkRun, is_dataframe, stream_files
from nestream.compose.spark import spark_frame as spark_frame
from nestream.compose.spark import spark_session as spark_session
from nestream.engine.program import Switches, options_of
from nestream.language.ast import Dialect
from nestream.language.literals import shortened
from nestream.language.parser import read_query
from nestream.language.printer import print_query, saved_spelling
from nestream.logical.nodes import Plan, expressions, leaves
from nestream.model.columns import attributes_by_type, check_events, resolution, to_table
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.expression import attributes
from nestream.model.output import ValueColumn
from nestream.model.schema import Kind, Schema
from nestream.model.time import WindowKind
from nestream.reference import match_reference
from nestream.runtime.local import LocalRun
from nestream.runtime.state import StateError as StateError  # a public name
from nestream.runtime.stream import Stream
from nestream.show import Shown, query_html, show_matches
from nestream.why import Why, explain_why


def query(text: str, dialect: str | None = None) -> Query:
    """Parse and check a query.

    The dialect is detected; `dialect` ("neel", "neel+" or "sase") accepts only that one. Raises `QueryError`
    with all problems of the query.
    """
    tree, problems = read_query(text, dialect)
    if tree is None:
        raise QueryError(problems, text)
    try:
        bound = bind(tree, text)
        problems += check_types(bound.plan)[1]
    except QueryError as error:  # with what was wrong in reading, so that all is said at once
        found = [said for said in error.diagnostics if said.is_error or not problems]
        raise QueryError([*problems, *found], text) from None
    if problems:
        raise QueryError([*problems, *bound.warnings], text)
    return Query(bound)


@dataclass(frozen=True, repr=False)
class Query:
    """A checked query: match it, stream it, explain it, or ask why events do not match."""

    bound: BoundQuery

    @property
    def text(self) -> str:
        """The text that the query was made from."""
        return self.bound.text

    @property
    def plan(self) -> Plan:
        """The logical plan."""
        return self.bound.plan

    @property
    def dialect(self) -> Dialect:
        """The dialect of the query."""
        return self.bound.tree.dialect

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of `nestream check`."""
        return self.bound.warnings

    @property
    def target_variables(self) -> frozenset[str]:
        """The variables that a match binds, before EXISTS and RETURN."""
        return self.bound.target_variables

    @property
    def free_variables(self) -> frozenset[str]:
        """The variables that the query mentions and binds: its target variables."""
        return self.bound.free_variables

    @cached_property
    def formatted(self) -> str:
        """The query as `nestream fmt` prints it."""
        return print_query(self.bound.tree)

    def __str__(self) -> str:
        return self.formatted

    def __repr__(self) -> str:
        return f"Query({shortened(self.formatted, 120)!r})"

    def _repr_html_(self) -> str:
        return query_html(self)

    def why(self, events: Any, picked: Sequence[Any] | Mapping[str, Any], **options: Any) -> Why:
        """Explain why events are not a match, or part of one: every condition, order, window and negation.

        `picked` are row numbers from 0, or with `by="column"` values of that column; a mapping assigns them
        to variables. Takes the options of `match` for reading events.
        """
        return explain_why(self, events, picked, **options)

    def show(self, events: Any, **options: Any) -> Shown:
        """The matches for a notebook, as a `table` and a `timeline`. Takes the options of `match`."""
        return show_matches(self, events, **options)

    def explain(
        self,
        format: str = "text",
        options: Switches | None = None,
        events: Any = None,
        strategy: str = "auto",
        verbose: bool = False,
        analyze: Any = None,
        dialect: str | None = None,
        **on_spark: Any,
    ) -> Any:
        """The logical plan and how the engine runs it, as text, or as plain data with `format="json"`.

        `events`, a Spark DataFrame, with the options of `on_spark`, adds how Spark splits, reads and filters
        the events, and for a stream the watermark, the state and when matches are emitted. `verbose` adds the
        costs of the strategies for assumed events, and how the plan is rewritten, rule by rule. `analyze`,
        events with the options of `match`, runs the query and shows matches and times beside the estimates.
        `strategy="flat"` shows which expressions share work.

        `dialect="sase"` shows SASE's operators instead: the paper's basic plan, its optimised plan, and the
        plan that runs.
        """
        known_format(format)
        options = options_of(options)
        if dialect is not None:
            if strategy != "auto" or verbose or analyze is not None or events is not None:
                raise ValueError(
                    "dialect='sase' explains the strategy auto alone\n"
                    "  hint: leave strategy, verbose, analyze and events out"
                )
            return as_operators(self.plan, format, options, dialect)
        if verbose:
            shown = self.explain(format, options, events, strategy, analyze=analyze, **on_spark)
            assumed = strategy == "auto" and analyze is None and events is None
            return with_rewriting(shown, self.plan, format, options, assumed=assumed)
        if events is not None:
            return self._explain_on_spark(format, options, events, strategy=strategy, **on_spark)
        if analyze is not None:
            read = {"time": "ts", "type": "type", "types": None, "order": "time", **on_spark}
            return analyzed(self.prepare(analyze, strategy=strategy, **read), format, options)
        return explained(self.plan, format, options, strategy)

    def _explain_on_spark(
        self,
        format: str,
        options: Switches | None,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        **partitioning: Any,
    ) -> Any:
        if not is_dataframe(events):
            raise TypeError(
                "explain takes events as a Spark DataFrame, or a mapping of them by type\n"
                "  hint: use analyze= for other events"
            )
        found = SparkRun.of(self.typed, events, time, type, types, order, strategy, options)
        return found.explained(format, **partitioning)

    def match(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Switches | None = None,
    ) -> Any:
        """All matches as an Arrow table; for a Spark DataFrame, as a lazy DataFrame.

        `events` is an Arrow table, a pandas or Polars DataFrame, a list of dictionaries, a Spark DataFrame,
        or a mapping of these by event type. `time` and `type` name the columns with the time and the type of
        an event. `types` lists the attributes of each type (SASE). With `order="arrival"` events with equal
        times follow one another as they arrive. `on_spark` takes more options for Spark.

        The table has a struct column with the event for each variable, NULL for a branch of an OR that did
        not match, or the columns of RETURN; then `match_start` and `match_end`. Rows are ordered by
        `match_end`, then by the positions of the events.
        """
        if is_dataframe(events):
            return self.on_spark(
                events, time=time, type=type, types=types, order=order, strategy=strategy, options=options
            )
        found = self.batches(
            events, time=time, type=type, types=types, order=order, strategy=strategy, options=options
        )
        return pa.concat_tables([next(found), *found])

    def batches(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Switches | None = None,
    ) -> Iterator[pa.Table]:
        """The matches of `match` as an iterator of tables, within the memory budget of the options.

        The first table is empty and has the columns. Stop iterating to stop matching.
        """
        run = self.prepare(events, time=time, type=type, types=types, order=order, strategy=strategy)
        if strategy == "reference":
            matches = match_reference(run.plan, run.table, run.schema, run.kinds, run.unit, run.order)
            yield from (matches.slice(0, 0), matches)
            return
        local = run.local(options)
        yield local.wanted.empty_table()
        left = run.plan.limit
        for matches in local.over(run.table):
            yield matches if left is None else matches.slice(0, left)
            left = None if left is None else left - matches.num_rows
            if left is not None and left <= 0:
                return

    def on_spark(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Switches | None = None,
        partition_by: str | None = None,
        partitions: int | None = None,
        slice_length: int | None = None,
        statistics: bool = True,
    ) -> Any:
        """The matches over a Spark DataFrame, or a mapping of them by event type, as a DataFrame.

        Nothing runs before the result is used. How the events are split over partitions is chosen and shown
        by `explain`; `partition_by` ("key", "time", "key+time" or "single"), the number of `partitions` and
        the `slice_length` of time slices (in the unit of the time column, microseconds for timestamps)
        override it. Of a batch that may have a key with too many events for one task, the first rows are
        looked at for the choice, unless `statistics` is False.

        A streaming DataFrame needs a watermark on its time column and gives a streaming DataFrame; it is
        split by key or not at all, and `partitions` is the number of key buckets.
        """
        found = SparkRun.of(self.typed, events, time, type, types, order, strategy, options)
        matches = found.matches(
            self.identity(order, strategy),
            partition_by=partition_by,
            partitions=partitions,
            slice_length=slice_length,
            statistics=statistics,
        )
        limit = self.plan.limit
        if limit is None:
            return matches
        return (matches if found.df.isStreaming else matches.orderBy("match_end")).limit(limit)

    def outcomes(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Switches | None = None,
        partition_by: str | None = None,
        partitions: int | None = None,
    ) -> Any:
        """The matches over a streaming Spark DataFrame together with its late and malformed events.

        `outcome` is "match", "late" or "malformed"; `match` holds the columns of a match, `event` those of an
        event that was not taken, and `reason` says why. One stream with one checkpoint gives all of them, so
        that each event and each match is in exactly one place, once.
        """
        found = SparkRun.of(self.typed, events, time, type, types, order, strategy, options)
        if not found.df.isStreaming:
            raise TypeError("outcomes takes a streaming DataFrame: a batch has no late events; use match")
        if self.plan.limit is not None:
            raise ValueError("outcomes does not support LIMIT, which would count late events too")
        settings = {"partition_by": partition_by, "partitions": partitions, "outcomes": True}
        return found.matches(self.identity(order, strategy), **settings)

    def stream_files(
        self, spark: Any, source: str, sink: str, *, time: str = "ts", type: str = "type", **options: Any
    ) -> Any:
        """Match the files of a folder on Spark, those there and those to come, into files of another.

        Gives the running stream: `wait(seconds)`, `stop()` and its `progress`.
        """
        return stream_files(self.on_spark, spark, source, sink, time=time, type=type, **options)

    def identity(self, order: str, strategy: str) -> str:
        """What a saved state must agree with; flat expressions are decided each on its own."""
        flat = "\nSTRATEGY flat" if strategy == "flat" else ""
        return f"{saved_spelling(self.formatted)}\nORDER {order}{flat}"

    def stream(
        self,
        events: Iterable[Any] | None = None,
        *,
        time: str = "ts",
        type: str = "type",
        schema: pa.Schema | Schema | None = None,
        order: str = "time",
        lateness: int | timedelta = 0,
        late: Callable[[dict[str, Any]], None] | None = None,
        dead_letter: Callable[[Any, str], None] | None = None,
        strategy: str = "auto",
        options: Switches | None = None,
    ) -> Any:
        """Match events as they arrive.

        With `events`, an iterable of dictionaries or batches, returns an iterator over the matches:
        `for match in query.stream(events): ...`. Without, returns a `Stream` to push events into:
        `stream.push(event)`, `stream.push_batch(table)`, `stream.finish()`, `stream.save()`.

        Events may arrive out of order by up to `lateness`, in the unit of the time column or as a timedelta;
        `late` is called with later ones, and `dead_letter` with events that have no time or type, or whose
        values do not fit.
        """
        known_strategy(strategy)
        if strategy == "reference":
            raise ValueError("the reference evaluator cannot run on a stream: it needs all events at once")
        chosen = known_order(order)
        check_lateness(lateness)
        options = options_of(options)

        def start(known: Schema) -> LocalRun:
            plan, kinds = self.typed(known)
            empty = pa.schema(list(known.columns.items())).empty_table()
            run = Run(plan, empty, known, kinds, resolution(known), chosen, strategy)
            return run.adaptive(options) if strategy == "auto" else run.local(options)

        if isinstance(schema, pa.Schema):
            schema = Schema.of(schema, time, type)
        stream = Stream(
            start,
            self.identity(order, strategy),
            self.mentioned,
            time=time,
            type=type,
            schema=schema,
            lateness=lateness,
            late=late,
            dead_letter=dead_letter,
            limit=self.plan.limit,
        )
        return stream if events is None else stream.run(events)

    @property
    def mentioned(self) -> tuple[str, ...]:
        """The attributes that the query reads of its events."""
        read = (name for leaf in leaves(self.plan.root) for name in self.read_by(leaf.variable))
        return tuple(dict.fromkeys(read))

    def read_by(self, variable: str) -> Iterator[str]:
        """The attributes of a variable that the query reads."""
        for expression in expressions(self.plan):
            yield from (part.name for part in attributes(expression) if part.variable == variable)

    def count(self, events: Any, **options: Any) -> int:
        """The number of matches, without building them. Takes the options of `match`."""
        settings = {
            "time": "ts",
            "type": "type",
            "types": None,
            "order": "time",
            "strategy": "auto",
            **options,
        }
        switches = settings.pop("options", None)
        run = self.prepare(events, **settings)
        if settings["strategy"] == "reference":
            return int(self.match(events, **options).num_rows)
        total = run.local(switches).count(run.table)
        return total if run.plan.limit is None else min(total, run.plan.limit)

    def prepare(
        self,
        events: Any,
        *,
        time: str,
        type: str,
        types: Mapping[str, Iterable[str]] | None,
        order: str,
        strategy: str,
    ) -> Run:
        """Check the options and the events, and type the plan against their schema."""
        known_strategy(strategy)
        chosen = known_order(order)
        table = to_table(events, type)
        if isinstance(events, list | tuple) and not events:  # nothing is known of the columns of no events
            table = self._no_events(time, type)
        schema = Schema.of(table.schema, time, type, types or attributes_by_type(events))
        check_events(table, schema)
        plan, kinds = self.typed(schema)
        return Run(plan, table, schema, kinds, resolution(schema), chosen, strategy)

    def _no_events(self, time: str, type: str) -> pa.Table:
        read = {part.name: pa.null() for formula in expressions(self.plan) for part in attributes(formula)}
        columns = {**{n: k for n, k in read.items() if n not in ("ts", "type")}, type: pa.string()}
        moment = pa.int64() if self.plan.window.kind is WindowKind.NUMBER else pa.timestamp("us")
        return pa.schema([(time, moment), *columns.items()]).empty_table()

    def typed(self, schema: Schema) -> tuple[Plan, dict[str, Kind]]:
        """The plan for events of a schema, with the kinds of its returned expressions."""
        plan, problems = check_types(self.plan, schema)
        if problems:
            raise QueryError([*problems, *self.warnings], self.text)
        kinds = {
            column.name: result_kind(plan, column.expression, schema)
            for column in plan.output.columns
            if isinstance(column, ValueColumn)
        }
        return plan, kinds


def matching(text: str, **options: Any) -> Callable[[Any], Any]:
    """A function for `df.transform(nestream.matching(text))`; takes the options of `Query.match`."""
    chosen = query(text)
    return lambda events: chosen.match(events, **options)
