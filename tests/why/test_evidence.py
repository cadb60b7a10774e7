"""What the negations and groups of a match looked at, kind by kind: the events, and the sentence."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream.why import Evidence, Why
from tests.corpus.notation import read_history

STEPS = {"w": "Washing", "s": "Sharpening", "d": "Disinfection", "c": "Checking", "o": "Operating"}
CLEAN = """PATTERN SEQ(Washing w,
            ! SEQ(Sharpening s, Disinfection d, Checking c, s.id = d.id = c.id = o.id),
            Operating o, w.id = o.id)
WITHIN 60"""


def ask(text: str, events: str, **options: Any) -> Why:
    """The answer for the first and the last event."""
    table = read_history(events, STEPS if text == CLEAN else {}).table()
    return nestream.query(text).why(table, [0, table.num_rows - 1], **options)


def one(text: str, events: str, **options: Any) -> Evidence:
    (evidence,) = ask(text, events, **options).evidence
    return evidence


def test_steps_in_the_wrong_order_are_told_with_the_two_that_are_swapped() -> None:
    evidence = one(CLEAN, "w20(id=6) d39(id=6) c45(id=6) s50(id=6) o52(id=6)")
    assert evidence.text == (
        "Sharpening at 50 (#3) came after Disinfection at 39 (#1), so no Sharpening, Disinfection, "
        "Checking with id 6 in that order between Washing at 20 and Operating at 52"
    )
    assert [event.row for event in evidence.events] == [1, 2, 3]
    assert evidence.json()["nearest"] == {"d": 1, "c": 2}
    assert evidence.json()["missing"] == ["s"]


def test_a_step_that_is_missing_is_told_with_where_it_would_have_been() -> None:
    assert one(CLEAN, "w20(id=6) s30(id=6) c45(id=6) o52(id=6)").text.startswith(
        "no Disinfection between Sharpening at 30 (#1) and Checking at 45 (#2), so no "
    )
    assert one(CLEAN, "w20(id=6) s30(id=6) d45(id=6) o52(id=6)").text.startswith(
        "no Checking after Disinfection at 45 (#2), so no "
    )
    assert one(CLEAN, "w20(id=6) o52(id=6)").text == (
        "no Sharpening, Disinfection or Checking with id 6 between Washing at 20 and Operating at 52"
    )


def test_an_event_of_another_key_is_told_and_only_those_of_the_key_are_shown_beside_it() -> None:
    evidence = one(CLEAN, "w20(id=6) s30(id=6) s31(id=9) d39(id=7) c45(id=6) c46(id=9) o52(id=6)")
    assert evidence.text.startswith("Disinfection at 39 (#3) has another id (7, not 6), so no ")
    assert [event.row for event in evidence.events] == [1, 3, 4]
    several = one(CLEAN, "w20(id=6) s30(id=6) d39(id=7) d40(id=8) c45(id=6) o52(id=6)")
    assert several.text.startswith("no Disinfection with that id between Sharpening at 30 (#1) and ")
    assert [event.row for event in several.events] == [1, 4]
    none = one(CLEAN, "w20(id=6) s30(id=7) s31(id=8) d32(id=7) d33(id=8) c34(id=7) c35(id=8) o52(id=6)")
    assert none.text == (
        "no Sharpening, Disinfection or Checking with id 6 between Washing at 20 and Operating at 52"
    )
    assert none.events == ()
    unknown = one(CLEAN, "w20(id=6) s30(id=6) d39(id=null) c45(id=6) o52(id=6)")
    assert unknown.text.startswith("Disinfection at 39 (#2) has no id, so no ")


def test_a_key_that_is_null_says_that_nothing_can_equal_it() -> None:
    evidence = one("SEQ(A a, !(B b, b.id = a.id), C c) WITHIN 10", "a1(id=null) b2(id=1) c3(id=1)")
    assert evidence.text == "A at 1 has no id, so no B between A at 1 and C at 3 can have the same"


def test_a_predicate_that_fails_is_told_with_its_values() -> None:
    text = "SEQ(A a, !SEQ(B b, C c, b.x < c.x), D d) WITHIN 10"
    assert one(text, "a1(x=0) b2(x=5) c3(x=4) d4(x=0)").text == (
        "C at 3 (#2) does not fit, b.x < c.x: 5 ≥ 4, so no B, C in that order between A at 1 and D at 4"
    )
    text = "SEQ(A a, !(B b, a.x = 1), D d) WITHIN 10"
    assert one(text, "a1(x=0) b2(x=5) d4(x=0)").text == (
        "a.x = 1: 0 ≠ 1, so no B between A at 1 and D at 4 counts"
    )


def test_equal_times_are_told_as_such() -> None:
    text = "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 10"
    assert one(text, "a1 b2 c2 d4").text.startswith("C at 2 (#2) came at the same time as B at 2")
    arrived = one(text, "a1 c2 b2 d4", order="arrival").text
    assert arrived.startswith("C at 2 (#1) arrived before B at 2 (#2), so no B, C in that order")


def test_an_and_under_a_negation_has_no_order() -> None:
    text = "SEQ(A a, !AND(B b, C c), D d) WITHIN 10"
    assert one(text, "a1 c2 d4").text == "no B, so no B and C together between A at 1 and D at 4"


def test_each_branch_of_an_or_under_a_negation_is_told() -> None:
    text = "SEQ(A a, !OR(B b, SEQ(C c, D d)), E e) WITHIN 10"
    evidence = one(text, "a1 d2 c3 e4")
    assert evidence.text == (
        "no B between A at 1 and E at 4; "
        "D at 2 (#1) came before C at 3 (#2), so no C, D in that order between A at 1 and E at 4"
    )
    assert [event.row for event in evidence.events] == [1, 2]


def test_only_the_branch_that_was_taken_has_evidence() -> None:
    text = "OR(SEQ(A a, !B b, C c), SEQ(D d, !E e, C c2)) WITHIN 10"
    assert one(text, "a1 c4").what == "!B b"
    assert one(text, "d1 c4").what == "!E e"


def test_a_nested_negation_tells_what_it_took_away() -> None:
    text = "SEQ(A a, !SEQ(B b, !S s, C c), E e) WITHIN 20"
    evidence = one(text, "a1 b2 s3 c4 e5")
    assert evidence.text == (
        "no SEQ(B b, !S s, C c) between A at 1 and E at 5: B at 2 (#1) and C at 4 (#3) would do, "
        "but between B at 2 (#1) and C at 4 (#3) there is S at 3 (#2)"
    )
    assert [event.row for event in evidence.events] == [1, 2, 3]
    assert evidence.json()["stopped"]["witness"] == {"s": 2}


def test_negations_alternate_to_any_depth() -> None:
    text = "SEQ(A a, !SEQ(B b, !SEQ(C c, !SEQ(D d, !E e, D d2), C c2), B b2), F f) WITHIN 30"
    evidence = one(text, "a1 b2 c3 d4 e5 d6 c7 b8 f9")
    assert "B at 2 (#1) and B at 8 (#7) would do, but" in evidence.text
    assert "there is C at 3 (#2) and C at 7 (#6)" in evidence.text
    assert "D at 4 (#3) and D at 6 (#5) would do, but" in evidence.text
    assert evidence.text.endswith("there is E at 5 (#4)")
    assert [event.row for event in evidence.events] == [1, 2, 3, 4, 5, 6, 7]


def test_a_group_inside_a_negation_tells_how_many_it_has() -> None:
    text = "SEQ(A a, !SEQ(B b, C{3,} c, D d), E e) WITHIN 30"
    told = one(text, "a1 b2 c3 c4 d5 e6").text
    assert told.endswith("would do, but only 2 of 3 C events between B at 2 (#1) and D at 5 (#4)")
    told = one(text, "a1 b2 d5 e6").text
    assert told.endswith("but no C event between B at 2 (#1) and D at 5 (#2); it needs at least 3")


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        ("+", "2 F events between A at 1 and E at 5; it needs at least 1"),
        ("*", "2 F events between A at 1 and E at 5"),
        ("{2}", "2 F events between A at 1 and E at 5; it needs 2"),
        ("{1,5}", "2 F events between A at 1 and E at 5; it needs 1 to 5"),
        ("{,5}", "2 F events between A at 1 and E at 5; it may have at most 5"),
    ],
)
def test_a_group_tells_its_members_and_how_many_it_needs(quantity: str, said: str) -> None:
    evidence = one(f"SEQ(A a, F{quantity} f, E e) WITHIN 20", "a1 f2 f4 e5")
    assert (evidence.kind, evidence.variable, evidence.text) == ("group", "f", said)
    assert [event.row for event in evidence.events] == [1, 2]


def test_leading_and_trailing_negations_say_how_far_they_look() -> None:
    assert one("SEQ(!B b, A a, C c) WITHIN 10", "a1 c4").text == "no B from -6 and before A at 1"
    assert one("SEQ(A a, C c, !B b) WITHIN 10", "a1 c4").text == "no B after C at 4 and up to 11"
    assert one("SEQ(A a, C c, !B b) WITHIN UNBOUNDED", "a1 c4").text == "no B after C at 4"


def test_many_events_are_cut_and_counted() -> None:
    others = " ".join(f"b{n}(id={n})" for n in range(2, 256))
    text = "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 300"
    evidence = one(text, f"a1(id=0) {others} d260(id=0)")
    assert (len(evidence.events), evidence.more) == (40, 214)
    assert evidence.told.endswith(" (and 214 more events)")
    assert evidence.told in " ".join(
        line.strip() for line in ask(text, f"a1 {others} d260").text().split("\n")
    )


def test_the_text_the_table_and_json_of_an_answer_have_the_evidence() -> None:
    why = ask(CLEAN, "w20(id=6) d39(id=6) c45(id=6) s50(id=6) o52(id=6)", first=100)
    assert "  negation: Sharpening at 50 (#103) came after Disinfection at 39 (#101)" in why.text()
    assert "    | ! SEQ(Sharpening s, Disinfection d, Checking c" in why.text()
    assert list(why.events()) == [0, 1, 2, 3, 4]
    assert why.json()["evidence"][0]["events"] == [1, 2, 3]
    assert "<b>negation</b>: Sharpening at 50 (#103) came after" in why._repr_html_()


def test_times_of_a_clock_are_written_without_their_date_and_without_seconds_that_are_none() -> None:
    table = pa.table(
        {
            "ts": pa.array(
                [datetime(2026, 1, 5, 10, 20), datetime(2026, 1, 5, 10, 52, 7)], pa.timestamp("ms")
            ),
            "type": ["A", "C"],
        }
    )
    (evidence,) = nestream.query("SEQ(A a, !B b, C c) WITHIN 1 hour").why(table, [0, 1]).evidence
    assert evidence.text == "no B between A at 10:20 and C at 10:52:07"


def test_a_match_among_many_events_is_answered_from_its_intervals() -> None:
    count = 300_000
    kinds = np.array(["A", "B", "C"])[np.arange(count) % 3]
    events = pa.table({"ts": np.arange(count), "type": kinds, "id": np.arange(count) % 7})
    query = nestream.query("SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN 100")
    (evidence,) = query.why(events, [99_999]).evidence
    assert evidence.text.endswith("between A at 99999 and B at 100006")
