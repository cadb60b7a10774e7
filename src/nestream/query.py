"""The one composer: text to plan, plan and events to matches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa

from nestream.binding.binder import BoundQuery, bind
from nestream.binding.own_columns import shadow_warnings, with_own_columns
from nestream.binding.typing import check_types, result_kind
from nestream.compose.explaining import analyzed, as_operators, explained, known_format, with_rewriting
from nestream.compose.missing_attributes import counted, lacking, read_by_several
from nestream.compose.run import Run, known_order, known_threads
from nestream.compose.spark import SparkRun, is_dataframe, refuse_dataframe, stream_files
from nestream.compose.spark import spark_frame as spark_frame
from nestream.compose.spark import spark_problem as spark_problem
from nestream.compose.spark import spark_session as spark_session
from nestream.language.ast import Dialect
from nestream.language.literals import UnreadableError as UnreadableError  # for the command line
from nestream.language.literals import shortened
from nestream.language.parameters import known_parameters as known_parameters
from nestream.language.parameters import names_of, spelled, with_values
from nestream.language.parameters import read_value as read_value
from nestream.language.parser import read_query
from nestream.language.printer import print_query, saved_spelling
from nestream.language.type_header import Types, header_types, read_types
from nestream.logical.nodes import Plan, expressions, leaves
from nestream.model.columns import attributes_by_type, check_events, quiet, resolution, to_table
from nestream.model.diagnostics import Diagnostic, QueryError, Severity
from nestream.model.event_types import named_types
from nestream.model.expression import END_ATTRIBUTE, attributes
from nestream.model.memory import collected
from nestream.model.output import ValueColumn
from nestream.model.plain import empty_table
from nestream.model.schema import Kind, Schema
from nestream.model.time import WindowKind
from nestream.model.unseen import unseen_types, warn_of
from nestream.reference import match_reference
from nestream.runtime.local import LocalRun
from nestream.runtime.state import StateError as StateError  # a public name
from nestream.runtime.stream import Stream
from nestream.show import Shown, query_html, show_matches
from nestream.strategies import STRATEGIES as STRATEGIES  # for the command line
from nestream.strategies import Options, known_options, known_strategy, tool
from nestream.strategies import switches as switches
from nestream.why import Why, explain_why

COUNTED = 2.0
"""For how many seconds the matches of a result that may not fit in memory are counted."""


def query(text: str, dialect: str | None = None, *, parameters: Mapping[str, Any] | None = None) -> Query:
    """Parse and check a query.

    The dialect is detected; `dialect` ("neel", "neel+" or "sase") accepts only that one. `parameters` are the
    values of `$name` in the query: numbers, texts, booleans, times, durations, and lists of them for IN.
    Raises `QueryError` with all problems of the query.
    """
    tree, problems = read_query(text, dialect)
    if tree is None:
        raise QueryError(problems, text)
    given = known_parameters(parameters)
    filled, misgiven = with_values(tree, given)
    problems += misgiven
    try:
        bound = replace(bind(filled, text), tree=tree)
        problems += check_types(bound.plan)[1]
    except QueryError as error:  # with what was wrong in reading, so that all is said at once
        found = [said for said in error.diagnostics if said.is_error or not problems]
        raise QueryError([*problems, *found], text) from None
    types, misread = header_types(text)
    problems += misread
    if problems:
        raise QueryError([*problems, *bound.warnings], text)
    return Query(bound, types, given)


def format_query(text: str, dialect: str | None = None) -> str:
    """The query as `nestream fmt` prints it; the values of its parameters need not be known."""
    tree, problems = read_query(text, dialect)
    if tree is None or problems or not names_of(tree):
        return query(text, dialect).formatted
    bind(with_values(tree, {})[0], text)
    return print_query(tree)


def own_parameters(text: Any, dialect: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of the values that are given to a set of queries those that one of them names."""
    if not given:
        return {}
    tree, _ = read_query(text, dialect)
    names = names_of(tree) if tree is not None else tuple(given)
    return {name: value for name, value in given.items() if name in names}


@dataclass(frozen=True, repr=False)
class Query:
    """A checked query: match it, stream it, explain it, or ask why events do not match."""

    bound: BoundQuery
    types: Types = field(default_factory=dict)
    """The attributes of event types, where the query declares them in a header or `with_types` was called."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The values of its parameters."""

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

    def with_types(self, types: str | Mapping[str, Iterable[str]]) -> Query:
        """The query with the attributes of event types: a mapping, or text as `Shelf(id, shelf) Counter(id)`.

        In the SASE spelling a comparison on an attribute that the event's type does not have is true.
        """
        known = read_types(types) if isinstance(types, str) else {n: tuple(own) for n, own in types.items()}
        return replace(self, types=known)

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The attributes that variables of several types read, where SASE must know which types have them."""
        return () if self.types else tuple(sorted({name for _, name in read_by_several(self.plan)}))

    def infer_types(self, events: Any, type: str = "type") -> tuple[Query, list[Diagnostic]]:
        """The query with attributes of types guessed from all the events, and a warning for each guess.

        An attribute that a variable of several types reads is taken as missing from a type that is NULL in
        it throughout, where another of the types is not. Nothing is guessed if the query declares its types.
        """
        table = events if is_dataframe(events) else to_table(events, type)
        columns = list(table.columns if is_dataframe(events) else table.column_names)
        read = [name for name in self.undeclared if name in columns]
        if not read or type not in columns:
            return self, []
        known = counted(table, type, read)
        missing = list(lacking(self.plan, known))
        types = {kind: set(columns) - {n for k, n in missing if k == kind} for kind, _ in missing}
        told = [
            Diagnostic(
                "guessed-types",
                f"`{name}` is NULL in every {kind} event, so {kind} is taken to have no such attribute, "
                "and comparisons on it are true",
                severity=Severity.WARNING,
                hint="declare the attributes, for example in a comment `// types: A(id) B(id, x)`",
            )
            for kind, name in missing
        ]
        return self.with_types(types) if missing else self, told

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
        options: Options | None = None,
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
        known_strategy(strategy)
        known_options(options)
        if dialect is not None:
            if strategy != "auto" or verbose or analyze is not None or events is not None:
                raise ValueError(
                    "dialect='sase' explains the strategy auto alone\n"
                    "  hint: leave strategy, verbose, analyze and events out"
                )
            return as_operators(self.plan, format, options, dialect)
        if verbose:
            shown = self.explain(format, options, events, strategy, analyze=analyze, **on_spark)
            return with_rewriting(shown, self.plan, format)
        if events is not None:
            return self._explain_on_spark(format, options, events, strategy=strategy, **on_spark)
        if analyze is not None:
            read = {"time": "ts", "type": "type", "types": None, "order": "time", **on_spark}
            return analyzed(self.prepare(analyze, strategy=strategy, **read), format, options)
        return explained(self.plan, format, options, strategy)

    def _explain_on_spark(
        self,
        format: str,
        options: Options | None,
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
        options: Options | None = None,
        threads: int | None = None,
    ) -> Any:
        """All matches as an Arrow table; for a Spark DataFrame, as a lazy DataFrame.

        `events` is an Arrow table, a pandas or Polars DataFrame, a list of dictionaries, a Spark DataFrame,
        or a mapping of these by event type. `time` and `type` name the columns with the time and the type of
        an event. `types` lists the attributes of each type (SASE). With `order="arrival"` events with equal
        times follow one another as they arrive. `threads` is how many threads work, by default one a core.
        `on_spark` takes more options for Spark.

        The table has a struct column with the event for each variable, NULL for a branch of an OR that did
        not match, or the columns of RETURN; then `match_start` and `match_end`. Rows are ordered by
        `match_end`, then by the positions of the events. Raises `TooManyMatchesError` where they do not fit
        in memory; `batches` gives them piece by piece.
        """
        if is_dataframe(events):
            return self.on_spark(
                events, time=time, type=type, types=types, order=order, strategy=strategy, options=options
            )
        how: dict[str, Any] = {"time": time, "type": type, "types": types, "order": order}
        how |= {"strategy": strategy, "options": options}
        found = self.batches(events, threads=threads, **how)
        return collected(found, lambda: self.count_within(COUNTED, events, **how))

    def batches(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Options | None = None,
        threads: int | None = None,
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
        yield empty_table(local.wanted)
        left = run.plan.limit
        for matches in local.over(run.table, known_threads(threads)):
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
        options: Options | None = None,
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
        options: Options | None = None,
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
        declared = sorted(self.types.items())
        types = "".join(f"\nTYPE {name}({', '.join(sorted(own))})" for name, own in declared)
        return f"{saved_spelling(self.formatted)}\nORDER {order}{flat}{types}{spelled(self.parameters)}"

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

        With `events`, an iterable of dictionaries or batches, returns an iterator over the matches:
        `for match in query.stream(events): ...`. Without, returns a `Stream` to push events into:
        `stream.push(event)`, `stream.push_batch(table)`, `stream.finish()`, `stream.save()`.

        Events may arrive out of order by up to `lateness`: a duration such as "5 s", a timedelta, or a number
        in the unit of the time column. `late` is called with later ones, and `dead_letter` with events that
        have no time or type, or whose values do not fit. Both are counted; without a handler the first one
        gives a warning.
        """
        known_strategy(strategy)
        if strategy == "reference":
            raise ValueError("the reference evaluator cannot run on a stream: it needs all events at once")
        chosen = known_order(order)
        known_options(options)
        refuse_dataframe(events)

        def start(known: Schema) -> LocalRun:
            plan, kinds = self.typed(known)
            empty = empty_table(pa.schema(list(known.columns.items())))
            run = Run(plan, empty, known, kinds, resolution(known), chosen, strategy)
            return run.local(options)

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
            types=self.event_types,
            whole=self.shows_events,
        )
        return stream if events is None else stream.run(events)

    @property
    def shows_events(self) -> bool:
        """Whether a match has whole events, with all their columns."""
        return self.plan.output.shows_events

    @property
    def mentioned(self) -> tuple[str, ...]:
        """The attributes that the query reads of its events."""
        read = (name for leaf in leaves(self.plan.root) for name in self.read_by(leaf.variable))
        return tuple(name for name in dict.fromkeys(read) if name != END_ATTRIBUTE)

    def read_by(self, variable: str) -> Iterator[str]:
        """The attributes of a variable that the query reads."""
        for expression in expressions(self.plan):
            yield from (part.name for part in attributes(expression) if part.variable == variable)

    def count(self, events: Any, **options: Any) -> int:
        """The number of matches, without building them. Takes the options of `match`.

        A Spark DataFrame is counted on Spark.
        """
        if is_dataframe(events):
            settings = {"time": "ts", "type": "type", "types": None, "order": "time", "strategy": "auto"}
            return SparkRun.of(self.typed, events, **{**settings, "options": None, **options}).count(
                self.plan.limit
            )
        run, switches = self._to_count(events, **options)
        if run.strategy == "reference":
            return int(self.match(events, **options).num_rows)
        total = run.local(switches).count(run.table)
        return total if run.plan.limit is None else min(total, run.plan.limit)

    def count_within(self, seconds: float, events: Any, **options: Any) -> int | None:
        """The same as `count`; None where it takes longer."""
        run, switches = self._to_count(events, **options)
        if run.strategy == "reference":
            return None
        total = run.local(switches).count_within(run.table, seconds)
        return total if total is None or run.plan.limit is None else min(total, run.plan.limit)

    def _to_count(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Options | None = None,
    ) -> tuple[Run, Options | None]:
        run = self.prepare(events, time=time, type=type, types=types, order=order, strategy=strategy)
        return run, options

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
        table = self.fitted(to_table(events, type), time, type)
        schema = Schema.of(table.schema, time, type, types or attributes_by_type(events))
        check_events(table, schema)
        plan, kinds = self.typed(schema)
        warn_of(self.unseen(table, type))
        return Run(plan, table, schema, kinds, resolution(schema), chosen, strategy)

    @property
    def event_types(self) -> tuple[str, ...]:
        """The event types that the query names."""
        return named_types(name for leaf in leaves(self.plan.root) for name in leaf.types)

    def unseen(self, table: pa.Table, type: str = "type") -> list[str]:
        """What to say of the types of the query that no event has, most likely misspelt."""
        return unseen_types(self.event_types, table.column(type)) if table.num_rows else []

    def fitted(self, table: pa.Table, time: str, type: str) -> pa.Table:
        """The events; where there are none, with columns that the query can be typed against."""
        return quiet(table, time, type, self.moment, self.attributes_read)

    def check(self, columns: pa.Schema, time: str = "ts", type: str = "type") -> None:
        """Raise a `QueryError` if the query does not fit events with these columns."""
        self.typed(Schema.of(self.fitted(columns.empty_table(), time, type).schema, time, type))

    @property
    def moment(self) -> pa.DataType:
        """The type that times must have for the window, where no event says which it is."""
        return pa.int64() if self.plan.window.kind is WindowKind.NUMBER else pa.timestamp("us")

    @property
    def attributes_read(self) -> tuple[str, ...]:
        """The attributes that the query reads, without time and type."""
        read = (part.name for formula in expressions(self.plan) for part in attributes(formula))
        return tuple(name for name in dict.fromkeys(read) if name not in ("ts", "te", "type"))

    def rewritten(self, plan: Plan) -> Plan:
        """The normal form of a plan of this query: an OR of flat sequences, as far as there is one."""
        found: Plan = tool("normal_form")(plan)
        return found

    def estimated_rows(self, plan: Plan, table: pa.Table, schema: Schema) -> dict[int | None, float]:
        """The expected rows of each component of a plan, by its identity; None is the whole."""
        found: dict[int | None, float] = tool("estimated_rows")(plan, table, schema)
        return found

    def typed(self, schema: Schema) -> tuple[Plan, dict[str, Kind]]:
        """The plan for events of a schema, with the kinds of its returned expressions."""
        if self.types and not schema.types:
            schema = replace(schema, types={name: frozenset(own) for name, own in self.types.items()})
        plan, problems = check_types(with_own_columns(self.plan, schema), schema)
        for told in shadow_warnings(self.plan, schema):
            warnings.warn(told, stacklevel=2)
        if problems:
            raise QueryError([*problems, *self.warnings], self.text)
        kinds = {
            column.name: result_kind(plan, column.expression, schema)
            for column in plan.output.columns
            if isinstance(column, ValueColumn)
        }
        return plan, kinds


def matching(
    text: str, *, parameters: Mapping[str, Any] | None = None, **options: Any
) -> Callable[[Any], Any]:
    """A function for `df.transform(nestream.matching(text))`; takes the options of `Query.match`."""
    chosen = query(text, parameters=parameters)
    return lambda events: chosen.match(events, **options)
