"""Queries: from text to plan, and from plan and events to matches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nestream.binding.binder import BoundQuery, bind
from nestream.binding.own_columns import shadow_warnings, with_own_columns
from nestream.binding.typing import check_types, result_kind
from nestream.compose.as_of import complete_up_to
from nestream.compose.base import Matching
from nestream.compose.explaining import as_operators, explained, known_format, with_rewriting
from nestream.compose.missing_attributes import counted, lacking, read_by_several
from nestream.language.ast import Dialect as Dialect  # for the command line
from nestream.language.ast import HasTree as HasTree
from nestream.language.ast import Query as Tree
from nestream.language.literals import UnreadableError as UnreadableError  # for the command line
from nestream.language.parameters import known_parameters as known_parameters
from nestream.language.parameters import names_of, spelled, with_values
from nestream.language.parameters import read_value as read_value
from nestream.language.parser import read_query
from nestream.language.printer import print_query, saved_spelling
from nestream.language.type_header import Types, header_types, read_types
from nestream.logical.nodes import Plan, has_groups
from nestream.model.diagnostics import Diagnostic, QueryError, Severity, in_text_order
from nestream.model.event_types import ANY_TYPE
from nestream.model.lazy import lazy, pa
from nestream.model.output import ValueColumn
from nestream.model.plain import empty_table
from nestream.model.schema import Kind, Schema, attributes_of
from nestream.model.schema import Order as Order  # for the command line
from nestream.model.unseen import unseen_types, warn_of
from nestream.model.wording import shortened
from nestream.strategies import ALIASES as ALIASES  # these for the command line
from nestream.strategies import STRATEGIES as STRATEGIES
from nestream.strategies import Options, known_options, known_strategy, tool
from nestream.strategies import StrategyError as StrategyError
from nestream.strategies import install_papers as install_papers
from nestream.strategies import papers_problem as papers_problem
from nestream.strategies import switches as switches

if TYPE_CHECKING:
    from typing import Unpack

    from nestream.compose.analysis import analyzed
    from nestream.compose.inputs import held
    from nestream.compose.run import Run, refuse_endless
    from nestream.compose.settings import How, Settings, known_threads
    from nestream.compose.spark import collected as collected_from_spark
    from nestream.compose.spark import (
        counted_on_spark,
        dataframe_of,
        explained_on_spark,
        is_dataframe,
        planned_from,
    )
    from nestream.compose.spark import spark_frame as spark_frame
    from nestream.compose.spark import spark_problem as spark_problem
    from nestream.compose.spark import spark_session as spark_session
    from nestream.model.columns import to_table
    from nestream.reference import match_reference
    from nestream.runtime.compiled import Begin, CompiledQuery
    from nestream.runtime.intake import check_computable
    from nestream.runtime.local import LocalRun
    from nestream.runtime.state import StateError as StateError
    from nestream.show import Shown, query_html, show_matches
    from nestream.why import Why, explain_why
else:  # loaded on use: parsing and printing a query needs none of them
    (held,) = lazy("nestream.compose.inputs", "held")
    (analyzed,) = lazy("nestream.compose.analysis", "analyzed")
    Run, refuse_endless = lazy("nestream.compose.run", "Run", "refuse_endless")
    Settings, known_threads = lazy("nestream.compose.settings", "Settings", "known_threads")
    collected_from_spark, dataframe_of, is_dataframe = lazy(
        "nestream.compose.spark", "collected", "dataframe_of", "is_dataframe"
    )
    counted_on_spark, explained_on_spark, planned_from = lazy(
        "nestream.compose.spark", "counted_on_spark", "explained_on_spark", "planned_from"
    )
    spark_frame, spark_problem, spark_session = lazy(
        "nestream.compose.spark", "spark_frame", "spark_problem", "spark_session"
    )
    (to_table,) = lazy("nestream.model.columns", "to_table")
    (match_reference,) = lazy("nestream.reference", "match_reference")
    (check_computable,) = lazy("nestream.runtime.intake", "check_computable")
    (LocalRun,) = lazy("nestream.runtime.local", "LocalRun")
    query_html, show_matches = lazy("nestream.show", "query_html", "show_matches")
    (explain_why,) = lazy("nestream.why", "explain_why")


def query(
    text: str | HasTree, dialect: str | None = None, *, parameters: Mapping[str, Any] | None = None
) -> Query:
    """Parse and check a query, written as text or built from objects.

    The dialect is detected; `dialect` ("neel", "neel+" or "sase") accepts only that one. `parameters` are the
    values of `$name` in the query: numbers, strings, booleans, times, durations, and lists of these for IN.
    Raises `QueryError` with all errors in the query.

    >>> import nestream
    >>> query = nestream.query("SEQ(A a, B b) WITHIN $length", parameters={"length": 10})
    >>> query.count([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}])
    1
    """
    if isinstance(text, Query):
        return text if dialect is None and parameters is None else _checked(text.text, dialect, parameters)
    return _checked(text_of(text), dialect, parameters)


def _checked(text: str, dialect: str | None, parameters: Mapping[str, Any] | None) -> Query:
    tree, problems = read_query(text, dialect)
    if tree is None:
        raise QueryError(problems, text)
    given = known_parameters(parameters)
    filled, misgiven = with_values(tree, given)
    problems += misgiven
    try:
        bound = replace(bind(filled, text), tree=tree)
        problems += check_types(bound.plan)[1]
    except QueryError as error:  # with syntax errors, to report everything at once
        found = [said for said in error.diagnostics if said.is_error or not problems]
        raise QueryError([*problems, *found], text) from None
    types, misread = header_types(text)
    problems += misread
    if problems:
        raise QueryError([*problems, *bound.warnings], text)
    return Query(bound, types, given)


def diagnosed(text: str, schema: Schema | None = None) -> tuple[Diagnostic, ...]:
    """Every error and warning of a query in the order of its text; its parameters need no values yet.

    With a schema the query is checked against the columns of the events.
    """
    problems: list[Diagnostic] = []
    try:
        tree, problems = read_query(text)
        if tree is None:
            return in_text_order(problems)
        bound = bind(with_values(tree, {})[0], text)
    except QueryError as error:
        found = [said for said in error.diagnostics if said.is_error or not problems]
        return in_text_order([*problems, *found])
    types, misread = header_types(text)
    plan = bound.plan
    if schema is not None:
        if types and not schema.types:
            schema = replace(schema, types={name: frozenset(own) for name, own in types.items()})
        plan = with_own_columns(plan, schema)
    # What stands for a parameter without a value may have another type than the value will have.
    mistyped = [
        said for said in check_types(plan, schema)[1] if "$" not in text[said.span.start : said.span.end]
    ]
    return in_text_order([*problems, *misread, *mistyped, *bound.warnings])


def text_of(source: Any) -> str:
    """The text of a query built from objects; the parser checks anything else.

    The text is parsed again, so that errors can point at every part.
    """
    text: str = print_query(source.__nestream_query__()) if isinstance(source, HasTree) else source
    return text


def format_query(text: str, dialect: str | None = None) -> str:
    """The query as `nestream fmt` prints it; its parameters need no values."""
    tree, problems = read_query(text, dialect)
    if tree is None or problems or not names_of(tree):
        return query(text, dialect).formatted
    bind(with_values(tree, {})[0], text)
    return print_query(tree)


def own_parameters(text: Any, dialect: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of the values passed to a set of queries, those that one query names."""
    if not given:
        return {}
    tree, _ = read_query(text_of(text), dialect)
    names = names_of(tree) if tree is not None else tuple(given)
    return {name: value for name, value in given.items() if name in names}


@dataclass(frozen=True, repr=False)
class Query(Matching):
    """A checked query: match it, stream it, explain it, or ask why events do not match.

    >>> import nestream
    >>> nestream.query("SEQ(A a, B b) WITHIN 10")
    Query('PATTERN SEQ(A a, B b) WITHIN 10')
    """

    bound: BoundQuery
    types: Types = field(default_factory=dict, hash=False)
    """The attributes of event types, if the query declares them in a header or you called `with_types`."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
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
        """The warnings that `nestream check` reports."""
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

    def __nestream_query__(self) -> Tree:
        """The syntax tree, for queries that contain this one."""
        return self.bound.tree

    def __str__(self) -> str:
        return self.formatted

    def __repr__(self) -> str:
        return f"Query({shortened(self.formatted, 120)!r})"

    def _repr_html_(self) -> str:
        return query_html(self)

    def with_types(self, types: str | Mapping[str, Iterable[str]]) -> Query:
        """Declare the attributes of event types, as a mapping or as text: `Shelf(id, shelf) Counter(id)`.

        In the SASE dialect, a comparison on an attribute that the event's type does not have is true.

        >>> import nestream
        >>> nestream.query("EVENT ANY(A, B) x WHERE x.id = 1").with_types("A(id) B()").types
        {'A': ('id',), 'B': ()}
        """
        known = read_types(types) if isinstance(types, str) else attributes_of(types)
        return replace(self, types=known)

    def as_of(self, time: Any) -> Query:
        """Return the query over events that are complete up to a time: a number, a datetime or its text.

        Later events are ignored. A match that ends in a negation is pending until its window has passed, so a
        match that is still open at that time is not emitted.

        >>> import nestream
        >>> query, events = nestream.query("SEQ(A a, !B b) WITHIN 10"), [{"ts": 1, "type": "A"}]
        >>> query.count(events), query.as_of(5).count(events)
        (1, 0)
        """
        return replace(self, bound=replace(self.bound, plan=complete_up_to(self.plan, time)))

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Attributes that variables of several types read: SASE must know which types have them."""
        return () if self.types else tuple(sorted({name for _, name in read_by_several(self.plan)}))

    def infer_types(
        self, events: Any, type: str = "type", time: str = "ts"
    ) -> tuple[Query, list[Diagnostic]]:
        """Infer the attributes of types from the events; return the query and a warning for each guess.

        If a variable of several types reads an attribute that is always NULL in one type, but not in another,
        the first type is assumed to lack it. Nothing is inferred if the query declares its types.

        >>> import nestream
        >>> query = nestream.query("EVENT ANY(A, B) x WHERE x.id = 1")
        >>> query, warnings = query.infer_types([{"ts": 1, "type": "A", "id": 1}, {"ts": 2, "type": "B"}])
        >>> [warning.code for warning in warnings]
        ['guessed-types']
        """
        table = events if is_dataframe(events) else to_table(held(events, time, type), type)
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
                f"`{name}` is NULL in every {kind} event, so {kind} is assumed to have no such attribute, "
                "and comparisons on it are true",
                severity=Severity.WARNING,
                hint="declare the attributes, for example in a comment `// types: A(id) B(id, x)`",
            )
            for kind, name in missing
        ]
        return self.with_types(types) if missing else self, told

    def why(self, events: Any, picked: Sequence[Any] | Mapping[str, Any], **options: Any) -> Why:
        """Explain why events are not a match, or part of one: every condition, order, window and negation.

        `picked` are row numbers from 0, or values of a column with `by="column"`; a mapping assigns them to
        variables. Takes the options of `match` for reading events.

        A Spark DataFrame is collected into this process, and `by` is required: its rows have no numbers.
        Times are in the session's zone.

        >>> import nestream
        >>> query = nestream.query("SEQ(A a, B b) WITHIN 10")
        >>> print(query.why([{"ts": 1, "type": "A"}, {"ts": 30, "type": "B"}], [0, 1]).text().splitlines()[0])
        no match: 1 obstacle
        """
        if is_dataframe(events):
            events, options = collected_from_spark(events, options)
        return explain_why(self, events, picked, **options)

    def show(self, events: Any, **options: Any) -> Shown:
        """Show the matches in a notebook, as a `table` and a `timeline`. Takes the options of `match`.

        >>> import nestream
        >>> query = nestream.query("SEQ(A a, B b) WITHIN 10")
        >>> query.show([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}]).table.num_rows
        1
        """
        if not is_dataframe(events):
            events = held(events, options.get("time", "ts"), options.get("type", "type"))
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
        """Show the logical plan and how the engine runs it, as text, or as plain data with `format="json"`.

        With a Spark DataFrame as `events`, and the options of `on_spark`, it also shows how Spark splits,
        reads and filters the events; for a stream, also the watermark, the state and when matches are
        emitted. `analyze` takes events, with the options of `match`: it runs the query and shows matches
        and times beside the estimates.

        These need nestream-papers: `verbose` adds how the plan is rewritten, rule by rule.
        `strategy="flat"` shows which expressions share work. `dialect="sase"` shows SASE's operators instead
        of the plan: the paper's basic plan, its optimised plan, and the plan that runs.

        >>> import nestream
        >>> print(nestream.query("SEQ(A a, B b) WITHIN 10").explain().splitlines()[0])
        Match [a, b]
        """
        known_format(format)
        known_strategy(strategy)
        known_options(options)
        if dialect is not None:
            if strategy != "auto" or verbose or analyze is not None or events is not None:
                raise ValueError(
                    "dialect='sase' only explains the strategy auto\n"
                    "  hint: leave strategy, verbose, analyze and events out"
                )
            return as_operators(self.plan, format, options, dialect)
        if verbose:
            shown = self.explain(format, options, events, strategy, analyze=analyze, **on_spark)
            return with_rewriting(shown, self.plan, format)
        if events is not None:
            return self._explain_on_spark(format, events, strategy=strategy, options=options, **on_spark)
        if analyze is not None:
            return analyzed(self.prepare(analyze, strategy=strategy, options=options, **on_spark), format)
        return explained(self.plan, format, options, strategy)

    def _explain_on_spark(self, format: str, events: Any, **on_spark: Any) -> Any:
        if not is_dataframe(events):
            raise TypeError(
                "explain takes events as a Spark DataFrame, or a mapping of them by type\n"
                "  hint: use analyze= for other events"
            )
        how = {name: on_spark.pop(name) for name in list(on_spark) if name in Settings.names()}
        settings, sample = Settings.of(how), on_spark.pop("sample", None)
        df, run = self._over_dataframe(events, settings)
        compiled = planned_from(run.compiled(), sample, settings)
        return explained_on_spark(df, run.plan, compiled, format, **on_spark)

    # -- finite events -------------------------------------------------------------------------------------

    def batches(self, events: Any, *, threads: int | None = None, **how: Unpack[How]) -> Iterator[pa.Table]:
        """Yield the matches of `match` as tables, within the memory budget of the options.

        The first table is empty and has the columns. Stop iterating to stop matching. Takes the options of
        `match`.

        >>> import nestream
        >>> query = nestream.query("SEQ(A a, B b) WITHIN 10")
        >>> tables = query.batches([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}])
        >>> sum(table.num_rows for table in tables)
        1
        """
        if how.get("strategy") != "reference":
            yield from super().batches(events, threads=threads, **how)
            return
        run = self.prepare(events, **how)
        matches = match_reference(run.plan, run.table, run.schema, run.kinds)
        yield from (matches.slice(0, 0), matches)

    def count(self, events: Any, *, threads: int | None = None, **how: Unpack[How]) -> int:
        """Count the matches without building them. Takes the options of `match`.

        Matches over a Spark DataFrame are counted on Spark.

        >>> import nestream
        >>> query = nestream.query("SEQ(A a, B b) WITHIN 10")
        >>> query.count([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}])
        1
        """
        if is_dataframe(events):
            df, run = self._over_dataframe(events, Settings.of(how))
            return counted_on_spark(df, run.compiled())
        if how.get("strategy") == "reference":
            return int(self.match(events, **how).num_rows)
        run = self.prepare(events, **how)
        return LocalRun(run.compiled()).count(run.table, known_threads(threads))

    def count_within(self, seconds: float, events: Any, **how: Unpack[How]) -> int | None:
        """Like `count`; None if it takes longer."""
        if how.get("strategy") == "reference":
            return None
        run = self.prepare(events, **how)
        return LocalRun(run.compiled()).count_within(run.table, seconds)

    def prepare(self, events: Any, **how: Unpack[How]) -> Run:
        """Check the options and the events, and type the plan against their schema."""
        settings = Settings.of(how)
        table, schema = self.read(events, **how)
        run = self.prepared(schema, settings, table)
        check_computable(table, self.computed, schema.unit)
        warn_of(self.unseen(table, settings.type))
        return run

    def unseen(self, table: pa.Table, type: str = "type", made: Collection[str] = ()) -> list[str]:
        """Messages about types in the query that no event has, most likely misspelt.

        Types that are `made` by other queries need not occur.
        """
        expected = [name for name in self.event_types if name not in made]
        return unseen_types(expected, table.column(type)) if table.num_rows and expected else []

    def unknown_attributes(
        self,
        columns: Mapping[str, pa.DataType],
        came: Collection[str] | None,
        time: str = "ts",
        type: str = "type",
        made: Collection[str] = (),
    ) -> dict[str, list[Diagnostic]]:
        """The attributes that the events lack, given all their columns, under the name `query`.

        With `came`, a type that is not among them may still have any attribute, like those that are `made` by
        other queries. So may the type of an `ANY`, unless `ANY` is among them.
        """
        may_come = [name for name in self.attributes_read if name not in ("ts", "type")]
        if came is not None and columns.keys() >= set(may_come):  # usually; fields are checked as they come
            return {}
        expected = [name for name in self.event_types if name not in made]
        known = {name for name in expected if came is None or name in came}
        if self.plan.exclusive and len(known) < len(self.event_types):
            return {}
        columns = {**columns, time: pa.null(), type: pa.null()}  # a stream also takes times as text
        types: dict[str, frozenset[str]] = {}
        if not self.plan.exclusive:  # for SASE, a comparison is true if a type is known to lack its attribute
            every = len(expected) == len(self.event_types) and (came is None or ANY_TYPE in came)
            any_type = (ANY_TYPE,) if every else ()
            types = {name: frozenset(columns) for name in (*known, *any_type)}
            columns = {**{name: pa.null() for name in may_come}, **columns}
        schema = Schema(columns, time, type, types)
        _, problems = check_types(with_own_columns(self.plan, schema), schema)
        found = [one for one in problems if one.code in ("unknown-attribute", "unknown-field")]
        return {"query": found} if found else {}

    def types_by_query(self) -> dict[str, tuple[str, ...]]:
        """The event types that the query names, under the name `query`."""
        return {"query": self.event_types}

    # -- streams and Spark ---------------------------------------------------------------------------------

    def outcomes(
        self,
        events: Any,
        *,
        partition_by: str | None = None,
        partitions: int | None = None,
        **how: Unpack[How],
    ) -> Any:
        """Return the matches over a streaming Spark DataFrame, together with its late and malformed events.

        `outcome` is "match", "late" or "malformed"; `match` holds the columns of a match, `event` those of an
        event that was not taken, and `reason` says why. One stream with one checkpoint returns all of them,
        so each event and each match is in exactly one place, once. Takes the options of `match`.
        """
        settings = Settings.of(how)
        df, schema = dataframe_of(events, settings)
        if not df.isStreaming:
            raise TypeError("outcomes takes a streaming DataFrame: a batch has no late events; use match")
        if self.plan.limit is not None:
            raise ValueError("outcomes does not support LIMIT, which would count late events too")
        chosen = {"partition_by": partition_by, "partitions": partitions}
        return self._on_spark(df, schema, settings, outcomes=True, **chosen)

    def _on_spark(
        self, df: Any, schema: Schema, settings: Settings, sample: Any = None, **partitioning: Any
    ) -> Any:
        from nestream.runtime.spark.match import match_dataframe

        if df.isStreaming:
            refuse_endless(self.plan, self.text)
        compiled, identity = self._compiled_for(df, schema, settings, sample)
        matches = match_dataframe(df, compiled, identity=identity, **partitioning)
        limit = self.plan.limit
        if limit is None:
            return matches
        return (matches if df.isStreaming else matches.orderBy("match_end")).limit(limit)

    def _typed(self, schema: Schema) -> Plan:
        return self.typed(schema)[0]

    def _over_dataframe(self, events: Any, settings: Settings) -> tuple[Any, Run]:
        """A DataFrame, and the plan typed for it."""
        settings.without_reference("does not run on Spark")
        df, schema = dataframe_of(events, settings)
        return df, self.prepared(schema, settings)

    def _check_stream(self) -> int | None:
        refuse_endless(self.plan, self.text)
        return self.plan.limit

    def identity(self, order: str, strategy: str) -> str:
        """What a saved state must agree with; flat expressions are decided one by one."""
        flat = "\nSTRATEGY flat" if strategy == "flat" else ""
        declared = sorted(self.types.items())
        types = "".join(f"\nTYPE {name}({', '.join(sorted(own))})" for name, own in declared)
        return f"{saved_spelling(self.formatted)}\nORDER {order}{flat}{types}{spelled(self.parameters)}"

    # -- plans ---------------------------------------------------------------------------------------------

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The logical plan alone."""
        return (self.plan,)

    def check(self, columns: pa.Schema, time: str = "ts", type: str = "type") -> None:
        """Raise a `QueryError` if the query does not fit events with these columns."""
        if not isinstance(columns, pa.Schema):
            raise TypeError(f"the columns must be an Arrow schema, not a {columns.__class__.__name__}")
        self.typed(Schema.of(self.fitted(columns.empty_table(), time, type).schema, time, type))

    def compiled(
        self,
        schema: Schema,
        settings: Settings,
        events: pa.Table | None = None,
        begin: Begin | None = None,
    ) -> CompiledQuery:
        """The query compiled for events of a schema; a strategy may look at the first events."""
        return self.prepared(schema, settings, events).compiled()

    def prepared(self, schema: Schema, settings: Settings, events: pa.Table | None = None) -> Run:
        """The query typed for events of a schema."""
        plan, kinds = self.typed(schema)
        return Run(plan, schema, kinds, settings, empty_table(schema.arrow) if events is None else events)

    def typed(self, schema: Schema) -> tuple[Plan, dict[str, Kind]]:
        """The plan typed for events of a schema, with the kinds of its returned expressions."""
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

    def rewritten(self, plan: Plan) -> Plan:
        """The normal form of a plan of this query: an OR of flat sequences, as far as possible."""
        if has_groups(plan):  # no rule of the papers covers them
            return plan
        found: Plan = tool("normal_form", "the normal form of a plan")(plan)
        return found

    def estimated_rows(self, plan: Plan, table: pa.Table, schema: Schema) -> dict[int | None, float]:
        """The estimated rows of each component of a plan, by its identity; None is the whole plan.

        There are no estimates without nestream-papers, whose cost model they come from, nor for groups.
        """
        if has_groups(plan) or papers_problem() is not None:
            return {}
        found: dict[int | None, float] = tool("estimated_rows", "an estimate")(plan, table, schema)
        return found


def matching(
    text: str | HasTree, *, parameters: Mapping[str, Any] | None = None, **options: Any
) -> Callable[[Any], Any]:
    """Return a function for `df.transform(nestream.matching(text))`. Takes the options of `Query.match`.

    >>> import nestream
    >>> matches = nestream.matching("SEQ(A a, B b) WITHIN 10", to="pylist")
    >>> len(matches([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}]))
    1
    """
    chosen = query(text, parameters=parameters)
    return lambda events: chosen.match(events, **options)
