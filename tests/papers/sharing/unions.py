"""Random unions of sequences that have steps in common, and groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pyarrow as pa

from nestream.model.schema import Order, Schema
from nestream.query import Query, query
from nestream.runtime.compiled import CompiledQuery
from nestream.runtime.local import LocalRun
from nestream_papers.engine.program import BlockProgram, Sharing
from nestream_papers.plan.compile import compile_plan
from nestream_papers.plan.groups import grouped
from nestream_papers.rewrite.normalise import normalise
from tests.papers.sharing.grouping import by_likeness
from tests.papers.tools import SCHEMA

TYPES = "ABC"


@dataclass(frozen=True)
class Chosen:
    """A group as an optimizer would choose it."""

    members: tuple[int, ...]
    operator: str
    length: int
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Union:
    """A query whose branches share steps, events to run it over, and the group of all its branches."""

    text: str
    table: pa.Table
    order: str
    group: Chosen


def random_union(random: Random, operator: Sharing) -> Union:
    """Branches with common steps at the start, at the end, or anywhere."""
    core = [random.choice(TYPES) for _ in range(random.choice((2, 2, 3)))]
    gaps = [_negation(random) if random.random() < 0.4 else "" for _ in core[1:]]
    compared = random.random() < 0.3
    keyed = random.random() < 0.5
    branches, starts = [], []
    for number in range(random.choice((2, 2, 3))):
        before = [] if operator is Sharing.PREFIX else _steps(random)
        after = [] if operator is Sharing.SUFFIX else _steps(random)
        own_gaps = gaps if random.random() < 0.7 else [_negation(random) for _ in gaps]
        between = ["" if random.random() < 0.6 else _negation(random) for _ in range(len(before) + 1)]
        after_gaps = ["" if random.random() < 0.6 else _negation(random) for _ in after]
        steps = [*before, *core, *after]
        all_gaps = [*between[: len(before)], *own_gaps, *after_gaps]
        branches.append(_branch(random, number, steps, all_gaps, len(before), compared, keyed))
        starts.append(len(before))
    window = random.choice(("3", "5", "8", "6 EVENTS", "UNBOUNDED"))
    group = Chosen(tuple(range(len(branches))), operator.value, len(core), tuple(starts))
    text = f"OR({', '.join(branches)}) WITHIN {window}"
    order = random.choice(("time", "time", "arrival"))
    return Union(text, dense_history(random, random.randrange(24)), order, group)


def dense_history(random: Random, count: int) -> pa.Table:
    """Many events in little time, in the order of time, some at the same moment, with few different ids."""
    ts, found = 0, []
    for _ in range(count):
        ts += random.choice((0, 1, 1))
        row = {"ts": ts, "type": random.choice("AABBCCDE"), "id": random.choice((1, 1, 2, None))}
        found.append({**row, "x": random.randrange(3)})
    return pa.Table.from_pylist(found, SCHEMA)


def _steps(random: Random) -> list[str]:
    return [random.choice(TYPES) for _ in range(random.choice((0, 1, 1, 2)))]


def _negation(random: Random) -> str:
    return random.choice(("!C {0}", "!SEQ(D {0}, B {1})", "!(E {0}, {0}.x > 1)"))


def _branch(
    random: Random, number: int, steps: list[str], gaps: list[str], first: int, compared: bool, keyed: bool
) -> str:
    """One sequence; `compared` puts a predicate on its first two common steps, `keyed` a key on all."""
    names = [f"v{number}{place}" for place in range(len(steps))]
    parts = [f"{steps[0]} {names[0]}"]
    for place, (kind, name, gap) in enumerate(zip(steps[1:], names[1:], gaps, strict=True)):
        if gap:
            parts.append(gap.format(f"n{number}{place}", f"m{number}{place}"))
        parts.append(f"{kind} {name}")
    if compared:
        parts.append(f"{names[first]}.x <= {names[first + 1]}.x")
    if keyed:
        parts.append(" = ".join(f"{name}.id" for name in names))
    if random.random() < 0.2:
        parts.append(f"{names[0]}.x != {names[-1]}.x")
    return f"SEQ({', '.join(parts)})"


def compiled(chosen: Query, table: pa.Table, order: str, groups: list[Chosen] | None) -> BlockProgram:
    """The program of a query with the groups, or with none."""
    schema = Schema.of(table.schema, order=order)
    plan, _ = chosen.typed(schema)
    return compile_plan(plan, schema, groups=groups)


def flat_program(chosen: Query, schema: Schema | None = None) -> BlockProgram:
    """The program of the normalised query, in the groups that are made without an optimizer."""
    plan = chosen.plan if schema is None else chosen.typed(schema)[0]
    flat = normalise(plan).plan
    program = compile_plan(flat, schema)
    return grouped(program, flat, tuple(by_likeness(program)))


def local(chosen: Query, table: pa.Table, program: BlockProgram) -> LocalRun:
    """A run of a program over events like those of the table."""
    order = Order.ARRIVAL if program.by_arrival else Order.TIME
    schema = Schema.of(table.schema, order=order)
    plan, kinds = chosen.typed(schema)
    return LocalRun(CompiledQuery(schema, plan.output, kinds, program))


def rows(table: pa.Table) -> list[str]:
    """The matches as texts, in an order of their own."""
    return sorted(map(repr, table.to_pylist()))


def of(text: str) -> Query:
    """The query of a text."""
    return query(text)
