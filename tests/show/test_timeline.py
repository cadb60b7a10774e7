"""Timelines: lanes, events, matches and where their negations look; bounded, escaped, and drawn."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.show import timeline, timeline_of_rows
from nestream.show.moments import Moments, tick_text, ticks

SVG = "{http://www.w3.org/2000/svg}"
TEXT = "SEQ(A a, !(B b, b.id = a.id), C c, a.id = c.id) WITHIN 10"
EVENTS = [
    {"ts": 1, "type": "A", "id": 1},
    {"ts": 2, "type": "A", "id": 2},
    {"ts": 3, "type": "B", "id": 2},
    {"ts": 4, "type": "C", "id": 1},
    {"ts": 5, "type": "C", "id": 2},
    {"ts": 90, "type": "A", "id": 3},
]


def drawn(query: nestream.Query, events: Any = EVENTS, **options: Any) -> dict[str, Any]:
    shown = timeline(query, query.match(events), events, **options).json()
    assert json.loads(json.dumps(shown)) == shown
    return shown


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_lanes_are_the_types_of_the_query_and_events_are_known_by_their_numbers() -> None:
    shown = drawn(nestream.query(TEXT))
    assert shown["lanes"] == ["A", "B", "C"]
    (match,) = shown["matches"]
    assert match["variables"].keys() == {"a", "c"}
    events = {event["id"]: event for event in shown["events"]}
    assert [(events[i]["lane"], events[i]["ts"]) for i in match["events"]] == [("A", 1), ("C", 4)]
    assert events[match["variables"]["a"]]["attributes"] == {"id": 1}
    assert (match["start"], match["end"]) == (1, 4)


def test_events_around_the_matches_are_shown_and_those_far_away_are_not() -> None:
    query = nestream.query(TEXT)
    assert sorted(event["ts"] for event in drawn(query)["events"]) == [1, 2, 3, 4]
    assert len(timeline(query, query.match(EVENTS)).json()["events"]) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, [{"from": 1, "to": 4, "open": [True, True]}]),
        ("SEQ(!B b, A a, C c) WITHIN 10", [{"from": -6, "to": 1, "open": [False, True]}]),
        ("SEQ(A a, C c, !B b) WITHIN 10", [{"from": 4, "to": 11, "open": [True, False]}]),
        ("EVENT SEQ(A a, C c, !(B b)) WITHIN 10", [{"from": 4, "to": 11, "open": [True, True]}]),
        ("AND(A a, C c, !(B b, b.id = a.id)) WITHIN 10", [{"from": -6, "to": 4, "open": [False, False]}]),
        ("SEQ(A a, C c, !B b) WITHIN UNBOUNDED", [{"from": 4, "to": None, "open": [True, True]}]),
        ("SEQ(A a, C c, !B b) WITHIN 9 EVENTS", [{"from": 4, "to": None, "open": [True, False]}]),
        ("SEQ(A a, C c) WITHIN 10", []),
    ],
)
def test_intervals_are_those_of_the_semantics(text: str, expected: list[dict[str, Any]]) -> None:
    events = [EVENTS[0], EVENTS[3]]
    (match,) = drawn(nestream.query(text), events)["matches"]
    assert [{k: i[k] for k in ("from", "to", "open")} for i in match["intervals"]] == expected


def test_an_interval_names_its_negation_and_the_lanes_that_it_is_about() -> None:
    query = nestream.query("SEQ(A a, !SEQ(B b, !D d, E e, b.id = a.id), C c) WITHIN 10")
    (match,) = drawn(query, [EVENTS[0], EVENTS[3]])["matches"]
    (interval,) = match["intervals"]
    assert interval["negation"] == "!SEQ(B b, !D d, E e, b.id = a.id)"
    assert interval["lanes"] == ["B", "E"]


def test_only_the_branch_that_was_taken_has_intervals() -> None:
    query = nestream.query("OR(SEQ(A a, !B b, C c), SEQ(D d, !E e, C c2)) WITHIN 10")
    (match,) = drawn(query, [EVENTS[0], EVENTS[3]])["matches"]
    assert [interval["negation"] for interval in match["intervals"]] == ["!B b"]


def test_a_match_whose_variables_are_dropped_has_no_intervals_but_its_events() -> None:
    (match,) = drawn(nestream.query(TEXT + " RETURN c"))["matches"]
    assert (list(match["variables"]), match["intervals"]) == (["c"], [])


def test_returned_values_show_the_span() -> None:
    query = nestream.query(TEXT + " RETURN c.ts - a.ts AS gap")
    shown = timeline(query, query.match(EVENTS))
    assert [(m["events"], m["start"], m["end"]) for m in shown.json()["matches"]] == [([], 1, 4)]
    assert parsed(shown.svg()) is not None


def test_two_events_that_look_alike_in_one_match_are_two() -> None:
    query = nestream.query("AND(A a, A b) WITHIN 10 LIMIT 1")
    shown = drawn(query, [{"ts": 1, "type": "A", "id": 1}, {"ts": 1, "type": "A", "id": 1}])
    assert len(shown["events"]) == 2
    assert len(set(shown["matches"][0]["variables"].values())) == 2


def test_what_is_too_much_is_left_out_and_counted() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 1000")
    events = [{"ts": ts, "type": "AB"[ts % 2], "id": ts} for ts in range(40)]
    total = query.count(events)
    shown = drawn(query, events, most_matches=3, most_events=3)
    assert (len(shown["matches"]), shown["left_out"]["matches"]) == (3, total - 3)
    assert (len(shown["events"]), shown["left_out"]["events"]) == (3, 1)  # they end at 1 and 3
    assert f"showing 3 of {total} matches" in timeline(query, query.match(events), most_matches=3).svg()


def test_rows_of_a_set_have_the_timeline_of_their_query() -> None:
    texts = {"one": TEXT, "two": "SEQ(B b, C c) WITHIN 10"}
    rules = nestream.queries(texts)
    rows = rules.match(EVENTS).to_pylist()
    shown = timeline_of_rows({name: nestream.query(text) for name, text in texts.items()}, rows).json()
    assert [match["query"] for match in shown["matches"]] == [row["query"] for row in rows]
    assert [len(match["intervals"]) for match in shown["matches"]] == [
        1 if row["query"] == "one" else 0 for row in rows
    ]
    own = [row for row in rows if row["query"] == "one"]
    query = nestream.query(TEXT)
    alone = timeline_of_rows(query, own).json()
    assert (
        alone["matches"][0]["intervals"]
        == timeline(query, query.match(EVENTS)).json()["matches"][0]["intervals"]
    )


def test_times_as_text_are_times() -> None:
    rows = [
        {
            "query": "q",
            "match_start": "2026-01-05T08:00:00Z",
            "match_end": "2026-01-05T09:00:00Z",
            "events": [
                {"variable": "a", "event": {"ts": "2026-01-05T08:00:00Z", "type": "A"}},
                {"variable": "c", "event": {"ts": "2026-01-05T09:00:00Z", "type": "C"}},
            ],
        }
    ]
    shown = timeline_of_rows(nestream.query("SEQ(A a, C c, !B b) WITHIN 2 hours"), rows).json()
    assert shown["matches"][0]["intervals"][0]["to"] == "2026-01-05T10:00:00Z"


@pytest.mark.parametrize(
    "rows",
    [
        [{}],
        [{"events": None}],
        [{"events": [1, {"event": 3}]}],
        ["text"],
        [{"match_start": "yesterday", "events": [{"variable": "a", "event": {"ts": "soon", "type": "A"}}]}],
        [{"match_start": 1, "match_end": 2, "events": [{"variable": {}, "event": {"ts": 1, "type": []}}]}],
    ],
)
def test_rows_of_another_form_do_no_harm(rows: list[Any]) -> None:
    shown = timeline_of_rows(nestream.query(TEXT), rows)
    assert parsed(shown.svg()).tag == f"{SVG}svg"


def test_a_timeline_of_a_clock_is_in_its_time() -> None:
    events = pa.table(
        {
            "at": pa.array([0, 60_000], pa.timestamp("ms", "UTC")),
            "kind": pa.array(["A", "C"]).dictionary_encode(),
        }
    )
    query = nestream.query("SEQ(A a, !B b, C c) WITHIN 1 hour")
    matches = query.match(events, time="at", type="kind")
    (match,) = timeline(query, matches, events, time="at", type="kind").json()["matches"]
    assert match["intervals"][0]["from"] == "1970-01-01T00:00:00Z"
    assert match["end"] == "1970-01-01T00:01:00Z"


def test_the_drawing_has_a_title_a_lane_for_each_type_and_a_line_for_each_match() -> None:
    query = nestream.query(TEXT)
    root = parsed(timeline(query, query.match(EVENTS), EVENTS).svg())
    assert root.get("role") == "img"
    assert "1 match over A, B, C" in (root.get("aria-label") or "")
    assert root.findtext(f"{SVG}title") == "Timeline of matches"
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [lane for lane in ("A", "B", "C") if lane in texts] == ["A", "B", "C"]
    assert len(root.findall(f"{SVG}path")) == 1
    assert len(root.findall(f"{SVG}rect")) == 1
    assert len(root.findall(f"{SVG}circle")) == 4


def test_hostile_text_stays_text_and_nothing_is_loaded() -> None:
    hostile = '"><script>alert(1)</script>\x00\u202e'
    kind = "<img src=x onerror=alert(1)>"
    query = nestream.query(f"SEQ(A a, `{kind}` b) WITHIN 10")
    events = [{"ts": 1, "type": "A", "x": hostile}, {"ts": 2, "type": kind, "x": hostile}]
    svg = timeline(query, query.match(events), events).svg()
    root = parsed(svg)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "line", "text", "rect", "circle", "path"}
    assert not any(name.startswith("on") or "href" in name for e in root.iter() for name in e.attrib)
    assert "url(" not in svg
    assert any(hostile[:20] in (title.text or "") for title in root.iter(f"{SVG}title"))


def test_no_matches_are_drawn_as_none() -> None:
    query = nestream.query(TEXT)
    assert "0 matches" in timeline(query, query.match(EVENTS[:1]), EVENTS).svg()


def test_ticks_are_round_and_few() -> None:
    number, clock = Moments(False), Moments(True)
    assert ticks(0, 97, number) == [0, 20, 40, 60, 80]
    assert ticks(5, 5, number) == [5]
    hour = 3_600_000_000
    assert ticks(hour // 2, 5 * hour, clock) == [hour, 2 * hour, 3 * hour, 4 * hour, 5 * hour]
    assert tick_text(hour, 0, 5 * hour, clock) == "01:00"
    assert tick_text(24 * hour, 0, 50 * hour, clock) == "1970-01-02"
    assert len(ticks(-(10**17), 10**17, number)) <= 8
