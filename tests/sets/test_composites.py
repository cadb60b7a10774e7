"""Composite events: the matches of a query with INTO are events for the other queries of its set."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import nestream
from tests.sets.composites import by_definition, random_events, random_set

EVENTS = [
    {"ts": 1, "type": "Recycle", "id": 7},
    {"ts": 2, "type": "Recycle", "id": 8},
    {"ts": 3, "type": "Washing", "id": 8},
    {"ts": 4, "type": "Operating", "id": 7},
    {"ts": 5, "type": "Operating", "id": 8},
    {"ts": 6, "type": "Operating", "id": 7},
    {"ts": 7, "type": "Washing", "id": 7},
]
VIOLATION = (
    "SEQ(Recycle r, !(Washing w, w.id = r.id), Operating o, r.id = o.id) WITHIN 60 "
    "RETURN o.id AS id, o.ts - r.ts AS minutes INTO Violation"
)


def found(
    texts: dict[str, str], events: object = EVENTS, order: str = "time"
) -> dict[str, list[dict[str, object]]]:
    each = nestream.queries(texts).match_each(events, order=order)
    return {name: table.to_pylist() for name, table in each.items()}


def test_a_composite_event_happens_when_its_match_ends_and_has_its_start_and_values() -> None:
    top = (
        "SEQ(Violation v, Washing w, w.id = v.id) WITHIN 60 "
        "RETURN v.ts AS at, v.start AS start, v.minutes AS m"
    )
    assert [(m["at"], m["start"], m["m"]) for m in found({"top": top, "made": VIOLATION})["top"]] == [
        (4, 1, 3),
        (6, 1, 5),
    ]


def test_the_order_of_intervals_is_a_predicate() -> None:
    during = "SEQ(Washing w, Violation v) WITHIN 60"
    before = "SEQ(Washing w, Violation v, w.ts < v.start) WITHIN 60"
    matches = found({"made": VIOLATION, "during": during, "before": before})
    assert len(matches["during"]) == 2
    assert matches["before"] == []


def test_events_of_the_input_may_have_a_composite_type() -> None:
    events = [*EVENTS, {"ts": 8, "type": "Violation", "id": 9, "minutes": 99}]
    top = "Violation v RETURN v.minutes AS m, v.start AS start"
    assert [(m["m"], m["start"]) for m in found({"top": top, "made": VIOLATION}, events)["top"]] == [
        (3, 1),
        (5, 1),
        (99, None),
    ]


def test_at_equal_times_a_composite_event_comes_after_the_others() -> None:
    made = "A a RETURN a.id AS id INTO M"
    texts = {"made": made, "after": "SEQ(B b, M m) WITHIN 5", "before": "SEQ(M m, B b) WITHIN 5"}
    events = [{"ts": 1, "type": "A", "id": 1}, {"ts": 1, "type": "B", "id": 1}]
    matches = found(texts, events, order="arrival")
    assert (len(matches["after"]), len(matches["before"])) == (1, 0)
    stream = nestream.queries(texts).stream(order="arrival")
    pushed = [match["query"] for event in events for match in stream.push(event)]
    assert pushed + [match["query"] for match in stream.finish()] == ["made", "after"]


def test_any_and_windows_of_events_see_the_composite_types_that_the_query_names_alone() -> None:
    made = "A a RETURN a.id AS id INTO M"
    events = [{"ts": time, "type": kind, "id": 1} for time, kind in enumerate("ABAB")]
    matches = found({"made": made, "any": "ANY x", "counted": "SEQ(B b, B c) WITHIN 3 EVENTS"}, events)
    assert (len(matches["any"]), len(matches["counted"])) == (4, 1)
    named = "SEQ(B b, B c, !M m) WITHIN 3 EVENTS"
    assert found({"made": made, "named": named}, events)["named"] == []


def test_a_cycle_is_reported_with_its_queries() -> None:
    texts = {
        "fine": "X x",
        "a": "SEQ(X x, Y y) WITHIN 5 RETURN x.id AS id INTO Z",
        "b": "SEQ(Z z, Y y) WITHIN 5 RETURN z.id AS id INTO W",
        "c": "SEQ(W w, Y y) WITHIN 5 RETURN w.id AS id INTO X",
    }
    with pytest.raises(
        nestream.QueryError, match="query a makes Z, query b makes W, query c makes X"
    ) as said:
        nestream.queries(texts)
    assert said.value.diagnostics[0].code == "cyclic-types"
    with pytest.raises(nestream.QueryError, match="query a makes X, which query a reads"):
        nestream.queries({"a": "X x RETURN x.id AS id INTO X"})
    del texts["a"]
    with pytest.raises(nestream.QueryError, match="depend on its own matches"):
        nestream.queries(texts).adding("a", "SEQ(X x, Y y) WITHIN 5 RETURN x.id AS id INTO Z")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SEQ(A a, B b) WITHIN 5 RETURN a INTO V", "into-without-value"),
        ("SEQ(A a, B+ g) WITHIN 5 RETURN g INTO V", "into-without-value"),
        ("SEQ(A a, B b) WITHIN 5 RETURN a.x AS start INTO V", "reserved-attribute"),
        ("SEQ(A a, B b) WITHIN 5 RETURN a.x AS ts INTO V", "reserved-attribute"),
        ("SEQ(A a, B b) WITHIN 5 RETURN a.x AS type INTO V", "reserved-attribute"),
        ("SEQ(A a, B b) WITHIN 5 RETURN a.x AS x INTO V LIMIT 3", "limited-into"),
        ("SEQ(A a, B b) WITHIN 5 INTO V", "bad-into"),
        ("SEQ(A a, B b) WITHIN 5 RETURN INTO V", "bad-into"),
        ("SEQ(A a, B b) WITHIN 5 RETURN a.x AS x INTO", "bad-into"),
    ],
)
def test_an_into_that_makes_no_events_is_reported(text: str, code: str) -> None:
    with pytest.raises(nestream.QueryError) as said:
        nestream.query(text)
    assert [problem.code for problem in said.value.diagnostics] == [code]


def test_into_is_a_name_everywhere_else() -> None:
    text = "SEQ(A into, INTO b) WITHIN 5 RETURN into.x AS into, into.into AS y INTO into"
    printed = nestream.query(text).formatted
    assert printed.splitlines()[-1] == "RETURN into.x AS into, into.into AS y INTO into"
    assert nestream.query(printed).formatted == printed
    assert nestream.query("A a RETURN a.x IS NULL AS no INTO V").plan.output.into == "V"


def test_a_query_alone_gives_its_matches() -> None:
    assert nestream.query(VIOLATION).count(EVENTS) == 2


def test_an_attribute_of_another_kind_than_the_column_is_refused() -> None:
    texts = {"made": "Washing w RETURN w.type AS id INTO M", "top": "SEQ(M m, Washing w) WITHIN 5"}
    with pytest.raises(nestream.EventError, match="query made makes M events with `id` in strings"):
        nestream.queries(texts).match(EVENTS)
    texts["made"] = "Washing w RETURN w.id AS at INTO M"
    renamed = [{"at": event["ts"], "type": event["type"], "id": event["id"]} for event in EVENTS]
    with pytest.raises(nestream.EventError, match="returns `at`, but that column is the time"):
        nestream.queries(texts).match(renamed, time="at")


def test_an_unknown_attribute_of_a_composite_event_is_reported_with_those_it_has() -> None:
    with pytest.raises(nestream.QueryError, match="Violation events have no attribute `minuts`"):
        found({"made": VIOLATION, "top": "(Violation v : v.minuts > 3)"})


@pytest.mark.filterwarnings("error")
def test_a_composite_type_is_not_reported_as_unseen() -> None:
    texts = {"made": VIOLATION, "top": "Violation v RETURN v.id AS id"}
    near = [*EVENTS, {"ts": 9, "type": "Violations", "id": 7}]
    assert len(found(texts, near)["top"]) == 2
    assert len(list(nestream.queries(texts).stream(near))) == 4


def test_as_of_is_refused_where_a_query_with_readers_is_pending() -> None:
    waiting = "SEQ(Recycle r, !(Washing w, w.id = r.id)) WITHIN 3 RETURN r.id AS id INTO Dirty"
    chosen = nestream.queries({"made": waiting, "top": "Dirty d RETURN d.id AS id"})
    with pytest.raises(ValueError, match="the query made waits for the end of its window"):
        chosen.match(EVENTS, as_of=5)
    prompt = nestream.queries({"made": VIOLATION, "top": "Violation v RETURN v.id AS id"})
    assert prompt.match(EVENTS, as_of=5).num_rows == 2


def test_a_stream_whose_columns_grow_keeps_its_layers() -> None:
    texts = {"made": VIOLATION, "top": "SEQ(Violation v, Violation u, Washing w, u.id = w.id) WITHIN 60"}
    grown = [*EVENTS[:5], *({**event, "room": "R1"} for event in EVENTS[5:])]
    chosen = nestream.queries(texts)
    stream = chosen.stream()
    pushed = [match for event in grown for match in stream.push(event)] + stream.finish()
    assert [(match["query"], match["match_end"]) for match in pushed] == [
        ("made", 4),
        ("made", 6),
        ("top", 7),
    ]
    assert pushed[-1]["events"][-1]["event"]["room"] == "R1"


def test_explain_shows_the_layers() -> None:
    chosen = nestream.queries({"top": "SEQ(Violation v, Washing w) WITHIN 5", "made": VIOLATION})
    assert chosen.explain().splitlines()[1:3] == ["layer 0: made", "layer 1 over Violation: top"]
    assert chosen.explain("json")["layers"] == [
        {"reads": [], "queries": ["made"]},
        {"reads": ["Violation"], "queries": ["top"]},
    ]


@pytest.mark.filterwarnings("ignore::nestream.model.unseen.UnseenTypeWarning")
@pytest.mark.parametrize("seed", range(24))
def test_random_sets_mean_their_queries_one_after_the_other(seed: int) -> None:
    random = Random(seed)
    texts, order = random_set(random, random.choice((2, 2, 3))), random.choice(("time", "arrival"))
    events = random_events(random, random.randint(0, 30))
    expected = by_definition(texts, events, order)
    chosen = nestream.queries(texts)
    each = chosen.match_each(events, order=order)
    assert {name: table.to_pylist() for name, table in each.items()} == {
        name: table.to_pylist() for name, table in expected.items()
    }
    assert chosen.count(events, order=order) == {name: table.num_rows for name, table in expected.items()}
    assert _streamed(chosen, events, order, random) == _rows(chosen.match(events, order=order))


def _streamed(chosen: nestream.Queries, events: pa.Table, order: str, random: Random) -> list[str]:
    """The matches of a stream that takes the events one by one and in batches, and is saved now and then."""
    stream = chosen.stream(order=order)
    tables, first = [], 0
    while first < events.num_rows:
        part = events.slice(first, random.choice((1, 1, 2, 5)))
        first += part.num_rows
        if random.random() < 0.5:
            tables += [match for event in part.to_pylist() for match in stream.push(event)]
        else:
            tables += stream.push_batch(part).to_pylist()
        if random.random() < 0.2:
            stream = chosen.stream(order=order).restore(stream.save())
    return sorted(map(repr, tables + stream.finish()))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
