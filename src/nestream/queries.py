"""The composer of query sets: many queries over one pass of the same events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa

from nestream.compose.run import known_order
from nestream.compose.spark import (
    dataframe_of,
    is_dataframe,
    refuse_dataframe,
    stream_files,
    zone_that_matters,
)
from nestream.engine.program import LeafSpec
from nestream.model.columns import (
    attributes_by_type,
    check_events,
    per_microsecond,
    quiet,
    resolution,
    to_table,
)
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.memory import collected, collected_each
from nestream.model.plain import empty_table
from nestream.model.schema import Schema
from nestream.model.unseen import warn_of
from nestream.query import Query, known_parameters, own_parameters, query
from nestream.runtime.intake import check_computable
from nestream.runtime.many import Member, SetRun
from nestream.runtime.stream import Stream
from nestream.strategies import Options, known_options, known_strategy, program_of

SUFFIX = ".neel"


class QuerySetError(QueryError):
    """Queries of a set that are rejected: `errors` has each by its name."""

    def __init__(self, errors: Mapping[str, QueryError]) -> None:
        self.errors = dict(errors)
        problems: list[Diagnostic] = [said for error in errors.values() for said in error.diagnostics]
        super().__init__(problems)
        shown = "\n\n".join(f"query {name}:\n{error}" for name, error in errors.items())
        self.args = (shown,)

    def __reduce__(self) -> Any:
        return type(self), (self.errors,)


def queries(
    source: Any, dialect: str | None = None, *, parameters: Mapping[str, Any] | None = None
) -> Queries:
    """Parse and check a query set: a folder of `.neel` files, a mapping of names to queries, or a list.

    Queries from files are named after their files, those of a list q1, q2 and so on. Each query takes the
    values of its own `parameters`. Raises `QueryError` with all problems of all queries.
    """
    found: dict[str, Query] = {}
    errors: dict[str, QueryError] = {}
    given = known_parameters(parameters)
    unused = set(given)
    for name, text in _named(source):
        try:
            if isinstance(text, Query):
                found[name] = text
                continue
            own = own_parameters(text, dialect, given)
            unused -= own.keys()
            found[name] = query(text, dialect, parameters=own)
        except QueryError as error:
            errors[name] = error
    if errors:
        raise QuerySetError(errors)
    if unused:
        raise unknown_parameters(unused, found)
    return Queries(found)


def unknown_parameters(unused: Iterable[str], members: Mapping[str, Query]) -> QueryError:
    """What to say of values that no query of a set names."""
    known = sorted({name for member in members.values() for name in member.parameters})
    said = []
    for name in sorted(unused):
        close = get_close_matches(name, known, 1)
        listed = ", ".join(f"`${other}`" for other in known) or "none"
        hint = f"did you mean `{close[0]}`?" if close else f"the parameters of the queries are {listed}"
        said.append(Diagnostic("unknown-parameter", f"no query has a parameter `${name}`", hint=hint))
    return QueryError(said)


def _named(source: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(source, Mapping):
        for name, text in source.items():
            if not isinstance(name, str):
                raise TypeError(f"the name of a query is a string, not {name!r}")
            yield name, text
    elif isinstance(source, str | Path):
        folder = Path(source)
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{folder} is not a folder of queries\n"
                f"  hint: pass a folder of {SUFFIX} files, a mapping of names to queries or a list of queries"
            )
        files = sorted(folder.glob(f"*{SUFFIX}"))
        if not files:
            raise FileNotFoundError(f"there is no {SUFFIX} file in {folder}")
        for file in files:
            yield file.stem, file.read_text(encoding="utf-8")
    elif isinstance(source, Query) or not isinstance(source, Iterable):
        raise TypeError(
            f"a query set is made of several queries, not of a {source.__class__.__name__}\n"
            f"  hint: pass a folder of {SUFFIX} files, a mapping of names to queries or a list of queries"
        )
    else:
        for number, text in enumerate(source, 1):
            yield f"q{number}", text


@dataclass(frozen=True, repr=False)
class Queries:
    """A query set: queries that run together, read each event once, and share work."""

    members: dict[str, Query]
    planned: dict[Any, tuple[dict[str, Member], dict[LeafSpec, int]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What was planned for events of some schema."""

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("a query set needs at least one query")

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.members))
        return f"Queries({names})" if len(names) <= 120 else f"Queries({names[:100]}… {len(self)} in all)"

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __getitem__(self, name: str) -> Query:
        return self.members[name]

    def adding(
        self,
        name: str,
        text: str | Query,
        dialect: str | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
    ) -> Queries:
        """The set with one more query."""
        if name in self.members:
            raise ValueError(f"the query set already has a query named {name!r}")
        member = text if isinstance(text, Query) else query(text, dialect, parameters=parameters)
        planned = {key: (dict(kept), dict(leaves)) for key, (kept, leaves) in self.planned.items()}
        return Queries({**self.members, name: member}, planned)

    def with_types(self, types: str | Mapping[str, Iterable[str]]) -> Queries:
        """The set with the attributes of event types, as `Query.with_types` has it."""
        return Queries({name: member.with_types(types) for name, member in self.members.items()})

    def as_of(self, time: Any) -> Queries:
        """The set over events that are complete up to a time, as `Query.as_of` has it."""
        return Queries({name: member.as_of(time) for name, member in self.members.items()})

    def infer_types(self, events: Any, type: str = "type") -> tuple[Queries, list[Diagnostic]]:
        """The set with attributes of types guessed from the events, as `Query.infer_types` has it."""
        members: dict[str, Query] = {}
        told: list[Diagnostic] = []
        for name, member in self.members.items():
            members[name], own = member.infer_types(events, type)
            told += own
        return (Queries(members) if told else self), list(dict.fromkeys(told))

    def explain(self, format: str = "text", **options: Any) -> Any:
        """What the queries share, and the plan of each. Takes the options of `Query.explain`."""
        leaves: set[LeafSpec] = set()
        used = 0
        for member in self.members.values():
            own = program_of(member.plan, None, "native").leaves
            used += len(own)
            leaves.update(own)
        plans = {name: member.explain(format, **options) for name, member in self.members.items()}
        if format == "json":
            return {"queries": plans, "leaves": used, "shared leaves": len(leaves)}
        head = f"{len(self)} queries, {used} leaves, {len(leaves)} after sharing"
        return "\n".join([head, *(f"{name}:\n{_indented(plan)}" for name, plan in plans.items())])

    # -- finite events -------------------------------------------------------------------------------------

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
        **on_spark: Any,
    ) -> Any:
        """All matches of all queries as one Arrow table; for a Spark DataFrame, as a DataFrame.

        Its columns are `query` (the name), `match_start`, `match_end`, `events` (a list of the events, each
        with its variable) and `values` (the columns of RETURN, as text). Takes the options of `Query.match`
        and `Query.on_spark`.
        """
        if is_dataframe(events):
            return self.on_spark(
                events,
                time=time,
                type=type,
                types=types,
                order=order,
                strategy=strategy,
                options=options,
                **on_spark,
            )
        if on_spark:
            raise TypeError(f"{', '.join(on_spark)} only applies to Spark DataFrames")
        found = self.batches(
            events, time=time, type=type, types=types, order=order, strategy=strategy, options=options
        )
        return collected(found)

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
    ) -> Iterator[pa.Table]:
        """The matches of `match` as an iterator of tables; the first is empty and has the columns."""
        self._without_limits("a set that gives one table")
        run, table = self._prepared(events, time, type, types, order, strategy, options)
        yield empty_table(run.wanted)
        yield from run.over(table)

    def match_each(
        self,
        events: Any,
        *,
        time: str = "ts",
        type: str = "type",
        types: Mapping[str, Iterable[str]] | None = None,
        order: str = "time",
        strategy: str = "auto",
        options: Options | None = None,
    ) -> dict[str, pa.Table]:
        """The matches of each query by its name, as `Query.match` returns them, found in one pass."""
        run, table = self._prepared(events, time, type, types, order, strategy, options)
        limits = {name: member.plan.limit for name, member in self.members.items()}
        found = collected_each(run.each(table, limits))
        return {
            name: found[name] if name in found else empty_table(member.wanted)
            for name, member in zip(run.names, run.runs, strict=True)
        }

    def count(self, events: Any, **options: Any) -> dict[str, int]:
        """The number of matches of each query. Takes the options of `match`."""
        settings: dict[str, Any] = {"time": "ts", "type": "type", "types": None, "order": "time"}
        settings = {**settings, "strategy": "auto", "options": None, **options}
        if is_dataframe(events):
            return self._count_on_spark(events, **settings)
        run, table = self._prepared(events, **settings)
        counts = run.count(table)
        limits = {name: member.plan.limit for name, member in self.members.items()}
        return {n: c if (most := limits[n]) is None else min(c, most) for n, c in counts.items()}

    def _prepared(
        self,
        events: Any,
        time: str,
        type: str,
        types: Mapping[str, Iterable[str]] | None,
        order: str,
        strategy: str,
        options: Options | None,
    ) -> tuple[SetRun, pa.Table]:
        first = next(iter(self.members.values()))
        read = dict.fromkeys(name for member in self.members.values() for name in member.attributes_read)
        table = quiet(to_table(events, type), time, type, first.moment, read)
        schema = Schema.of(table.schema, time, type, types or attributes_by_type(events))
        check_events(table, schema)
        warn_of(self.unseen(table, type))
        members, leaves = self.programs(schema, order, strategy, options)
        check_computable(table, self._computed, resolution(schema))
        return SetRun(members, leaves, schema, resolution(schema)), table

    @property
    def _computed(self) -> dict[str, None]:
        return dict.fromkeys(name for member in self.members.values() for name in member.computed)

    def unseen(self, table: pa.Table, type: str = "type") -> list[str]:
        """What to say of the types of the queries that no event has, most likely misspelt."""
        return [
            f"query {name}: {told}"
            for name, member in self.members.items()
            for told in member.unseen(table, type)
        ]

    def run(
        self, schema: Schema, order: str = "time", strategy: str = "auto", options: Options | None = None
    ) -> SetRun:
        """The columnar engine in this process, ready for events of a schema."""
        members, leaves = self.programs(schema, order, strategy, options)
        return SetRun(members, leaves, schema, resolution(schema))

    def programs(
        self, schema: Schema, order: str = "time", strategy: str = "auto", options: Options | None = None
    ) -> tuple[list[Member], dict[LeafSpec, int]]:
        """What the engine runs for each query, and the leaves that all of them share.

        They are kept, so that a query that is added is planned alone, beside the others.
        """
        known_options(options)
        known_strategy(strategy)
        by_arrival = known_order(order) == "arrival"
        if strategy == "reference":
            raise ValueError("the reference evaluator cannot run a query set: run each query alone")
        scale = per_microsecond(resolution(schema))
        types = tuple((name, tuple(sorted(own))) for name, own in sorted(schema.types.items()))
        events = (tuple(schema.columns.items()), schema.time, schema.type, types)
        kept, leaves = self.planned.setdefault((events, order, strategy, repr(options)), ({}, {}))
        errors: dict[str, QueryError] = {}
        for name, member in self.members.items():
            if name in kept:
                continue
            try:
                plan, kinds = member.typed(schema)
            except QueryError as error:
                errors[name] = error
                continue
            program = program_of(
                plan,
                schema,
                strategy,
                scale=scale,
                by_arrival=by_arrival,
                options=options,
                leaves=leaves,
            )
            kept[name] = Member(name, plan.output, program, kinds)
        if errors:
            raise QuerySetError(errors)
        return list(kept.values()), leaves

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
        """Match events as they arrive, like `Query.stream`; each match has the name of its query."""
        known_order(order)
        refuse_dataframe(events)
        self._without_limits("a stream of a set")

        def start(known: Schema) -> SetRun:
            return self.run(known, order, strategy, options)

        if isinstance(schema, pa.Schema):
            schema = Schema.of(schema, time, type)
        stream = Stream(
            start,
            self.identity(order, strategy),
            dict.fromkeys(name for member in self.members.values() for name in member.mentioned),
            self._computed,
            time=time,
            type=type,
            schema=schema,
            lateness=lateness,
            late=late,
            dead_letter=dead_letter,
            types=dict.fromkeys(name for member in self.members.values() for name in member.event_types),
            whole=any(member.shows_events for member in self.members.values()),
        )
        return stream if events is None else stream.run(events)

    def identity(self, order: str, strategy: str) -> str:
        """What a saved state must agree with."""
        texts = [f"QUERY {name}\n{m.identity(order, strategy)}" for name, m in self.members.items()]
        return "\n".join(texts)

    # -- Spark ---------------------------------------------------------------------------------------------

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
        **partitioning: Any,
    ) -> Any:
        """The matches over a Spark DataFrame, batch or streaming, as one DataFrame.

        Queries whose events can be split in the same way are run together, in one pass; a batch reads the
        events once for each such group, and a stream is one group.
        """
        from nestream.runtime.spark.sets import match_group, split_alike, union

        self._without_limits("a set on Spark")
        df, schema = dataframe_of(events, time, type, types)
        members, _ = self.programs(schema, order, strategy, options)
        groups = [list(self)] if df.isStreaming or "partition_by" in partitioning else split_alike(members)
        parts = []
        for names in groups:
            some = Queries({name: self.members[name] for name in names})
            programs, leaves = some.programs(schema, order, strategy, options)
            zone = zone_that_matters((member.typed for member in some.members.values()), schema, df)
            unit, identity = resolution(schema), some.identity(order, strategy) + zone
            parts.append(match_group(df, programs, leaves, schema, unit, identity=identity, **partitioning))
        return union(parts)

    def stream_files(
        self, spark: Any, source: str, sink: str, *, time: str = "ts", type: str = "type", **options: Any
    ) -> Any:
        """Match the files of a folder on Spark into files of another, as `Query.stream_files` does."""
        return stream_files(self.on_spark, spark, source, sink, time=time, type=type, **options)

    def _count_on_spark(self, events: Any, **options: Any) -> dict[str, int]:
        found = self.on_spark(events, **options)
        if found.isStreaming:
            raise TypeError("a stream has no number of matches: write the matches of `match(df)` somewhere")
        counted = {row["query"]: row["count"] for row in found.groupBy("query").count().collect()}
        return {name: int(counted.get(name, 0)) for name in self.members}

    def _without_limits(self, where: str) -> None:
        limited = [name for name, member in self.members.items() if member.plan.limit is not None]
        if limited:
            raise ValueError(
                f"{where} does not support LIMIT, and the query {limited[0]} has one\n"
                "  hint: remove the LIMIT, or use `match_each`"
            )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
