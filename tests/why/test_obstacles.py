"""What stops events, kind by kind: what is told, of which events, and where in the query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream.why import Why
from tests.corpus.notation import read_history

CLEAN = """PATTERN SEQ(Recycle r,
            ! SEQ(Disinfection d, !(Sharpening s, s.id = d.id), Checking c, d.id = c.id = r.id),
            Operating o, r.id = o.id)
WITHIN 60"""


STEPS = {"r": "Recycle", "d": "Disinfection", "s": "Sharpening", "c": "Checking", "o": "Operating"}


def ask(text: str, events: str, picked: Any, **options: Any) -> Why:
    letters = STEPS if text == CLEAN else {}
    return nestream.query(text).why(read_history(events, letters).table(), picked, **options)


def kinds(why: Why) -> list[str]:
    return [obstacle.kind for obstacle in why.obstacles]


def said(why: Why, text: str) -> list[str]:
    """The pieces of the query that the obstacles point at."""
    return [text[told.span.start : told.span.end] for told in why.obstacles if told.span is not None]


def test_a_predicate_tells_the_values_that_were_compared() -> None:
    text = "SEQ(A a, B b, a.id = b.id, b.x > 3) WITHIN 10"
    why = ask(text, "a1(id=7, x=1) b2(id=8, x=2)", [0, 1])
    assert [told.text for told in why.obstacles] == ["a.id = b.id: 7 ≠ 8", "b.x > 3: 2 ≤ 3"]
    assert [told.events for told in why.obstacles] == [(0, 1), (1,)]
    assert said(why, text) == ["a.id = b.id", "b.x > 3"]


def test_a_chain_of_equalities_tells_which_two_differ() -> None:
    why = ask("SEQ(A a, B b, C c, a.id = b.id = c.id) WITHIN 10", "a1(id=7) b2(id=7) c3(id=8)", [0, 1, 2])
    assert why.obstacles[0].text == "a.id = b.id = c.id: b.id 7 ≠ c.id 8"


def test_a_comparison_with_null_says_that_it_does_not_hold() -> None:
    why = ask("SEQ(A a, B b, a.id = b.id) WITHIN 10", "a1(id=7) b2(id=null)", [0, 1])
    assert why.obstacles[0].text == "a.id = b.id: 7 beside NULL, and a comparison with NULL does not hold"


def test_order_names_both_events_and_equal_times_are_told_as_such() -> None:
    text = "SEQ(A a, B b) WITHIN 10"
    assert ask(text, "b1 a2", [0, 1]).obstacles[0].text == (
        "a must come before b: #1 (A at 2) is after #0 (B at 1)"
    )
    why = ask(text, "a1 b1", [0, 1])
    assert kinds(why) == ["order"]
    assert "both are at 1" in why.obstacles[0].text
    assert ask(text, "a1 b1", [0, 1], order="arrival").matched


def test_a_window_tells_its_length_and_that_of_the_events() -> None:
    why = ask("SEQ(A a, B b) WITHIN 10", "a1 b12", [0, 1])
    assert kinds(why) == ["window"]
    assert why.obstacles[0].text.endswith("it is 11; the window is 10")
    assert said(why, "SEQ(A a, B b) WITHIN 10") == ["WITHIN 10"]
    assert ask("SEQ(A a, B b) WITHIN 10", "a1 b11", [0, 1]).matched
    assert kinds(ask("EVENT SEQ(A a, B b) WITHIN 10", "a1 b11", [0, 1])) == ["window"]


def test_a_window_of_events_counts_events() -> None:
    why = ask("SEQ(A a, B b) WITHIN 3 EVENTS", "a1 c2 c3 b4", [0, 3])
    assert kinds(why) == ["window"]
    assert "it is 4 events" in why.obstacles[0].text


def test_a_negation_tells_the_very_event_and_the_interval() -> None:
    text = "SEQ(A a, !(B b, b.id = a.id), C c) WITHIN 10"
    why = ask(text, "a1(id=1) b2(id=2) b3(id=1) c4(id=1)", [0, 3])
    (told,) = why.obstacles
    assert (told.kind, told.events, told.variables) == ("negation", (2,), ("b",))
    assert told.more["interval"] == {"from": 1, "to": 4, "open": [True, True]}
    assert said(why, text) == ["!(B b, b.id = a.id)"]


def test_a_trailing_negation_looks_a_window_on() -> None:
    text = "SEQ(A a, B b, !C c) WITHIN 10"
    (told,) = ask(text, "a1 b2 c11", [0, 1]).obstacles
    assert told.more["interval"] == {"from": 2, "to": 11, "open": [True, False]}
    assert ask(text, "a1 b2 c12", [0, 1]).matched


def test_a_nested_negation_tells_the_whole_inner_match_and_what_did_not_save_it() -> None:
    events = "r1(id=7) d2(id=7) s3(id=8) c4(id=7) o5(id=7)"
    (told,) = ask(CLEAN, events, [0, 4]).obstacles
    assert told.more["witness"] == {"d": 1, "c": 3}
    (inner,) = told.more["inner"]
    assert inner["interval"] == {"from": 2, "to": 4, "open": [True, True]}
    assert inner["text"] == (
        "Sharpening at 3 (#2) has another id (8, not 7), so no Sharpening with id 7"
        " between Disinfection at 2 (#1) and Checking at 4 (#3)"
    )
    assert ask(CLEAN, events.replace("id=8", "id=7"), [0, 4]).matched


def test_an_inner_negation_that_is_itself_stopped_is_told_recursively() -> None:
    text = "SEQ(A a, !SEQ(B b, !SEQ(C c, !D d, C c2), B b2), E e) WITHIN 20"
    assert ask(text, "a1 b2 c3 c5 b6 e7", [0, 5]).matched
    (told,) = ask(text, "a1 b2 c3 d4 c5 b6 e7", [0, 6]).obstacles
    (inner,) = told.more["inner"]
    assert inner["stopped"]["witness"] == {"d": 3}
    assert (
        "C at 3 (#2) and C at 5 (#4) would do, but between C at 3 (#2) and C at 5 (#4) there is D at 4 (#3)"
    ) in told.text


def test_all_obstacles_are_told_at_once() -> None:
    events = "r1(id=7) d2(id=7) c3(id=7) o90(id=9)"
    assert kinds(ask(CLEAN, events, [0, 3])) == ["predicate", "window", "negation"]


def test_events_of_other_types_are_told_by_what_the_query_does_with_them() -> None:
    text = "SEQ(A a, !B b, C c) WITHIN 10"
    events = "a1 b2 z3 c4 c5"
    assert "only negates (b)" in ask(text, events, [1]).obstacles[0].text
    assert "does not name" in ask(text, events, [2]).obstacles[0].text
    assert "no variable left" in ask(text, events, [0, 3, 4]).obstacles[0].text
    assert kinds(ask(text, events, {"a": 3})) == ["type"]


def test_fewer_events_are_asked_about_as_part_of_a_match() -> None:
    text = "SEQ(A a, B b, C c, a.id = b.id = c.id) WITHIN 10"
    why = ask(text, "a1(id=1) b2(id=1) c3(id=1)", [1])
    assert why.json()["match"] == {"a": 0, "b": 1, "c": 2}
    assert why.verdict == "part of a match"
    assert ask(text, "a1(id=1) b2(id=1) c3(id=1)", [0, 1, 2]).verdict == "a match"


def test_a_missing_event_is_told_with_the_candidates_and_what_stops_the_nearest() -> None:
    text = "SEQ(A a, B b, a.id = b.id) WITHIN 10"
    (told,) = ask(text, "a1(id=1) b2(id=2) b9(id=3)", [0]).obstacles
    assert (told.kind, told.variables, told.events) == ("missing", ("b",), (1,))
    assert told.more["candidates"] == 2
    assert "a.id = b.id: 1 ≠ 2" in told.text
    (told,) = ask(text, "a1(id=1) b30(id=1)", [0]).obstacles
    assert "no B event in reach; the nearest is #1 at 30" in told.text
    (told,) = ask(text, "a1(id=1) c3(id=1)", [0]).obstacles
    assert "none in all the events" in told.text


def test_missing_events_that_do_not_go_together_are_told_so() -> None:
    text = "SEQ(A a, B b, C c, b.id = c.id) WITHIN 10"
    (told,) = ask(text, "a1(id=1) b2(id=2) c3(id=3)", [0]).obstacles
    assert told.variables == ("b", "c")
    assert "none that go together" in told.text


def test_what_completes_a_match_but_for_a_negation_is_told() -> None:
    why = ask("SEQ(A a, !B b, C c) WITHIN 10", "a1 b2 c3", [0])
    assert why.json()["alternatives"][0]["completion"] == {"c": 2}
    assert kinds(why) == ["negation"]


def test_each_alternative_of_an_or_is_told_the_nearest_first() -> None:
    text = "SEQ(A a, OR(B b, SEQ(C c, D d)), a.x = 1) WITHIN 10"
    why = ask(text, "a1(x=1) c2(x=1) d3(x=1)", [0, 1, 2])
    assert why.matched
    why = ask(text, "a1(x=0) c2(x=1) d3(x=1)", [0, 1, 2])
    assert [sorted(one.assignment) for one in why.alternatives] == [["a", "c", "d"], ["a"]]
    assert kinds(why) == ["predicate"]


def test_the_order_within_an_and_is_free() -> None:
    assert ask("AND(A a, B b) WITHIN 10", "b1 a2", [0, 1]).matched


def test_events_of_one_type_are_tried_in_every_way() -> None:
    why = ask("AND(A a, A b, a.x = 1, b.x = 2) WITHIN 10", "a1(x=2) a2(x=1)", [0, 1])
    assert why.json()["match"] == {"a": 1, "b": 0}


def test_limit_leaves_out_what_comes_later() -> None:
    text = "SEQ(A a, B b) WITHIN 10 LIMIT 1"
    assert ask(text, "a1 b2 b3", [0, 1]).matched
    why = ask(text, "a1 b2 b3", [0, 2])
    assert kinds(why) == ["limit"]
    assert said(why, text) == ["LIMIT 1"]


@pytest.mark.parametrize(
    ("keep", "events", "picked", "told"),
    [
        (
            "FIRST PER a",
            "a1 b2 b3",
            [0, 2],
            "an earlier one with the same a: a = #0 (A at 1), b = #1 (B at 2)",
        ),
        ("LAST PER a", "a1 b2 b3", [0, 1], "a later one with the same a: a = #0 (A at 1), b = #2 (B at 3)"),
        (
            "LONGEST PER b",
            "a1 a2 b3",
            [1, 2],
            "a longer one with the same b: a = #0 (A at 1), b = #2 (B at 3)",
        ),
        ("SHORTEST", "a1 a2 b3", [0, 2], "a shorter one: a = #1 (A at 2), b = #2 (B at 3)"),
        ("LONGEST", "a1 b2 a3 b4", [0, 1], "a longer one: a = #0 (A at 1), b = #3 (B at 4)"),
        (
            "DISJOINT",
            "a1 a2 b3 b9",
            [1, 3],
            "one that has not ended when it begins: a = #0 (A at 1), b = #2 (B at 3)",
        ),
        (
            "FIRST EVERY 5",
            "a1 b2 b3",
            [0, 2],
            "one that ends less than 5 before it: a = #0 (A at 1), b = #1 (B at 2)",
        ),
        (
            "FIRST PER a.ts % 2",
            "a1 b2 a3 b4",
            [2, 3],
            "an earlier one with the same a.ts % 2: a = #0 (A at 1), b = #1 (B at 2)",
        ),
        (
            "SHORTEST PER b",
            "a1 a1' b3",
            [1, 2],
            "one with the same b that is as long and comes first: a = #0 (A at 1), b = #2 (B at 3)",
        ),
    ],
)
def test_keep_names_the_match_that_it_prefers(keep: str, events: str, picked: list[int], told: str) -> None:
    (obstacle,) = ask(f"SEQ(A a, B b) WITHIN 10 KEEP {keep}", events, picked).obstacles
    assert (obstacle.kind, obstacle.text) == ("keep", f"this is a match, but KEEP {keep} keeps {told}")
    assert set(obstacle.more["kept"].values()) <= set(obstacle.events)


def test_keep_and_limit_are_told_apart() -> None:
    text = "SEQ(A a, B b) WITHIN 10 KEEP FIRST PER a LIMIT 1"
    assert kinds(ask(text, "a1 b2 b3 a4 b5", [0, 2])) == ["keep"]
    assert kinds(ask(text, "a1 b2 b3 a4 b5", [3, 4])) == ["limit"]


def test_a_group_out_of_its_bounds_says_how_many_it_has_and_where() -> None:
    text = "SEQ(A a, F{5} f, B b) WITHIN 10"
    (obstacle,) = ask(text, "a1 f2 f3 f4 b5", [0, 4]).obstacles
    assert obstacle.text == "only 3 of 5 F events between a (#0 at 1) and b (#4 at 5)"
    assert obstacle.events == (1, 2, 3)
    (obstacle,) = ask("SEQ(A a, F{,2} f, B b) WITHIN 10", "a1 f2 f3 f4 b5", [0, 4]).obstacles
    assert obstacle.text == "3 F events between a (#0 at 1) and b (#4 at 5), and there may be at most 2"
    (obstacle,) = ask(text, "a1 b5", [0, 1]).obstacles
    assert obstacle.text == "no F event between a (#0 at 1) and b (#1 at 5); it needs 5"


def test_returned_expressions_and_hidden_variables_change_nothing() -> None:
    assert ask("SEQ(A a, B b) WITHIN 10 RETURN b.ts - a.ts AS gap LIMIT 1", "a1 b2 b3", [0, 1]).matched
    assert ask("EXISTS a : SEQ(A a, B b) WITHIN 10 LIMIT 1", "a1 a2 b3", [0, 2]).matched
    assert ask("EXISTS a : SEQ(A a, B b) WITHIN 10 LIMIT 1", "a1 a2 b3", [1, 2]).matched


def test_a_sase_disjunction_over_a_negation_has_its_alternatives() -> None:
    text = "EVENT SEQ(A a, !(B b), C c) WHERE a.id = b.id OR c.id = b.id WITHIN 10"
    why = ask(text, "a1(id=1) b2(id=1) c3(id=2)", [0, 2])
    assert why.matched  # no B of the id of c
    assert ask(text, "a1(id=1) b2(id=1) c3(id=1)", [0, 2]).obstacles[0].kind == "negation"


def test_events_are_picked_by_a_column() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    events = [{"ts": 5, "type": "B", "key": "two"}, {"ts": 1, "type": "A", "key": "one"}]
    assert query.why(events, ["one", "two"], by="key").matched
    assert query.why(events, {"a": "one"}, by="key").matched
    with pytest.raises(nestream.EventError, match="no event has key = three"):
        query.why(events, ["three"], by="key")
    with pytest.raises(nestream.EventError, match="no column `name`"):
        query.why(events, ["one"], by="name")


def test_what_cannot_be_asked_is_said() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    events = [{"ts": 1, "type": "A"}]
    with pytest.raises(nestream.EventError, match="no event 4: the 1 events are numbered from 0 to 0"):
        query.why(events, [4])
    with pytest.raises(nestream.EventError, match="no event was picked"):
        query.why(events, [])
    with pytest.raises(nestream.EventError, match="picked for two variables"):
        query.why(events, {"a": 0, "b": 0})
    with pytest.raises(nestream.EventError, match="200 events were picked; the limit is 100"):
        query.why(events * 200, range(200))
    with pytest.raises(ValueError, match="unknown order"):
        query.why(events, [0], order="size")


def test_more_events_than_there_are_variables_are_told_one_by_one() -> None:
    why = ask("SEQ(A a, B b) WITHIN 500", " ".join(f"a{n}" for n in range(90)), list(range(90)))
    assert kinds(why) == ["type"] * 89 + ["missing"]


def test_a_question_that_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nestream.why.search.MOST_STEPS", 500)
    events = "a0(id=0) " + " ".join(f"b{n}(id={n}) c{n}(id={-n})" for n in range(1, 90))
    with pytest.raises(nestream.EventError, match="too many combinations"):
        ask("SEQ(A a, B b, C c, b.id = c.id) WITHIN 500", events, [0])


def test_times_of_a_clock_are_told_without_a_date_that_all_share() -> None:
    events = pa.table(
        {
            "at": pa.array([0, 90 * 60 * 1000], pa.timestamp("ms")),
            "kind": ["A", "B"],
        }
    )
    query = nestream.query("SEQ(A a, B b) WITHIN 1 hour")
    (told,) = query.why(events, [0, 1], time="at", type="kind").obstacles
    assert told.text == (
        "from a = #0 (A at 00:00:00) to b = #1 (B at 01:30:00) it is 1 h 30 min; the window is 1 hour"
    )


def test_a_hostile_attribute_stays_text_in_html() -> None:
    events = [{"ts": 1, "type": "A", "x": "<script>alert(1)</script>"}, {"ts": 2, "type": "B", "x": "<b>"}]
    html = nestream.query("SEQ(A a, B b, a.x = b.x) WITHIN 9").why(events, [0, 1])._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_only_a_window_of_many_events_is_looked_at() -> None:
    count = 200_000
    events = pa.table(
        {
            "ts": np.arange(count),
            "type": np.array(["A", "B", "C"])[np.arange(count) % 3],
            "id": np.arange(count) % 7,
        }
    )
    query = nestream.query("SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN 100")
    why = query.why(events, [99_999])
    assert why.matched
    assert max(why.events()) - min(why.events()) <= 100


def test_a_variable_that_no_match_binds_is_refused_and_those_there_are_named() -> None:
    text, events = "SEQ(A a, !(C c, c.id = a.id), B b) WITHIN 10", "a1(id=7) c2(id=7) b3(id=7)"
    with pytest.raises(nestream.EventError, match="has no variable `z`: a match has a, b"):
        ask(text, events, {"a": 0, "z": 2})
    with pytest.raises(
        nestream.EventError, match="`c` is negated, so a match has no event for it: a match has a, b"
    ):
        ask(text, events, {"a": 0, "c": 1})
    with pytest.raises(nestream.EventError, match="event 0 was picked twice"):
        ask(text, events, [0, 0])


def test_sentences_call_events_by_numbers_from_any_first_one() -> None:
    text, events = "SEQ(A a, !C c, B b) WITHIN 10", "a1(id=7) c2(id=7) b3(id=7)"
    plain, moved = ask(text, events, [0, 2]), ask(text, events, [0, 2], first=1000)
    assert "#1 (C at 2)" in plain.obstacles[0].text
    assert "#1001 (C at 2)" in moved.obstacles[0].text
    assert "a = #1000, b = #1002" in moved.text()
    assert "* #1000  1  A" in moved.text()
    assert moved.json()["alternatives"][0]["assignment"] == {"a": 0, "b": 2}
    assert "<b>#1000</b>" in moved._repr_html_()
