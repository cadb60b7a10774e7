"""Every way to run a query gives the matches of the reference, on random queries over random histories."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nestream.model.schema import Schema
from nestream.query import Query, query
from nestream_papers.options import Options
from tests.generators.choices import DrawnChoices
from tests.generators.histories import histories, types_of
from tests.generators.queries import FLAT, GENERAL, KEYED, any_query
from tests.generators.variants import Variant, variants
from tests.property.differential import report, run
from tests.property.harness import assert_same_matches
from tests.property.runners import RUNNERS
from tests.property.sets import is_endless
from tests.strategies import VIEWS

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "30"))
WAYS = sorted(set(RUNNERS) - {"reference"})
SELDOM = {"engine-no-multiple-no-filtering", "sase-paper-split", "sase-basic-split"}
"""The ways that only many cases at a time are run by."""
SWITCHES = {name for name in WAYS if re.match("engine-(no|small)-|sase-|nested-no-|flat-no-", name)}

many = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, pa.Table, str, int]:
    """A query, a history, an order, and a seed for what a runner may choose."""
    text = any_query(DrawnChoices(draw))
    return (
        text,
        draw(histories(types=types_of(text))),
        draw(st.sampled_from(["time", "arrival"])),
        draw(st.integers(0, 2**32 - 1)),
    )


# -- random queries over random histories ------------------------------------------------------------------


@pytest.mark.parametrize("way", [way for way in WAYS if way not in SELDOM | SWITCHES])
@many
@given(cases())
def test_a_way_to_run_gives_the_matches_of_the_reference(
    way: str, case: tuple[str, pa.Table, str, int]
) -> None:
    text, table, order, seed = case
    assert_same_matches(text, table, RUNNERS[way], order=order, seed=seed)


@pytest.mark.parametrize("way", sorted(SWITCHES - SELDOM))
@settings(many, max_examples=EXAMPLES // 4)
@given(cases())
def test_a_switch_of_the_papers_changes_no_match(way: str, case: tuple[str, pa.Table, str, int]) -> None:
    text, table, order, seed = case
    assert_same_matches(text, table, RUNNERS[way], order=order, seed=seed)


@many
@given(cases(), st.sampled_from(["auto", "nested", "flat", *VIEWS]))
def test_counting_gives_the_number_of_matches(case: tuple[str, pa.Table, str, int], strategy: str) -> None:
    text, table, order, _ = case
    chosen = query(text)
    matches = chosen.match(table, order=order)
    assert chosen.count(table, order=order, strategy=strategy) == matches.num_rows


@many
@given(cases(), st.integers(1, 4000), st.sampled_from(["auto", "nested", "flat", *VIEWS]))
def test_batches_together_are_the_matches(
    case: tuple[str, pa.Table, str, int], memory: int, strategy: str
) -> None:
    text, table, order, _ = case
    chosen = query(text)
    options = Options(memory=memory)
    first, *rest = chosen.batches(table, order=order, strategy=strategy, options=options)
    assert first.num_rows == 0
    expected = chosen.match(table, order=order)
    assert all(part.schema == expected.schema for part in (first, *rest))
    if chosen.plan.limit is None:
        assert sorted(rows(pa.concat_tables([first, *rest]))) == sorted(rows(expected))
    else:
        assert sum(part.num_rows for part in rest) == expected.num_rows


# -- other columns: timestamps, other keys, encodings, types without an attribute --------------------------


def rows(table: pa.Table) -> list[str]:
    return [repr(row) for row in table.to_pylist()]


def in_batches(chosen: Query, case: Variant) -> pa.Table:
    """The engine over random batches, with lateness and with state saved on the way."""
    chance = random.Random(case.seed)
    times = case.table.column("ts").cast(pa.int64()).to_pylist()
    lateness = max((max(times[:n]) - times[n] for n in range(1, len(times))), default=0)
    schema = Schema.of(case.table.schema, types=case.types)

    def start() -> Any:
        return chosen.stream(schema=schema, order=case.order, lateness=max(lateness, 0))

    stream, parts, done = start(), [], 0
    while done < case.table.num_rows:
        size = chance.choice((1, 2, 5))
        parts.append(stream.push_batch(case.table.slice(done, size)))
        done += size
        if chance.random() < 0.3:
            stream = start().restore(stream.save())
    parts.append(stream.finish_batch())
    assert (stream.late_count, stream.dead_count) == (0, 0)
    return pa.concat_tables(parts)


def in_a_stream(schema: pa.Schema) -> pa.Schema:
    """The schema of a stream's matches: a dictionary has room for the words that are still to come."""

    def roomy(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(roomy(field.type)) for field in kind])
        if pa.types.is_dictionary(kind) and kind.index_type in {pa.int8(), pa.int16()}:
            return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
        return kind

    return pa.schema([field.with_type(roomy(field.type)) for field in schema])


def over_all(**switches: Any) -> Callable[[Query, Variant], pa.Table]:
    def run(chosen: Query, case: Variant) -> pa.Table:
        return chosen.match(case.table, order=case.order, types=case.types, options=Options(**switches))

    return run


def by(strategy: str) -> Callable[[Query, Variant], pa.Table]:
    def run(chosen: Query, case: Variant) -> pa.Table:
        return chosen.match(case.table, order=case.order, types=case.types, strategy=strategy)

    return run


VARIANT_WAYS: dict[str, Callable[[Query, Variant], pa.Table]] = {
    "engine": by("auto"),
    "papers": over_all(),
    "in batches": in_batches,
    "no bounds": over_all(bounds=False),
    "no partition": over_all(partition=False),
    "nested": by("nested"),
    "flat": by("flat"),
    "views-balanced": by("views-balanced"),
}
STYLES = {
    "general": replace(GENERAL, limit=0, keys=((70, "all"), (30, "two"))),
    "sase": replace(GENERAL, limit=0, sase=100),
    "keyed": KEYED,
    "flat": replace(FLAT, keys=((1, "all"), (1, "two"))),
}


@pytest.mark.parametrize("style", STYLES)
@many
@given(st.data())
def test_other_columns_do_not_change_what_the_ways_agree_on(style: str, data: st.DataObject) -> None:
    case = data.draw(variants(STYLES[style]))
    chosen = query(case.text)
    reference = chosen.match(case.table, order=case.order, types=case.types, strategy="reference")
    for name, way in VARIANT_WAYS.items():
        if name == "in batches" and is_endless(chosen):
            continue
        found = way(chosen, case)
        if name == "in batches":
            assert found.schema == in_a_stream(reference.schema), name
            assert sorted(rows(found)) == sorted(rows(reference)), name
        else:
            assert found.schema == reference.schema, name
            assert rows(found) == rows(reference), name


TIMED = {
    "a difference of times": "SEQ(A a, !B b, C c, c.ts - a.ts >= 2 seconds) WITHIN 5 seconds",
    "a moment": "SEQ(A a, B b, a.ts > TIMESTAMP '1970-01-01 00:00:03') WITHIN 4 seconds",
    "a trailing negation": "SEQ(A a, !(B b, b.ts - a.ts > 1 seconds)) WITHIN 3 seconds",
    "half a second": "SEQ(A a, B b, C c) WITHIN 2500 ms RETURN c.ts - a.ts AS long, b.ts AS middle",
    "a conjunction": "AND(A a, !B b, C c, abs(a.ts - c.ts) < 2 seconds) WITHIN 5 seconds",
    "in the SASE dialect": "EVENT SEQ(A a, !(B b), C c) WHERE [id] WITHIN 3 seconds",
}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories(types=("A", "B", "C")), st.sampled_from(sorted(TIMED)))
@example(pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())}), "a moment")
def test_predicates_on_timestamps_mean_the_same_in_every_resolution(
    unit: str, zone: str | None, table: pa.Table, name: str
) -> None:
    if zone is not None and name == "a moment":
        zone = "UTC"
    if "id" not in table.column_names:
        table = table.append_column("id", pa.array([], pa.int64()))
    moments = pa.array([ts * 10**6 for ts in table.column("ts").to_pylist()], pa.timestamp("us", zone))
    table = table.set_column(0, "ts", moments.cast(pa.timestamp(unit, zone)))
    text = TIMED[name].replace(":03'", ":03Z'") if zone else TIMED[name]
    chosen = query(text)
    reference = chosen.match(table, strategy="reference")
    assert rows(chosen.match(table)) == rows(reference)
    assert sorted(rows(in_batches(chosen, Variant(text, table)))) == sorted(rows(reference))


# -- many cases --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "count"),
    [
        ("normalised", 20_000),
        ("engine", 20_000),
        ("engine-sliced", 20_000),
        ("engine-split", 20_000),
        ("engine-one-by-one", 20_000),
    ]
    + [("nested", 20_000), ("nested-split", 4_000), ("nested-one-by-one", 4_000)]
    + [("flat", 20_000), ("flat-split", 20_000), ("flat-one-by-one", 20_000)]
    + [(name, 20_000) for name in VIEWS]
    + [(f"{name}-{how}", 4_000) for name in VIEWS for how in ("split", "one-by-one")]
    + [("papers", 10_000), ("papers-split", 4_000)]
    + [(f"native-{how}", 4_000) for how in ("small", "composites", "split-derived")]
    + [(name, 4_000) for name in sorted(SWITCHES)],
)
def test_thousands_of_random_cases_agree(way: str, count: int) -> None:
    seed = int(os.environ.get("ENGINE_SEED", "0"))
    failures = run(count, seed, way)
    assert not failures, "\n\n".join(report(seed, way, index) for index in failures[:3])
