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


def test_the_variables_that_a_query_does_not_return_are_looked_for_among_the_events() -> None:
    query = nestream.query(TEXT + " RETURN c")
    shown = drawn(query)
    (match,) = shown["matches"]
    assert (list(match["variables"]), list(match["hidden"])) == (["c"], ["a"])
    assert shown["events"][match["hidden"]["a"]]["ts"] == 1
    assert [(one["from"], one["to"]) for one in match["intervals"]] == [(1, 4)]
    (alone,) = timeline(query, query.match(EVENTS)).json()["matches"]
    assert (list(alone["variables"]), alone["hidden"], alone["intervals"]) == (["c"], {}, [])


def test_returned_values_show_the_events_behind_them() -> None:
    query = nestream.query(TEXT + " RETURN c.ts - a.ts AS gap")
    found = query.show(EVENTS)
    assert "gap" in found.table.column_names
    (match,) = found.timeline.json()["matches"]
    assert list(match["variables"]) == ["a", "c"]
    assert len(match["told"]) == 1


def test_returned_values_show_the_span() -> None:
    query = nestream.query(TEXT + " RETURN c.ts - a.ts AS gap")
    shown = timeline(query, query.match(EVENTS))
    assert [(m["events"], m["start"], m["end"]) for m in shown.json()["matches"]] == [([], 1, 4)]
    assert parsed(shown.svg()) is not None


def test_the_events_that_a_negation_looked_at_are_shown_with_a_sentence_and_their_numbers() -> None:
    shown = drawn(nestream.query(TEXT))
    (match,) = shown["matches"]
    (interval,) = match["intervals"]
    assert interval["text"] == (
        "B at 3 (#2) has another id (2, not 1), so no B with id 1 between A at 1 and C at 4"
    )
    assert match["told"] == [interval["text"]]
    assert [shown["events"][place]["number"] for place in interval["events"]] == [2]
    assert {event["label"] for event in shown["events"]} >= {"A at 1 (#0)", "B at 3 (#2)"}


def test_a_group_that_is_not_returned_is_drawn_as_dots_under_a_bracket_and_cut_where_it_is_long() -> None:
    query = nestream.query("SEQ(A a, B+ b, C c) WITHIN 1000 RETURN a, c")
    events = [
        {"ts": 0, "type": "A"},
        *({"ts": n, "type": "B"} for n in range(1, 275)),
        {"ts": 300, "type": "C"},
    ]
    found = timeline(query, query.match(events), events)
    (match,) = found.json()["matches"]
    assert len(match["groups"]["b"]) == 40
    drawn_events = [found.json()["events"][place]["ts"] for place in match["groups"]["b"]]
    assert (drawn_events[0], drawn_events[-1]) == (1, 274)
    assert match["counts"]["b"]["members"] == 274
    assert match["told"] == [
        "274 B events between A at 0 and C at 300; it needs at least 1 (and 234 more events)"
    ]
    texts = [text.text for text in parsed(found.svg()).iter(f"{SVG}text")]
    assert "b and 234 more" in texts


def test_a_group_of_matches_is_drawn_by_its_variables() -> None:
    query = nestream.query("SEQ(A a, (SEQ(B b, D d))+ p, C c) WITHIN 1000")
    events = [{"ts": n, "type": kind} for n, kind in enumerate("ABDC")]
    (match,) = drawn(query, events)["matches"]
    assert match["groups"].keys() == {"p.b", "p.d"}
    assert match["counts"]["p"]["text"] == (
        "1 match of SEQ(B b, D d) between A at 0 and C at 3; it needs at least 1"
    )


def test_a_match_that_is_not_among_the_events_is_drawn_without_what_lies_between() -> None:
    query = nestream.query(TEXT)
    shown = timeline(query, query.match(EVENTS), EVENTS[1:])
    (match,) = shown.json()["matches"]
    assert [(one["from"], one["to"], one["text"]) for one in match["intervals"]] == [(1, 4, None)]
    assert "not among the events" in shown.notes[0]
    assert "not among the events" in shown.svg()
    assert "not among the events" in shown.text()


def test_an_interval_with_too_many_events_to_look_through_says_so() -> None:
    count = 30_000
    kinds = ["A", "C", *["B", "D"] * (count // 2)]
    events = pa.table({"ts": range(count + 2), "type": kinds, "id": range(count + 2)})
    query = nestream.query("SEQ(A a, C c, !(B b, b.id = a.id)) WITHIN UNBOUNDED")
    shown = timeline(query, query.match(events), events)
    (match,) = shown.json()["matches"]
    assert match["told"] == ["no B b after C at 1; there are too many events to show"]
    assert match["intervals"][0]["events"] == []


def test_an_interval_that_reaches_far_beyond_the_events_is_cut_off() -> None:
    query = nestream.query("SEQ(A a, C c, !B b) WITHIN 10000")
    events = [{"ts": 100, "type": "A"}, {"ts": 110, "type": "C"}]
    root = parsed(timeline(query, query.match(events), events).svg())
    first, last = (float(circle.get("cx") or 0) for circle in root.findall(f"{SVG}circle")[:2])
    assert last - first > 400


def test_rows_with_the_events_that_they_were_found_in_have_numbers_from_any_first_one() -> None:
    query = nestream.query(TEXT)
    rows = [
        {
            "match_start": 1,
            "match_end": 4,
            "events": [
                {"variable": "a", "event": {"ts": 1, "type": "A", "id": 1}},
                {"variable": "c", "event": {"ts": 4, "type": "C", "id": 1}},
            ],
        }
    ]
    shown = timeline_of_rows(query, rows, EVENTS, first=1000).json()
    assert [event["number"] for event in shown["events"]] == [1000, 1003, 1002]
    assert "B at 3 (#1002) has another id" in shown["matches"][0]["told"][0]
    unknown = timeline_of_rows(query, rows).json()
    assert [event["number"] for event in unknown["events"]] == [None, None]


def test_matches_that_came_through_json_are_found_among_events_of_a_clock() -> None:
    times = pa.array([0, 30_000_000_001, 60_000_000_000], pa.timestamp("ns", "UTC"))
    events = pa.table({"ts": times, "type": ["A", "B", "C"], "due": times, "price": pa.array(["1.50"] * 3)})
    query = nestream.query("SEQ(A a, !(B b, b.due < a.due), C c) WITHIN 1 hour")
    rows = [
        {
            "match_start": "1970-01-01T00:00:00+00:00",
            "match_end": "1970-01-01T00:01:00Z",
            "events": [
                {"variable": name, "event": {"ts": at, "type": kind, "due": at, "price": "1.50"}}
                for name, kind, at in (
                    ("a", "A", "1970-01-01T00:00:00Z"),
                    ("c", "C", "1970-01-01T00:01:00.000Z"),
                )
            ],
        }
    ]
    shown = timeline_of_rows(query, rows, events).json()
    assert [event["number"] for event in shown["events"]] == [0, 2, 1]
    assert shown["matches"][0]["told"][0].startswith("B at 00:00:30.000000001 (#1) does not fit")


def test_times_are_in_the_zone_of_the_events_everywhere() -> None:
    times = pa.array([0, 1_800_000, 3_600_000], pa.timestamp("ms", "Asia/Kolkata"))
    events = pa.table({"ts": times, "type": ["A", "B", "C"], "id": [1, 2, 1]})
    query = nestream.query("SEQ(A a, !(B b, b.id = a.id), C c) WITHIN 2 hours")
    shown = timeline(query, query.match(events), events)
    assert shown.json()["matches"][0]["start"] == "1970-01-01T05:30:00+05:30"
    assert "B at 06:00 (#1)" in shown.json()["matches"][0]["told"][0]
    texts = [text.text for text in parsed(shown.svg()).iter(f"{SVG}text")]
    assert "06:00" in texts


def test_a_timeline_as_text_has_lanes_events_and_sentences() -> None:
    query = nestream.query(TEXT)
    text = query.show(EVENTS).text(72)
    assert text.split("\n") == [
        "1 match",
        "",
        "match 1, 1 to 4",
        "",
        "  A  a──────────────────────────────────────────────────────────────────",
        "  B  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░○░░░░░░░░░░░░░░░░░░░░░░",
        "  C  ──────────────────────────────────────────────────────────────────c",
        "     1                     2                     3                     4",
        "",
        "  a  #0  1  A  id=1",
        "  ○  #2  3  B  id=2",
        "  c  #3  4  C  id=1",
        "  B at 3 (#2) has another id (2, not 1), so no B with id 1 between A",
        "    at 1 and C at 4",
    ]
    assert max(map(len, text.split("\n"))) <= 72


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
    assert len(root.findall(f"{SVG}circle[@class='looked']")) == 1
    assert len(root.findall(f"{SVG}circle")) == 5  # four events, and the mark of the sentence


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
