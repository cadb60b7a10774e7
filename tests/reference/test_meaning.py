"""What is true of every result of the reference evaluator, and of the table of matches it fills."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.logical.nodes import leaves
from nestream.model.event_types import ANY_TYPE
from nestream.model.output import EventColumn
from nestream.reference import Order, evaluate, history
from tests.corpus.cases import Case, read_all
from tests.corpus.notation import read_history, write_matches

ROOT = Path(__file__).resolve().parents[2]
CASES = [case for case in read_all() if case.one("error") is None and case.one("columns") is None]


def runs(case: Case) -> list[tuple[nestream.Query, pa.Table]]:
    query = nestream.query(case.query, case.one("dialect"))
    return [(query, read_history(events.text, case.letters).table()) for events, _ in case.runs]


def match(case: Case, query: nestream.Query, table: pa.Table) -> list[dict[str, Any]]:
    order = case.one("order") or "time"
    found: list[dict[str, Any]] = query.match(
        table, order=order, types=case.types, strategy="reference"
    ).to_pylist()
    return found


def shown(case: Case, query: nestream.Query, table: pa.Table) -> list[str]:
    order = case.one("order") or "time"
    return write_matches(query.match(table, order=order, types=case.types, strategy="reference"))


def is_event(cell: Any) -> bool:
    return isinstance(cell, dict) and "_event" in cell


def types_of_rows(table: pa.Table) -> tuple[str, ...]:
    """All the types of the events: those of a variable of any type."""
    return tuple(table.column("type").to_pylist()) if "type" in table.column_names else ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_match_is_well_formed(case: Case) -> None:
    for query, table in runs(case):
        types = {leaf.variable: leaf.types for leaf in leaves(query.plan.root) if ANY_TYPE not in leaf.types}
        types |= {leaf.variable: types_of_rows(table) for leaf in leaves(query.plan.root)} | types
        rows = match(case, query, table)
        bare = all(isinstance(column, EventColumn) for column in query.plan.output.columns)
        for row in rows:
            events = {name: cell for name, cell in row.items() if is_event(cell)}
            labels = [event["_event"] for event in events.values()]
            assert len(set(labels)) == len(labels), "one event plays two variables"
            assert all(event["type"] in types[name] for name, event in events.items())
            times = [event["ts"] for event in events.values()]
            assert row["match_start"] <= row["match_end"]
            if bare:
                assert (row["match_start"], row["match_end"]) == (min(times), max(times))
        if bare:
            labels_of_rows = [
                tuple(cell and cell["_event"] for cell in list(row.values())[:-2]) for row in rows
            ]
            assert len(set(labels_of_rows)) == len(labels_of_rows), "a match is returned twice"
        if not query.plan.output.groups:  # a trailing group may end after the events that order the rows
            assert [row["match_end"] for row in rows] == sorted(row["match_end"] for row in rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_of_other_types_change_nothing(case: Case) -> None:
    for query, table in runs(case):
        if query.plan.window.kind == "events" or not table.num_rows:
            continue
        if any(ANY_TYPE in leaf.types for leaf in leaves(query.plan.root)):
            continue  # every type is one of these
        others = table.set_column(
            table.schema.get_field_index("type"), "type", pa.array(["none of these"] * table.num_rows)
        )
        more = pa.concat_tables([others, table, others])
        assert shown(case, query, more) == shown(case, query, table)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_columns_are_known_without_events(case: Case) -> None:
    for query, table in runs(case):
        if not table.num_rows:
            continue
        full = query.match(table, types=case.types, strategy="reference")
        empty = query.match(table.slice(0, 0), types=case.types, strategy="reference")
        assert full.schema == empty.schema
        names = [column.name for column in query.plan.output.columns]
        assert full.column_names == [*names, "match_start", "match_end"]


def test_positions_are_ranks_by_time_then_arrival() -> None:
    events = history([3, 1, 3, 2], ["A", "B", "C", "D"], [{}, {}, {}, {}])
    assert [(event.pos, event.ts, event.type, event.row) for event in events] == [
        (0, 1, "B", 1),
        (1, 2, "D", 3),
        (2, 3, "A", 0),
        (3, 3, "C", 2),
    ]


def test_a_match_is_told_by_which_event_plays_which_variable() -> None:
    plan = nestream.query("AND(A a, A b) WITHIN 9").plan
    found = evaluate(plan, history([1, 2], ["A", "A"], [{}, {}]), Order.TIME)
    assert [one.positions for one in found] == [(("a", 0), ("b", 1)), (("a", 1), ("b", 0))]


def test_times_in_nanoseconds_are_exact() -> None:
    table = pa.table(
        {
            "ts": pa.array([0, 1_000_000_000, 1_000_000_001], pa.timestamp("ns")),
            "type": ["A", "B", "B"],
        }
    )
    query = nestream.query("SEQ(A a, B b) WITHIN 1 s RETURN b.ts - a.ts AS took")
    found = query.match(table, strategy="reference")
    assert found.num_rows == 1
    assert found.schema.field("took").type == pa.duration("ns")


def test_the_time_and_type_columns_may_have_other_names() -> None:
    rows = [{"at": 1, "kind": "A"}, {"at": 2, "kind": "B"}]
    query = nestream.query(
        "SEQ(A a, B b) WITHIN 9 RETURN b.ts - a.at AS took, a.type AS kind, b.kind AS last"
    )
    found = query.match(rows, time="at", type="kind", strategy="reference")
    assert found.to_pylist() == [{"took": 1, "kind": "A", "last": "B", "match_start": 1, "match_end": 2}]


def test_a_column_named_ts_comes_before_the_time_of_the_event() -> None:
    rows = [{"at": 1, "kind": "A", "ts": "x"}, {"at": 2, "kind": "B", "ts": "y"}]
    query = nestream.query("SEQ(A a, B b) WITHIN 9 RETURN b.at - a.at AS took, b.ts AS read, a.type AS kind")
    with pytest.warns(UserWarning, match="`ts` in the query is the column `ts` of the events"):
        found = query.match(rows, time="at", type="kind", strategy="reference")
    assert found.to_pylist() == [{"took": 1, "read": "y", "kind": "A", "match_start": 1, "match_end": 2}]


def test_the_documentation_has_the_sections_that_the_evaluator_refers_to() -> None:
    page = (ROOT / "docs" / "reference" / "semantics.md").read_text()
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    rest = ["Scope", "Spellings", "Values", "Output", "KEEP", "Composite events"]
    assert sections == ["Events", "Positive part", "Negative part", "Groups", *rest]
    for path in (ROOT / "src" / "nestream" / "reference").glob("*.py"):
        for section in re.findall(r'[Ss]ection "([A-Z][a-z ]+)"', path.read_text()):
            assert section in sections
