"""The ways to run a query that are compared with the reference, by name.

A runner takes the query's text, the events, the order and a seed, from which it draws whatever it may choose
freely, such as how the input is split. To add one, write the function and name it in `RUNNERS`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from nestream.engine.operators import chain, derived
from nestream.engine.single import search, stacks
from nestream.query import query
from nestream.reference import match_reference
from nestream.runtime import stream as stream_module
from nestream.runtime import time_slices
from nestream.runtime.stream import Stream
from nestream_papers.options import Options
from nestream_papers.rewrite.normalise import LIMIT, normalise
from nestream_papers.sase.plan import BASIC, PAPER
from tests.property.sets import is_endless, together, together_split
from tests.strategies import VIEWS


class Run(Protocol):
    """Runs a query over events."""

    def __call__(self, text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        """The table of matches."""


@dataclass(frozen=True)
class Runner:
    """A way to run a query.

    `ordered` says that it promises the order of the rows: by `match_end`, then by the events' positions, so
    that LIMIT takes the first of them. Without the promise LIMIT may take any.
    """

    run: Run
    ordered: bool = False


def reference(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The reference evaluator itself."""
    return query(text).match(table, order=order, strategy="reference")


def engine(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The columnar engine over the whole table."""
    return query(text).match(table, order=order)


def split(
    text: str,
    table: pa.Table,
    *,
    order: str,
    seed: int,
    strategy: str = "auto",
    options: Options | None = None,
) -> pa.Table:
    """The engine over random batches, with events as late as they may be and state saved on the way."""
    chance = random.Random(seed)
    times = table.column("ts").to_pylist()
    lateness = max((max(times[:n]) - times[n] for n in range(1, len(times))), default=0)
    chosen = query(text)
    if is_endless(chosen):
        return chosen.match(table, order=order, strategy=strategy, options=options)

    def start() -> Stream:
        started: Stream = chosen.stream(
            schema=table.schema, order=order, lateness=max(lateness, 0), strategy=strategy, options=options
        )
        return started

    stream, parts, done = start(), [], 0
    while done < table.num_rows:
        size = chance.choice((1, 1, 2, 3, 5, 100))
        parts.append(stream.push_batch(table.slice(done, size)))
        done += size
        if chance.random() < 0.3:
            stream = start().restore(stream.save())
    parts.append(stream.finish_batch())
    assert stream.late_count == stream.dead_count == 0
    return _limited(pa.concat_tables(parts), text)


def one_by_one(text: str, table: pa.Table, *, order: str, seed: int, strategy: str = "auto") -> pa.Table:
    """The engine event by event, as dictionaries, in the order of time."""
    chosen = query(text)
    if is_endless(chosen):
        return chosen.match(table, order=order, strategy=strategy)
    ordered = table.take(pa.array(np.argsort(table.column("ts").to_numpy(), kind="stable")))
    stream = chosen.stream(schema=table.schema, order=order, strategy=strategy)
    wanted = chosen.match(table.slice(0, 0), order=order).schema
    matches = [match for event in ordered.to_pylist() for match in stream.push(event)]
    return _limited(pa.Table.from_pylist([*matches, *stream.finish()], schema=wanted), text)


def mixed(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """Single events and batches in turns, late ones among them, with state saved while events are buffered.

    Each push must emit what a second stream emits that gets the same events as batches. All limits are small,
    so that events are handed over, expire and go through rounds often.
    """
    chance = random.Random(seed)
    times = table.column("ts").to_pylist()
    lateness = max((max(times[:n]) - times[n] for n in range(1, len(times))), default=0)
    chosen = query(text)
    if is_endless(chosen):
        return chosen.match(table, order=order)
    declared, together = chance.random() < 0.7, chance.choice((0.0, 0.05, 0.3))

    def start() -> Stream:
        schema = table.schema if declared else None
        started: Stream = chosen.stream(schema=schema, order=order, lateness=max(lateness, 0))
        return started

    stream, beside = start(), chosen.stream(schema=table.schema, order=order, lateness=max(lateness, 0))
    wanted = chosen.match(table.slice(0, 0), order=order).schema
    parts: list[dict[str, Any]] = []
    done = 0
    with (
        patch.object(stream_module, "_MOST_PENDING", chance.choice((1, 3, 4096))),
        patch.object(search, "MOST", chance.choice((0, 3, 2048))),
        patch.object(stacks, "_MANY", chance.choice((1, 1024))),
    ):
        while done < table.num_rows:
            size = 2 if chance.random() < together else 1
            some = table.slice(done, size)
            found = stream.push(some.to_pylist()[0]) if size == 1 else stream.push_batch(some).to_pylist()
            expected = beside.push_batch(some).to_pylist()
            assert declared is False or repr(found) == repr(expected), f"{found} instead of {expected}"
            parts += found
            done += size
            if chance.random() < 0.1:
                stream = start().restore(stream.save())
            if chance.random() < 0.1:
                held, same = stream.describe(), beside.describe()
                assert (held["events_in"], held["matches_out"]) == (same["events_in"], same["matches_out"])
        parts += stream.finish()
    assert stream.late_count == stream.dead_count == 0
    return _limited(pa.Table.from_pylist(parts, schema=wanted), text)


def _limited(matches: pa.Table, text: str) -> pa.Table:
    limit = query(text).plan.limit
    return matches if limit is None else matches.slice(0, limit)


def without(**switches: bool | int) -> Run:
    """The engine with some of its techniques switched off."""

    def run(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        return query(text).match(table, order=order, options=switches)

    return run


def switched(options: Options) -> Run:
    """The engine with these options."""

    def run(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        return query(text).match(table, order=order, options=options)

    return run


def any_switches(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The engine with each of its techniques on or off by chance, and pieces of any size."""
    chance = random.Random(seed)
    names = [field.name for field in fields(Options) if field.type == "bool"]
    chosen: dict[str, Any] = {name: chance.random() < 0.5 for name in names}
    if chance.random() < 0.3:
        chosen["memory"] = chance.randint(1, 3000)
    return query(text).match(table, order=order, options=Options(**chosen))


def by(strategy: str, **switches: bool | int) -> Run:
    """The whole table by a strategy."""

    def run(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        return query(text).match(table, order=order, strategy=strategy, options=switches)

    return run


def with_composites(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The engine with composite steps wherever there may be one, whether they pay or not."""
    with patch.object(chain.Composite, "is_worth", lambda *_: True):
        return query(text).match(table, order=order, strategy="native")


def split_with_composites(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """Random batches, with composite steps wherever there may be one."""
    with patch.object(chain.Composite, "is_worth", lambda *_: True):
        return split(text, table, order=order, seed=seed)


def derived_anew(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """Random batches, with inner matches derived in every round, however few events are new."""
    with patch.object(derived, "_FEW_NEW", 1 << 40):
        return split(text, table, order=order, seed=seed)


def sliced(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The whole table in slices of time of a few events, by one thread or several; counted, too."""
    chance = random.Random(seed)
    few = chance.choice((1, 2, 3, 5))
    with patch.object(time_slices, "ROWS", few), patch.object(time_slices, "_SHARE", chance.choice((0, 1))):
        matches = query(text).match(table, order=order, threads=chance.choice((1, 2, 3)))
        counted = query(text).count(table, order=order, threads=chance.choice((1, 2, 3)))
    assert counted == matches.num_rows
    return matches


def normalised(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """The reference evaluator over the rewritten plan, by the rules in a random order for odd seeds."""
    chance = random.Random(seed)
    run = query(text).prepare(table, order=order, strategy="reference")
    limit = chance.choice((2, 16, LIMIT))
    plan = normalise(run.plan, limit, choose=chance.choice if seed % 2 else None).plan
    return match_reference(plan, run.table, run.schema, run.kinds)


RUNNERS: dict[str, Runner] = {
    "reference": Runner(reference, ordered=True),
    "engine": Runner(engine, ordered=True),
    "engine-sliced": Runner(sliced, ordered=True),
    "engine-split": Runner(split),
    "engine-one-by-one": Runner(one_by_one),
    "engine-mixed": Runner(mixed),
    "engine-no-bounds": Runner(without(bounds=False), ordered=True),
    "engine-no-partition": Runner(without(partition=False), ordered=True),
    "engine-no-reach": Runner(without(reach=False), ordered=True),
    "engine-no-ordering": Runner(without(ordering=False), ordered=True),
    "engine-no-narrowing": Runner(without(narrowing=False), ordered=True),
    "engine-no-once": Runner(without(once=False), ordered=True),
    "engine-no-push-in": Runner(without(push_in=False), ordered=True),
    "nested-no-push-in": Runner(by("nested", push_in=False), ordered=True),
    "nested-no-shortcut": Runner(by("nested", shortcut=False), ordered=True),
    "nested-no-push-in-no-shortcut": Runner(by("nested", push_in=False, shortcut=False), ordered=True),
    "flat-no-push-in": Runner(by("flat", push_in=False), ordered=True),
    "engine-small-memory": Runner(without(memory=1), ordered=True),
    "engine-no-stacks": Runner(without(stacks=False), ordered=True),
    "engine-no-composite": Runner(without(composite=False), ordered=True),
    "engine-no-multiple": Runner(without(composite=False, multiple=False), ordered=True),
    "engine-no-filtering": Runner(without(composite=False, filtering=False), ordered=True),
    "engine-no-multiple-no-filtering": Runner(
        without(composite=False, multiple=False, filtering=False), ordered=True
    ),
    "engine-no-window-scan": Runner(without(window_scan=False), ordered=True),
    "engine-no-window-construction": Runner(without(window_construction=False), ordered=True),
    "engine-no-simple": Runner(without(simple=False), ordered=True),
    "engine-no-negation-index": Runner(without(negation_index=False), ordered=True),
    "sase-any-switches": Runner(any_switches, ordered=True),
    "sase-paper": Runner(switched(PAPER), ordered=True),
    "sase-basic": Runner(switched(BASIC), ordered=True),
    "sase-paper-split": Runner(partial(split, options=PAPER)),
    "sase-basic-split": Runner(partial(split, options=BASIC)),
    "set": Runner(together, ordered=True),
    "set-split": Runner(together_split),
    "normalised": Runner(normalised, ordered=True),
    "native": Runner(by("native"), ordered=True),
    "native-small": Runner(by("native", memory=600), ordered=True),
    "native-split-derived": Runner(derived_anew),
    "native-composites": Runner(with_composites, ordered=True),
    "native-split-composites": Runner(split_with_composites),
    "papers": Runner(switched(Options()), ordered=True),
    "papers-split": Runner(partial(split, options=Options())),
    "flat": Runner(by("flat"), ordered=True),
    "flat-split": Runner(partial(split, strategy="flat")),
    "flat-by-rows": Runner(by("flat", cost_in_time=False), ordered=True),
    "flat-by-rows-split": Runner(partial(split, strategy="flat", options=Options(cost_in_time=False))),
    "flat-one-by-one": Runner(partial(one_by_one, strategy="flat")),
    "nested": Runner(by("nested"), ordered=True),
    "nested-split": Runner(partial(split, strategy="nested")),
    "nested-one-by-one": Runner(partial(one_by_one, strategy="nested")),
    **{name: Runner(by(name), ordered=True) for name in VIEWS},
    **{f"{name}-split": Runner(partial(split, strategy=name)) for name in VIEWS},
    **{f"{name}-one-by-one": Runner(partial(one_by_one, strategy=name)) for name in VIEWS},
}
