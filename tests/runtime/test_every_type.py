"""Every Arrow type in every role of a column: the matches of the reference over plain values, or a refusal.

The reference gets the values in the plain type that they compute as, built from the same Python values and
not by nestream's own conversion. A refusal is an error of nestream's that names the column and says what to
do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nestream
from tests.generators.arrow_types import OTHER, SAMPLES, TIMES, Sample

COUNT = 8
"""The events of one try."""
NUMBERS = "RETURN a.n AS one, b.n AS two"
COMPUTED = (
    f"SEQ(A a, B b, a.v = b.v) WITHIN UNBOUNDED {NUMBERS}",
    f"SEQ(A a, !(C c, c.v = a.v), B b, a.v = b.v) WITHIN UNBOUNDED {NUMBERS}",
    f"SEQ(A a, B b, a.v != b.v) WITHIN UNBOUNDED {NUMBERS}",
    f"AND(A a, B b, a.v IS NULL) WITHIN UNBOUNDED {NUMBERS}",
)
ORDERED = f"SEQ(A a, B b, a.v <= b.v) WITHIN UNBOUNDED {NUMBERS}"
SHOWN = (
    "SEQ(A a, B b) WITHIN UNBOUNDED RETURN a.v AS shown, a.n AS one, b.n AS two",
    "OR(SEQ(A a, B b), C c) WITHIN UNBOUNDED",
)
UNUSED = f"SEQ(A a, B b) WITHIN UNBOUNDED {NUMBERS}"
REFUSED = (nestream.EventError, nestream.QueryError)
END_OF_TIME = 2**63 - 1
"""The integer that no event of a stream may have as its time; a finite input takes it."""
Rows = list[Any]


def cut(table: pa.Table) -> pa.Table:
    """The table in two chunks, neither of which starts where its buffers do."""
    at = table.num_rows // 2
    return pa.concat_tables([table.slice(0, at), table.slice(at)])


def shown(row: dict[str, Any]) -> str:
    """A match as text in which NaN is itself, and the order of the keys does not count."""
    return repr(sorted(row.items(), key=lambda item: item[0]))


@lru_cache
def prepared(text: str) -> tuple[nestream.Query, nestream.Queries]:
    """The query alone, and twice in a set."""
    return nestream.query(text), nestream.queries({"it": text, "again": text})


def run_all(text: str, events: pa.Table, **options: Any) -> Iterator[tuple[str, Callable[[], Rows | int]]]:
    """Every way to run a query over a table in this process."""
    query, together = prepared(text)

    def pushed_batches() -> Rows:
        stream = query.stream(dead_letter=bury, **options)
        found = [stream.push_batch(part) for part in (events.slice(0, 3), events.slice(3))]
        return [row for table in (*found, stream.finish_batch()) for row in table.to_pylist()]

    def pushed() -> Rows:
        stream = query.stream(dead_letter=bury, schema=events.schema, **options)
        found = [row for event in events.to_pylist() for row in stream.push(event)]
        return [*found, *stream.finish()]

    def saved() -> Rows:
        stream = query.stream(dead_letter=bury, **options)
        found = stream.push_batch(events.slice(0, 4)).to_pylist()
        stream = query.stream(dead_letter=bury, **options).restore(stream.save())
        found += stream.push_batch(events.slice(4)).to_pylist()
        return [*found, *stream.finish()]

    def of_a_set() -> Rows:
        assert together.match(events, **options).num_rows == 2 * query.count(events, **options)
        return together.match_each(events, **options)["it"].to_pylist()  # type: ignore[no-any-return]

    yield "match", lambda: query.match(events, **options).to_pylist()
    yield "reference", lambda: query.match(events, strategy="reference", **options).to_pylist()
    yield "batches", lambda: [row for part in query.batches(events, **options) for row in part.to_pylist()]
    yield "count", lambda: query.count(events, **options)
    yield "push_batch", pushed_batches
    yield "push", pushed
    yield "save", saved
    yield "set", of_a_set
    yield "why", lambda: len(query.why(events, [0], **options).text())


def bury(event: Any, reason: str) -> None:
    """A dead letter is a refusal."""
    raise nestream.EventError(reason)


def check_refusal(way: str, told: str, *, wanted: bool) -> None:
    """A refusal names the column and says what to do."""
    assert wanted, (way, told)
    assert "`v`" in told or ".v`" in told, (way, told)
    assert "hint" in told, (way, told)


def agree(text: str, events: pa.Table, expected: Rows | None, **options: Any) -> None:
    """Every way to run the query gives what is expected; None expects a refusal that names the column."""
    want = None if expected is None else sorted(map(shown, expected))
    for way, run in run_all(text, events, **options):
        try:
            found = run()
        except REFUSED as refusal:
            check_refusal(way, str(refusal), wanted=want is None or way == "push")
            continue
        assert want is not None, f"{way} takes what must be refused: {found}"
        if way == "count":
            assert found == len(want), way
        elif way != "why":
            assert isinstance(found, list)
            assert sorted(map(shown, found)) == want, way


def reference(text: str, events: pa.Table, **options: Any) -> Rows:
    """The matches of the reference evaluator over plain values."""
    found = prepared(text)[0].match(events, strategy="reference", **options)
    return found.to_pylist()  # type: ignore[no-any-return]


def frame(types: list[str], column: pa.Array, name: str = "v") -> pa.Table:
    numbers = list(range(len(types)))
    return pa.table({"ts": numbers, "type": types, "n": numbers, name: column})


def predicates(sample: Sample, chosen: list[Any], types: list[str]) -> None:
    """As key and in predicates."""
    events, plain = cut(frame(types, sample.array(chosen))), frame(types, sample.plain(chosen))
    for text in COMPUTED if sample.kind in ("boolean", OTHER) else (*COMPUTED, ORDERED):
        if not sample.computes and "IS NULL" not in text:
            agree(text, events, None)
        elif sample.too_big and any(value is not None for value in chosen):
            for way, run in run_all(text, events):
                if way != "push":  # which makes a dead letter of the event
                    check_one(way, run, None)
        elif sample.computes:
            agree(text, events, reference(text, plain))


def passengers(sample: Sample, chosen: list[Any], types: list[str]) -> None:
    """Only shown: a value comes out as it went in."""
    column = sample.array(chosen)
    events, plain = cut(frame(types, column)), frame(types, pa.nulls(COUNT, pa.int8()))
    originals = column.to_pylist()
    for text in SHOWN:
        expected = reference(text, plain)
        for row in expected:
            if "shown" in row:
                row["shown"] = originals[row["one"]]
            for variable in ("a", "b", "c"):
                if row.get(variable):
                    row[variable]["v"] = originals[row[variable]["n"]]
        agree(text, events, expected)
    agree(UNUSED, events, reference(UNUSED, plain))


def times(sample: Sample, chosen: list[Any], types: list[str]) -> None:
    """As the time of the events."""
    events = cut(frame(types, sample.array(chosen)).drop_columns(["ts"]))
    plain = frame(types, sample.plain(chosen)).drop_columns(["ts"])
    window = "10" if sample.kind == "integer" else "1 hours"
    for text in (UNUSED, f"SEQ(A a, B b) WITHIN {window} {NUMBERS}"):
        expected = spanned(reference(text, plain, time="v"), events) if sample.kind in TIMES else None
        for way, run in run_all(text, events, time="v"):
            if way in ("match", "reference", "batches", "count", "set", "why") or expected is None:
                check_one(way, run, expected)
    if sample.kind in TIMES:  # a stream takes them in the order of time
        chosen = sorted(chosen)
        plain = frame(types, sample.plain(chosen)).drop_columns(["ts"])
        events = cut(frame(types, sample.array(chosen)).drop_columns(["ts"]))
        expected = spanned(reference(UNUSED, plain, time="v"), events)
        ends = sample.kind == "integer" and chosen[-1] == END_OF_TIME
        for way, run in run_all(UNUSED, events, time="v"):
            check_one(way, run, None if ends and way in ("push_batch", "push", "save") else expected)


def spanned(rows: Rows, events: pa.Table) -> Rows:
    """Matches from `one` to `two` with the times of the events as they were given."""
    given = events.column("v").to_pylist()
    return [{**row, "match_start": given[row["one"]], "match_end": given[row["two"]]} for row in rows]


def check_one(way: str, run: Callable[[], Rows | int], expected: Rows | None) -> None:
    """One way to run a query, as `agree` has it for all."""
    try:
        found = run()
    except REFUSED as refusal:
        check_refusal(way, str(refusal), wanted=expected is None)
        return
    assert expected is not None, f"{way} takes what must be refused: {found}"
    if way == "count":
        assert found == len(expected), way
    elif isinstance(found, list):
        assert sorted(map(shown, found)) == sorted(map(shown, expected)), way


def event_types(sample: Sample, chosen: list[Any], types: list[str]) -> None:
    """As the type of the events."""
    events, plain = frame(["A"] * COUNT, sample.array(chosen)), frame(["A"] * COUNT, sample.plain(chosen))
    events, plain = cut(events.drop_columns(["type"])), plain.drop_columns(["type"])
    for text in (UNUSED, f"SEQ(A a, !C c, B b) WITHIN UNBOUNDED {NUMBERS}"):
        agree(text, events, reference(text, plain, type="v") if sample.kind == "string" else None, type="v")


ROLES = (predicates, passengers, times, event_types)
Role = Callable[[Sample, list[Any], list[str]], None]


def fits(role: Role, sample: Sample) -> bool:
    """Whether the role can be tried: far times have no Python value to show, and NULL is no time or type."""
    if sample.too_big and role is not predicates:
        return False
    return bool(sample.pool) or role in (predicates, passengers)


def pool_of(sample: Sample, role: Role) -> list[Any]:
    """The values to choose from; an event has a time and a type."""
    return [*sample.pool] if role in (times, event_types) else [*sample.pool, None]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.__name__)
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_column_of_any_type_is_right_or_refused(sample: Sample, role: Role) -> None:
    choice = Random(f"{sample} {role.__name__}")
    if fits(role, sample):
        role(sample, choice.choices(pool_of(sample, role), k=COUNT), list("ABCABBAB"))


@pytest.mark.parametrize("types", ["AAA", "ABB"], ids=["never compared", "compared"])
def test_a_value_beyond_64_bits_is_refused_where_it_is_computed_with_and_shown_where_not(types: str) -> None:
    events = frame(list(types), pa.array([2**63] * 3, pa.uint64()))
    shown_alone = f"SEQ(A a, B b) WITHIN UNBOUNDED {NUMBERS}, a.v AS v"
    expected = [{**row, "v": 2**63} for row in reference(UNUSED, events.drop_columns(["v"]))]
    for way, run in run_all(shown_alone, events):
        if way not in ("reference", "why", "push"):  # an integer of Python has no such type
            check_one(way, run, expected)
    for text in (COMPUTED[0], ORDERED, f"SEQ(A a, B b) WITHIN UNBOUNDED {NUMBERS}, a.v + 1 AS more"):
        for way, run in run_all(text, events):
            check_one(way, run, None)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_column_of_any_type_is_right_or_refused_over_many_events(sample: Sample) -> None:
    @settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def tried(data: st.DataObject) -> None:  # 150 types, 25 tries, 4 roles of 8 events: 100,000 events
        types = data.draw(st.lists(st.sampled_from("AABBC"), min_size=COUNT, max_size=COUNT))
        for role in ROLES:
            if fits(role, sample):
                pool = st.sampled_from(pool_of(sample, role))
                role(sample, data.draw(st.lists(pool, min_size=COUNT, max_size=COUNT)), types)

    tried()
