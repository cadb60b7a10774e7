"""Query sets: many queries over one pass of the same events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from nestream.compose.base import Matching
from nestream.compose.inputs import held
from nestream.compose.run import refuse_endless
from nestream.compose.settings import DEFAULTS, How, Settings
from nestream.compose.spark import is_dataframe, refuse_to_count, zone_that_matters
from nestream.engine.program import Decided, LeafSpec, LeavesSince
from nestream.logical.nodes import Plan
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.diagnostics import QuerySetError as QuerySetError
from nestream.model.memory import collected_each
from nestream.model.plain import empty_table
from nestream.model.schema import Schema
from nestream.model.text import print_name
from nestream.query import HasTree, Query, known_parameters, own_parameters, query
from nestream.runtime.arrivals import Compiler
from nestream.runtime.compiled import (
    Begin,
    CompiledLayers,
    CompiledQuery,
    CompiledSet,
    Layer,
    makers_of,
    with_composites,
)
from nestream.runtime.local import LocalRun
from nestream.runtime.runs import AnyRun, started
from nestream.strategies import Options, program_of

SUFFIX = ".neel"


def queries(
    source: Any, dialect: str | None = None, *, parameters: Mapping[str, Any] | None = None
) -> Queries:
    """Parse and check a query set: a folder of `.neel` files, a mapping of names to queries, or a list.

    Queries from files are named after their files, those of a list q1, q2 and so on. `parameters` are the
    values of `$name` for all queries; each takes its own. Raises `QueryError` with all errors in all queries.

    >>> import nestream
    >>> rules = nestream.queries({"pair": "SEQ(A a, B b) WITHIN 10", "start": "A a"})
    >>> rules.count([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}])
    {'pair': 1, 'start': 1}
    """
    given = known_parameters(parameters)
    found, used = parsed_queries(source, dialect, given)
    if used != given.keys():
        raise unknown_parameters(given.keys() - used, found)
    return Queries(found)


def parsed_queries(
    source: Any, dialect: str | None, given: Mapping[str, Any]
) -> tuple[dict[str, Query], set[str]]:
    """The queries of a set by name, each with its own parameters, and all values that they use."""
    found: dict[str, Query] = {}
    errors: dict[str, QueryError] = {}
    used: set[str] = set()
    for name, text in _named(source):
        try:
            if isinstance(text, Query):
                found[name] = text
                continue
            own = own_parameters(text, dialect, given)
            used |= own.keys()
            found[name] = query(text, dialect, parameters=own)
        except QueryError as error:
            errors[name] = error
    if errors:
        raise QuerySetError(errors)
    return found, used


def check_rules(
    texts: Mapping[str, str],
    changes: Mapping[str, str | None],
    dialect: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Raise a `ValueError` if changed rules are not queries, or do not fit the others on a stream.

    `texts` are all rules after the change. A rule that was wrong before the change is not an error here.
    """
    new = {name: text for name, text in changes.items() if text is not None}
    given = parameters or {}
    parsed, _ = parsed_queries(new, dialect, given)
    if parsed:
        Queries(parsed).stream()
    try:
        others = {name: text for name, text in texts.items() if name not in new}
        known, _ = parsed_queries(others, dialect, given)
    except ValueError:  # whoever runs them reports it
        return
    Queries({**known, **parsed}).stream()


def stream_rules(live: Any, spark: Any, source: str, sink: str, **options: Any) -> Any:
    """Match files or topics on Spark with rules that change while the stream runs.

    `live` binds the rules and starts with a query set. Takes the options of `stream_files`, and returns the
    same.
    """
    from nestream.compose.spark import stream_rules as start

    return start(Queries._fixed_compiler, live, spark, source, sink, **options)


def unknown_parameters(unused: Iterable[str], members: Mapping[str, Query]) -> QueryError:
    """Report values that no query of a set names."""
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
                raise TypeError(f"the name of a query must be a string, not {name!r}")
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
            f"a query set needs a folder, a mapping or a list of queries, not a {source.__class__.__name__}\n"
            f"  hint: pass a folder of {SUFFIX} files, a mapping of names to queries or a list of queries"
        )
    else:
        for number, text in enumerate(source, 1):
            yield f"q{number}", text


@dataclass(frozen=True)
class Planned:
    """The queries of a set, compiled for events of a schema by a strategy, and their leaves."""

    schema: Schema
    strategy: str
    options: Options | None
    members: dict[str, CompiledQuery] = field(default_factory=dict)
    leaves: dict[LeafSpec, int] = field(default_factory=dict)

    def copy(self) -> Planned:
        """A copy, for a set that diverges from this one."""
        return Planned(self.schema, self.strategy, self.options, dict(self.members), dict(self.leaves))


@dataclass(frozen=True, repr=False)
class Queries(Matching):
    """A query set: queries that run together, read each event once, and share work.

    >>> import nestream
    >>> nestream.queries({"pair": "SEQ(A a, B b) WITHIN 10", "start": "A a"})
    Queries('pair', 'start')
    """

    members: dict[str, Query]
    planned: list[Planned] = field(default_factory=list, repr=False, compare=False)
    """What was planned last, so that an added query is planned on its own."""

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("a query set needs at least one query")
        self._layers  # noqa: B018 - raises for a cycle

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
        text: str | HasTree,
        dialect: str | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
    ) -> Queries:
        """Return the set with one more query.

        >>> import nestream
        >>> nestream.queries({"start": "A a"}).adding("pair", "SEQ(A a, B b) WITHIN 10")
        Queries('start', 'pair')
        """
        if name in self.members:
            raise ValueError(f"the query set already has a query named {name!r}")
        member = text if isinstance(text, Query) else query(text, dialect, parameters=parameters)
        return Queries({**self.members, name: member}, [known.copy() for known in self.planned])

    def with_types(self, types: str | Mapping[str, Iterable[str]]) -> Queries:
        """Return the set with the attributes of event types, like `Query.with_types`."""
        return Queries({name: member.with_types(types) for name, member in self.members.items()})

    def as_of(self, time: Any) -> Queries:
        """Return the set over events that are complete up to a time, like `Query.as_of`."""
        for kind, names in self._read_makers.items():
            for name in names:
                if Decided.WINDOW in program_of(self.members[name].plan, None, "native").decided:
                    raise ValueError(
                        f"as_of does not say which {kind} events are still to come: "
                        f"the query {name} waits for the end of its window\n"
                        "  hint: leave as_of out, or run the queries that make events alone"
                    )
        return Queries({name: member.as_of(time) for name, member in self.members.items()})

    def infer_types(
        self, events: Any, type: str = "type", time: str = "ts"
    ) -> tuple[Queries, list[Diagnostic]]:
        """Return the set with attributes of types inferred from the events, like `Query.infer_types`."""
        members: dict[str, Query] = {}
        told: list[Diagnostic] = []
        events = events if is_dataframe(events) else held(events, time, type)
        for name, member in self.members.items():
            members[name], own = member.infer_types(events, type, time)
            told += own
        return (Queries(members) if told else self), list(dict.fromkeys(told))

    # -- composite events ----------------------------------------------------------------------------------

    @cached_property
    def _made(self) -> dict[str, list[str]]:
        """The composite types, each with the queries that make its events."""
        made: dict[str, list[str]] = {}
        for name, member in self.members.items():
            if member.plan.output.into is not None:
                made.setdefault(member.plan.output.into, []).append(name)
        return made

    def _composites(self, name: str) -> frozenset[str]:
        """The composite types that a query reads."""
        return frozenset(self._made.keys() & set(self.members[name].event_types))

    @property
    def _read_makers(self) -> dict[str, list[str]]:
        """The composite types that some query reads, with the queries that make them."""
        read = frozenset().union(*self._layers)
        return {kind: names for kind, names in self._made.items() if kind in read}

    @cached_property
    def _layers(self) -> dict[frozenset[str], list[str]]:
        """The queries by the composite types they read; makers of these types come first.

        Raises a `QuerySetError` if a query reads events that depend on its own matches.
        """
        below = {name: [m for kind in self._composites(name) for m in self._made[kind]] for name in self}
        try:
            order = list(TopologicalSorter(below).static_order())
        except CycleError as error:
            raise self._cyclic(error.args[1][:-1]) from None
        depth: dict[str, int] = {}
        for name in order:
            depth[name] = 1 + max((depth[maker] for maker in below[name]), default=-1)
        layers: dict[frozenset[str], list[str]] = {}
        for name in sorted(self, key=depth.__getitem__):  # stable: in a layer, the order of the set
            layers.setdefault(self._composites(name), []).append(name)
        return layers

    def _cyclic(self, cycle: list[str]) -> QuerySetError:
        """Report queries that read each other's events in a cycle."""
        first = min(cycle, key=list(self).index)
        place = cycle.index(first)
        cycle = [*cycle[place:], *cycle[:place]]
        steps = [f"query {name} makes {self.members[name].plan.output.into}" for name in cycle]
        said = Diagnostic(
            "cyclic-types",
            f"a query reads events that depend on its own matches: {', '.join(steps)}, "
            f"which query {first} reads",
            hint="remove one of these types from the pattern that reads it, or rename the type after INTO",
        )
        return QuerySetError({first: QueryError([said])})

    def explain(self, format: str = "text", **options: Any) -> Any:
        """Show what the queries share, their layers, and the plan of each.

        Takes the options of `Query.explain`.

        Queries that read the same composite types form a layer.
        """
        leaves: set[LeafSpec] = set()
        used = 0
        for member in self.members.values():
            own = program_of(member.plan, None, "native").leaves
            used += len(own)
            leaves.update(own)
        plans = {name: member.explain(format, **options) for name, member in self.members.items()}
        layered = {} if len(self._layers) == 1 else self._layers
        if format == "json":
            layers = [{"reads": sorted(reads), "queries": names} for reads, names in layered.items()]
            shared = {"leaves": used, "shared leaves": len(leaves)}
            return {"queries": plans, **shared, **({"layers": layers} if layers else {})}
        head = [f"{len(self)} queries, {used} leaves, {len(leaves)} after sharing"]
        for place, (reads, names) in enumerate(layered.items()):
            read = f" over {', '.join(map(print_name, sorted(reads)))}" if reads else ""
            head.append(f"layer {place}{read}: {', '.join(names)}")
        return "\n".join([*head, *(f"{name}:\n{_indented(plan)}" for name, plan in plans.items())])

    # -- finite events -------------------------------------------------------------------------------------

    def match_each(self, events: Any, **how: Unpack[How]) -> dict[str, pa.Table]:
        """Return the matches of each query by name, as `Query.match` returns them, in one pass.

        >>> import nestream
        >>> found = nestream.queries({"start": "A a", "any": "ANY x"}).match_each([{"ts": 1, "type": "A"}])
        >>> found["start"].num_rows
        1
        """
        run, table = self._started(events, how)
        assert not isinstance(run, LocalRun)
        found = collected_each(run.each(table))
        return {
            name: found[name] if name in found else empty_table(member.wanted)
            for name, member in zip(run.names, run.runs, strict=True)
        }

    def batches(self, events: Any, *, threads: int | None = None, **how: Unpack[How]) -> Iterator[pa.Table]:
        """Yield the matches of `match` as tables; the first is empty and has the columns."""
        self._without_limits("a set that gives one table")
        yield from super().batches(events, threads=threads, **how)

    def count(self, events: Any, **how: Unpack[How]) -> dict[str, int]:
        """Count the matches of each query, in one thread. Takes the other options of `match`.

        >>> import nestream
        >>> nestream.queries({"start": "A a", "again": "A a"}).count([{"ts": 1, "type": "A"}])
        {'start': 1, 'again': 1}
        """
        if is_dataframe(events):
            return self._count_on_spark(events, **how)
        run, table = self._started(events, how)
        assert not isinstance(run, LocalRun)
        return run.count(table)

    def unseen(self, table: pa.Table, type: str = "type") -> list[str]:
        """Messages about types in the queries that no event has, most likely misspelt."""
        return [
            f"query {name}: {told}"
            for name, member in self.members.items()
            for told in member.unseen(table, type, self._made)
        ]

    def unknown_attributes(
        self,
        columns: Mapping[str, pa.DataType],
        came: Collection[str] | None,
        time: str = "ts",
        type: str = "type",
        names: Collection[str] | None = None,
    ) -> dict[str, list[Diagnostic]]:
        """The attributes that the events lack, given all their columns, by the name of the query.

        With `names`, only those queries are looked at.
        """
        found = {
            name: member.unknown_attributes(columns, came, time, type, self._made)
            for name, member in self.members.items()
            if names is None or name in names
        }
        return {name: problems for name, own in found.items() for problems in own.values()}

    def types_by_query(self) -> dict[str, tuple[str, ...]]:
        """The event types that each query names and no other makes, by the name of the query."""
        return {
            name: tuple(one for one in member.event_types if one not in self._made)
            for name, member in self.members.items()
        }

    @property
    def expected_types(self) -> tuple[str, ...]:
        """The event types that the queries name and none of them makes."""
        return tuple(name for name in self.event_types if name not in self._made)

    # -- plans ---------------------------------------------------------------------------------------------

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The logical plan of each query."""
        return tuple(member.plan for member in self.members.values())

    def check(self, columns: pa.Schema, time: str = "ts", type: str = "type") -> None:
        """Raise a `QuerySetError` if a query does not fit events with these columns."""
        self.compiled(Schema.of(self.fitted(columns.empty_table(), time, type).schema, time, type))

    def run(self, schema: Schema, **how: Unpack[How]) -> AnyRun:
        """Start the columnar engine in this process for events of a schema."""
        return started(self.compiled(schema, Settings.of(how)))

    def compiled(
        self,
        schema: Schema,
        settings: Settings = DEFAULTS,
        events: pa.Table | None = None,
        begin: Begin | None = None,
    ) -> CompiledSet | CompiledLayers:
        """The queries compiled for events of a schema, in layers if some read the matches of others."""
        settings.without_reference("cannot run a query set: run each query alone")
        fresh = Planned(schema, settings.strategy, settings.options)
        if len(self._layers) == 1:
            planned = self._planned(fresh) if begin is None else fresh
            return self._compiled(self.members, planned, settings, begin)
        layers: list[Layer] = []
        for reads, names in self._layers.items():
            below = [member for layer in layers for member in layer.queries.members]
            makers = sorted(makers_of(reads, below), key=lambda maker: list(self).index(maker.name))
            planned = replace(fresh, schema=with_composites(schema, makers), members={}, leaves={})
            own = {name: self.members[name] for name in names}
            queries = self._compiled(own, planned, settings, begin, reads)
            layers.append(Layer(reads, queries))
        return CompiledLayers(schema, tuple(layers), tuple(self))

    def _compiled(
        self,
        members: Mapping[str, Query],
        planned: Planned,
        settings: Settings,
        begin: Begin | None,
        reads: frozenset[str] = frozenset(),
    ) -> CompiledSet:
        """Queries compiled for the same events."""
        errors: dict[str, QueryError] = {}
        known = None if begin is None else begin.compiled(reads)
        if known is not None and known.schema == planned.schema:
            planned.members.update({member.name: member for member in known.members})
            planned.leaves.update({leaf: number for number, leaf in enumerate(known.leaves)})
        for name, member in members.items():
            if name not in planned.members:
                try:
                    run = member.prepared(planned.schema, settings)
                    since = None if begin is None else begin.since(name, reads, run.compiled)
                    leaves = planned.leaves if since is None else LeavesSince(planned.leaves, since)
                    planned.members[name] = replace(run.compiled(leaves=leaves, name=name), since=since)
                    planned.leaves.update(leaves)
                except QueryError as error:
                    errors[name] = error
        if errors:
            raise QuerySetError(errors)
        return CompiledSet(
            planned.schema, tuple(planned.members[name] for name in members), tuple(planned.leaves)
        )

    def _planned(self, wanted: Planned) -> Planned:
        """The last plan, if it was made in the same way."""
        for known in self.planned:
            if (known.schema, known.strategy, known.options) == (
                wanted.schema,
                wanted.strategy,
                wanted.options,
            ):
                return known
        self.planned[:] = [wanted]
        return wanted

    # -- streams and Spark ---------------------------------------------------------------------------------

    def identity(self, order: str, strategy: str) -> str:
        """What a saved state must agree with."""
        texts = [f"QUERY {name}\n{m.identity(order, strategy)}" for name, m in self.members.items()]
        return "\n".join(texts)

    def _identities(self, settings: Settings) -> dict[str, str]:
        return {name: m.identity(settings.order, settings.strategy) for name, m in self.members.items()}

    def _changed_compiler(self, settings: Settings) -> Callable[[Any], Compiler]:
        def compiler_of(rules: Any) -> Compiler:
            return (rules if isinstance(rules, Queries) else queries(rules))._compiler(settings)

        return compiler_of

    def _fixed_compiler(self, df: Any, schema: Schema, settings: Settings) -> Compiler:
        """How the set is compiled for the events of a DataFrame, whose columns do not change."""
        zone = zone_that_matters(self._typed, schema, df)
        known = self._compiler(settings)
        return replace(known, identity=known.identity + zone, whole=True, fixed=True)

    def _check_stream(self) -> None:
        self._without_limits("a stream of a set")
        self._refuse_endless()

    def _on_spark(
        self, df: Any, schema: Schema, settings: Settings, sample: Any = None, **partitioning: Any
    ) -> Any:
        from nestream.runtime.spark.match import match_dataframe, split_alike, union

        self._without_limits("a set on Spark")
        if df.isStreaming:
            self._refuse_endless()
        layered = len(self._layers) > 1
        whole = layered or df.isStreaming or partitioning["partition_by"] is not None
        groups = [list(self)] if whole else split_alike(self.compiled(schema, settings).members)
        parts = []
        for names in groups:
            some = Queries({name: self.members[name] for name in names})
            compiled, identity = some._compiled_for(df, schema, settings, sample)
            parts.append(match_dataframe(df, compiled, identity=identity, **partitioning))
        return union(parts)

    def _refuse_endless(self) -> None:
        for member in self.members.values():
            refuse_endless(member.plan, member.text)

    def _typed(self, schema: Schema) -> list[Plan]:
        if len(self._layers) == 1:
            return [member.typed(schema)[0] for member in self.members.values()]
        return [self.members[one.name].typed(one.schema)[0] for one in self.compiled(schema).members]

    def _count_on_spark(self, events: Any, **options: Any) -> dict[str, int]:
        found = self.on_spark(events, **options)
        refuse_to_count(found)
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
