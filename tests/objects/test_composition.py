"""Text and objects compose, and objects are taken wherever a text is."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import nestream
from nestream import (
    Pattern,
    all_of,
    any_of,
    col,
    event,
    exists,
    expr,
    fn,
    lit,
    not_,
    param,
    pattern,
    same,
    seq,
)
from nestream.model.functions import FUNCTIONS

EVENTS = [
    {"ts": 1, "type": "A", "id": 1},
    {"ts": 2, "type": "B", "id": 2},
    {"ts": 3, "type": "B", "id": 1},
    {"ts": 4, "type": "C", "id": 1},
]
a, b, c = event("A", "a"), event("B", "b"), event("C", "c")


def one_line(query: Pattern) -> str:
    return " ".join(str(query).split()).removeprefix("PATTERN ")


# ---- names ----


def test_an_event_goes_by_the_name_of_its_type() -> None:
    r, w, o = event("Recycle"), event("Washing"), event("Operating")
    query = seq(r, not_(w.where(w.id == r.id)), o).where(r.id == o.id).within("1 hour").returning(tool=o.id)
    assert str(query) == (
        "PATTERN SEQ(Recycle, !(Washing, Washing.id = Recycle.id), Operating)\n"
        "WHERE Recycle.id = Operating.id\n"
        "WITHIN 1 hour\n"
        "RETURN Operating.id AS tool"
    )


def test_unnamed_events_of_one_type_are_told_apart() -> None:
    first, second = event("B"), event("B")
    query = seq(first, second).where(first.id > second.id).within(10)
    assert one_line(query) == "SEQ(B B_1, B B_2) WHERE B_1.id > B_2.id WITHIN 10"
    assert query.match(EVENTS).column_names[:2] == ["B_1", "B_2"]
    assert query.match(EVENTS).num_rows == 1


def test_unnamed_events_that_nothing_mentions_are_called_the_same_in_matches() -> None:
    query = seq(event("B"), event("B")).within(10)
    assert one_line(query) == "SEQ(B, B) WITHIN 10"
    assert query.match(EVENTS).column_names[:2] == ["B_1", "B_2"]


def test_a_new_name_is_free() -> None:
    first, second = event("B"), event("B")
    query = seq(first, second, event("A", "B_1")).where(first.id == second.id)
    assert one_line(query) == "SEQ(B B_2, B B_3, A B_1) WHERE B_2.id = B_3.id"


def test_an_unnamed_event_beside_a_name_that_is_its_type_gets_another() -> None:
    unnamed = event("B")
    assert one_line(seq(unnamed, event("A", "B")).where(unnamed.x == 1)) == "SEQ(B B_1, A B) WHERE B_1.x = 1"


def test_next_and_directly_give_an_event_the_name_of_its_type() -> None:
    assert one_line(seq(event("A"), event("B").next())) == "SEQ(A, NEXT B B)"
    first, second = event("B").directly(), event("B").directly()
    assert one_line(seq(event("A"), first, second)) == "SEQ(A, DIRECTLY B B_1, DIRECTLY B B_2)"


def test_a_name_that_is_given_later_is_the_same_event() -> None:
    unnamed = event("B")
    later = unnamed.named("b")
    assert one_line(seq(later, a).where(unnamed.x == 1)) == "SEQ(B b, A a) WHERE b.x = 1"
    group = unnamed.one_or_more().named("g")
    assert one_line(seq(group, a).where(unnamed.x.sum() == 1)) == "SEQ(B+ g, A a) WHERE SUM(g.x) = 1"


def test_an_event_is_mentioned_by_its_name_where_it_came_as_text() -> None:
    assert seq("A a", b).where(a.id == b.id).within(10).match(EVENTS).num_rows == 1
    assert one_line(seq("A a", b).where(expr("a.id") == b.id)) == "SEQ(A a, B b) WHERE a.id = b.id"


def test_names_that_are_no_identifiers_are_quoted() -> None:
    query = event("Break Room", "where")
    assert one_line(query.where(query["w id"] == query["w-id"])) == (
        "`Break Room` `where` WHERE `where`.`w id` = `where`.w-id"
    )


def test_members_of_a_group_of_matches_are_mentioned_by_the_group() -> None:
    unnamed = event("B")
    group = seq(unnamed, c).one_or_more().named("p")
    assert one_line(seq(a, group).where(group[unnamed].x.sum() > 1)) == (
        "SEQ(A a, (SEQ(B, C c))+ p) WHERE SUM(p.B.x) > 1"
    )
    assert str(group.c.x.sum()) == str(group["c"]["x"].sum()) == "SUM(p.c.x)"


# ---- clauses in components ----


def test_conditions_and_windows_of_a_component_are_written_inside() -> None:
    inner = seq(b, c).where(b.x == c.x, "b.y > 1").within("2 s")
    assert one_line(seq(a, inner).within("1 hour")) == (
        "SEQ(A a, (SEQ(B b, C c, b.x = c.x, b.y > 1) WITHIN 2 s)) WITHIN 1 hour"
    )
    assert one_line(seq(a, not_(inner))) == "SEQ(A a, !(SEQ(B b, C c, b.x = c.x, b.y > 1) WITHIN 2 s))"
    assert one_line(seq(a, exists(b, inner))) == (
        "SEQ(A a, EXISTS b : (SEQ(B b, C c, b.x = c.x, b.y > 1) WITHIN 2 s))"
    )


def test_of_two_windows_the_first_is_inside() -> None:
    assert one_line(seq(a, b).where(a.x == 1).within("2 s").within(10)) == (
        "(SEQ(A a, B b, a.x = 1) WITHIN 2 s) WITHIN 10"
    )


def test_filter_is_a_condition_of_the_component_and_where_one_of_the_query() -> None:
    assert one_line(a.filter(a.x == 1)) == "(A a : a.x = 1)"
    assert one_line(a.where(a.x == 1)) == "A a WHERE a.x = 1"
    assert one_line(seq(a, b.where(b.x == 1))) == one_line(seq(a, b.filter(b.x == 1)))


def test_where_may_be_called_again() -> None:
    assert one_line(seq(a, b).where(a.x == 1).where(b.x == 1)) == "SEQ(A a, B b) WHERE a.x = 1 AND b.x = 1"
    assert one_line(a.where()) == "A a"


def test_returning_may_be_called_again() -> None:
    assert one_line(a.returning(a).returning(x=a.x)) == "A a RETURN a, a.x AS x"


def test_signs_between_patterns_make_one_list() -> None:
    assert one_line(a & b & c) == "AND(A a, B b, C c)"
    assert one_line(a | b | c) == "OR(A a, B b, C c)"
    assert one_line((a & b) | c) == "OR(AND(A a, B b), C c)"
    assert one_line((a & b).filter(a.x == b.x) & c) == "AND(AND(A a, B b, a.x = b.x), C c)"
    assert one_line(all_of(a, b) & c) == "AND(AND(A a, B b), C c)"
    assert one_line(seq(a, ~b, c)) == "SEQ(A a, !B b, C c)"
    assert one_line("A a" | b) == one_line(pattern("A a") | "B b") == "OR(A a, B b)"


def test_signs_between_conditions_make_one_list() -> None:
    assert str((a.x == 1) & (a.y == 1) & (a.z == 1)) == "a.x = 1 AND a.y = 1 AND a.z = 1"
    assert str("a.x = 1" | (a.y == 1)) == "a.x = 1 OR a.y = 1"
    assert str(any_of(a.x == 1, a.y == 1)) == "a.x = 1 OR a.y = 1"
    assert str(all_of(a.x == 1, a.y == 1)) == "a.x = 1 AND a.y = 1"
    assert str(not_(a.x == 1)) == "NOT a.x = 1"


# ---- text ----


def test_text_is_taken_in_every_place() -> None:
    query = (
        seq("A a", not_("(B b : b.id = a.id)"), "SEQ(C c, D d) s")
        .where("[id]", "c.x > 1 OR d.x > 1")
        .within("2 hours")
        .returning("a", "c.x * 2 AS twice")
        .keep("first", per=["a", "c.x"], every="10 minutes")
    )
    assert str(query) == (
        "PATTERN SEQ(A a, !(B b, b.id = a.id), SEQ(C c, D d) s)\n"
        "WHERE [id] AND (c.x > 1 OR d.x > 1)\n"
        "WITHIN 2 hours\n"
        "RETURN a, c.x * 2 AS twice\n"
        "KEEP FIRST PER a, c.x EVERY 10 minutes"
    )


def test_a_checked_query_is_a_part_of_another() -> None:
    part = nestream.query("SEQ(B b, C c) WHERE b.id = c.id WITHIN 2")
    query = seq(a, part).within(10)
    assert one_line(query) == "SEQ(A a, (SEQ(B b, C c, b.id = c.id) WITHIN 2)) WITHIN 10"
    assert query.match(EVENTS).num_rows == 1


def test_a_text_gets_more_clauses_as_an_object() -> None:
    query = pattern("SEQ(A a, B b) WITHIN 10").where("a.id = b.id").limit(1)
    assert one_line(query) == "SEQ(A a, B b) WHERE a.id = b.id WITHIN 10 LIMIT 1"


def test_comments_in_text_are_left_out() -> None:
    assert one_line(a.where("a.x = 1 -- for now")) == "A a WHERE a.x = 1"


# ---- where a text is taken ----

QUERY = seq(a, b).where(a.id == b.id).within(10)
TEXT = "SEQ(A a, B b) WHERE a.id = b.id WITHIN 10"


def test_a_query_of_objects_is_the_query_of_its_text() -> None:
    assert nestream.query(QUERY).bound.tree == nestream.query(TEXT).bound.tree
    assert nestream.query(QUERY).text == str(QUERY) == nestream.query(TEXT).formatted
    assert nestream.query(QUERY).match(EVENTS).equals(nestream.query(TEXT).match(EVENTS))
    assert QUERY.explain() == nestream.query(TEXT).explain()


def test_a_checked_query_is_taken_as_it_is() -> None:
    checked = nestream.query(TEXT).with_types("A(id) B(id)")
    assert nestream.query(checked) is checked


def test_a_checked_query_takes_values_of_parameters_anew() -> None:
    query = nestream.query(a.where(a.id > param("floor")), parameters={"floor": 5})
    assert query.count(EVENTS) == 0
    assert nestream.query(query, parameters={"floor": 0}).count(EVENTS) == 1


def test_sets_take_objects_beside_text() -> None:
    named = nestream.queries({"objects": QUERY, "text": TEXT, "checked": nestream.query(TEXT)})
    assert named.count(EVENTS) == {"objects": 1, "text": 1, "checked": 1}
    assert list(nestream.queries([QUERY, TEXT])) == ["q1", "q2"]
    assert nestream.queries([TEXT]).adding("more", QUERY).count(EVENTS) == {"q1": 1, "more": 1}


def test_sets_give_objects_their_own_parameters() -> None:
    rules = {"one": a.where(a.id > param("floor")), "other": c}
    assert nestream.queries(rules, parameters={"floor": 0}).count(EVENTS) == {"one": 1, "other": 1}


def test_one_object_is_not_a_set() -> None:
    with pytest.raises(
        TypeError, match="a query set needs a folder, a mapping or a list of queries, not a Pattern"
    ):
        nestream.queries(QUERY)


def test_a_stream_takes_objects() -> None:
    assert len(list(QUERY.stream(EVENTS))) == 1
    assert len(list(nestream.query(QUERY).stream(EVENTS))) == 1


def test_rules_of_a_stream_change_to_objects() -> None:
    stream = nestream.queries({"first": TEXT}).stream()
    assert list(stream.change({"first": TEXT, "second": QUERY})) == ["second"]
    found = [match["query"] for each in EVENTS for match in stream.push(each)]
    assert sorted(found) == ["first", "second"]


def test_matching_takes_objects() -> None:
    assert nestream.matching(QUERY)(EVENTS).num_rows == 1


def test_composite_events_are_made_by_objects() -> None:
    rise = seq(a, b).within(10).returning(id=a.id).into("Pair")
    pair = event("Pair")
    found = nestream.queries({"rise": rise, "pairs": pair.where(pair.id == 1)}).count(EVENTS)
    assert found == {"rise": 2, "pairs": 2}


# ---- values ----


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (-1, "-1"),
        (1.5, "1.5"),
        (True, "TRUE"),
        ("it's", '"it\'s"'),
        ('a "b"', '"a ""b"""'),
        (Decimal("1.50"), "1.5"),
        (Decimal("1E+2"), "100"),
        (timedelta(minutes=90), "90 minutes"),
        (datetime(2026, 1, 31, 12), 'TIMESTAMP "2026-01-31 12:00:00"'),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), 'TIMESTAMP "2026-01-31 12:00:00+00:00"'),
        (
            datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(minutes=19, seconds=32))),
            'TIMESTAMP "2026-01-31 11:40:28+00:00"',
        ),
        (date(2026, 1, 31), 'TIMESTAMP "2026-01-31 00:00:00"'),
        (np.int32(7), "7"),
        (np.float64(0.5), "0.5"),
        (np.str_("x"), '"x"'),
        (UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
    ],
)
def test_python_values_are_constants(value: object, text: str) -> None:
    assert str(lit(value)) == text
    assert str(a.x == value) == f"a.x = {text}"
    nestream.query(a.where(a.x == value))


def test_python_operators_are_those_of_the_language() -> None:
    assert str(1 + a.x - 2 * a.y / 3 % 4) == "1 + a.x - 2 * a.y / 3 % 4"
    assert str((1 - a.x) * (a.y + 2)) == "(1 - a.x) * (a.y + 2)"
    assert str(-a.x) == "-a.x"
    assert str(-lit(5) + -lit(timedelta(seconds=1))) == "-5 + -1 s"
    assert str(+a.x) == "a.x"
    assert str(abs(a.x) + round(a.x) + round(a.x, 2)) == "abs(a.x) + round(a.x) + round(a.x, 2)"
    assert str(a.x**2 + 2**a.x) == "power(a.x, 2) + power(2, a.x)"
    assert str(5 < a.x) == "a.x > 5"  # noqa: SIM300
    assert str(lit(5) < a.x) == "5 < a.x"
    assert str(7 % a.x) == "7 % a.x"
    assert str(7 / a.x) == "7 / a.x"
    assert str("x" == a.x) == 'a.x = "x"'  # noqa: SIM300


def test_own_functions_are_called_by_their_names() -> None:
    nestream.function("objects_half", lambda number: number, returns="number")
    assert str(fn.objects_half(a.x)) == "objects_half(a.x)"
    assert "objects_half" in dir(fn)
    assert a.where(fn.objects_half(a.id) == 1).match(EVENTS).num_rows == 1
    del FUNCTIONS["objects_half"]


def test_windows_are_written_in_every_form() -> None:
    forms: list[tuple[Any, str]] = [
        ("1.5 hours", "90 minutes"),
        (timedelta(hours=1), "1 hour"),
        (10, "10"),
        ("100 events", "100 EVENTS"),
        ("UNBOUNDED", "UNBOUNDED"),
        ("INTERVAL '5' MINUTE", "5 minutes"),
        (param("length"), "$length"),
        ("$n EVENTS", "$n EVENTS"),
    ]
    for length, text in forms:
        assert one_line(seq(a, b).within(length)) == f"SEQ(A a, B b) WITHIN {text}"


def test_equivalences_are_written_with_same() -> None:
    query = seq(a, b).where(same("id")).within(10)
    assert query.match(EVENTS).num_rows == 1
    assert str(same(("order", "id"), {"ins-type": 3}, room=param("room"))) == (
        "[order.id] AND [ins-type = 3] AND [room = $room]"
    )


def test_a_single_event_leaves_its_name_out_with_col() -> None:
    assert event("A").where(col("id") == 1).match(EVENTS).num_rows == 1


# ---- objects as Python's ----


def test_objects_are_shown_on_one_line() -> None:
    assert repr(a) == "Event('A a')"
    assert repr(a.x + 1) == "Expr('a.x + 1')"
    assert repr(QUERY) == "Pattern('SEQ(A a, B b) WHERE a.id = b.id WITHIN 10')"
    long = repr(seq(*(event(f"Type{n}", f"v{n}") for n in range(40))))
    assert "\n" not in long
    assert len(long) <= 135
    assert repr(fn).startswith("<the functions abs, ")


def test_objects_can_be_copied_and_pickled() -> None:
    unnamed, other = event("B"), event("B")
    query = seq(unnamed, other).where(unnamed.x == other.x)
    for made in (copy.copy(query), copy.deepcopy(query), pickle.loads(pickle.dumps(query))):
        assert str(made) == str(query)
    assert str(pickle.loads(pickle.dumps(a.x > 1))) == "a.x > 1"


def test_objects_never_change() -> None:
    query = seq(a, b)
    before = str(query)
    query.where(a.x == 1).within(10).limit(1)
    assert str(query) == before
