"""Why with windows of every kind, every root, equal times and both orders: the verdicts and the words."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import nestream
from tests.generators.histories import random_history, types_of
from tests.generators.queries import random_query
from tests.why.test_why_properties import examine


def events(text: str) -> list[dict[str, Any]]:
    """`A1 B2` as an A at 1 and a B at 2."""
    return [{"ts": int(part[1:]), "type": part[0]} for part in text.split()]


SHORT = "from a = #0 (A at 1) to b = #{} (B at {}) it is {}; the window is {}"
WINDOWS = [
    ("SEQ(A a, B b) WITHIN 5", "A1 B7", SHORT.format(1, 7, 6, 5)),
    ("SEQ(A a, B b) WITHIN 5", "A1 B6", None),
    ("EVENT SEQ(A a, B b) WITHIN 5", "A1 B6", SHORT.format(1, 6, 5, 5) + ", and a match must be shorter"),
    ("EVENT SEQ(A a, B b) WITHIN 5", "A1 B5", None),
    ("SEQ(A a, B b) WITHIN 2 EVENTS", "A1 C2 B3", SHORT.format(2, 3, "3 events", "2 EVENTS")),
    ("SEQ(A a, B b) WITHIN 3 EVENTS", "A1 C2 B3", None),
    ("EVENT SEQ(A a, B b) WITHIN 2 EVENTS", "A1 C2 B3", SHORT.format(2, 3, "3 events", "2 EVENTS")),
    ("EVENT SEQ(A a, B b) WITHIN 3 EVENTS", "A1 C2 B3", None),
    ("AND(A a, B b) WITHIN 2", "A1 B4", SHORT.format(1, 4, 3, 2)),
    ("OR(SEQ(A a, B b), C c) WITHIN 2", "A1 B4", SHORT.format(1, 4, 3, 2)),
    ("SEQ(A a, B b) WITHIN UNBOUNDED", "A1 B999", None),
]


@pytest.mark.parametrize(("text", "history", "told"), WINDOWS)
def test_the_window_that_a_match_exceeds_is_described(text: str, history: str, told: str | None) -> None:
    table = events(history)
    picked = [row for row, event in enumerate(table) if event["type"] in "AB"]
    why = nestream.query(text).why(table, picked)
    assert why.matched == (told is None)
    assert [obstacle.text for obstacle in why.obstacles] == ([] if told is None else [told])


FROM, UP_TO = "from position 0 in the order of time", "up to position 2 in the order of time"
TO_B = "up to the time of b (#1 at 2)"
INTERVALS = [
    ("SEQ(!C c, A a, B b) WITHIN 5", "C1 A2 B6", "from 1 and before a (#1 at 2)"),
    ("EVENT SEQ(!C c, A a, B b) WITHIN 5", "C1 A2 B5", "after 0 and before a (#1 at 2)"),
    ("EVENT SEQ(!C c, A a, B b) WITHIN 5", "C1 A2 B6", None),
    ("SEQ(!C c, A a, B b) WITHIN 3 EVENTS", "C1 A2 B3", f"{FROM} and before a (#1 at 2)"),
    ("EVENT SEQ(!C c, A a, B b) WITHIN 3 EVENTS", "C1 A2 B3", f"{FROM} and before a (#1 at 2)"),
    ("SEQ(!C c, A a, B b) WITHIN UNBOUNDED", "C1 A2 B3", "before a (#1 at 2)"),
    ("SEQ(A a, !C c, B b) WITHIN 5", "A1 C2 B3", "between a (#0 at 1) and b (#2 at 3)"),
    ("SEQ(A a, B b, !C c) WITHIN 5", "A1 B2 C6", "after b (#1 at 2) and up to 6"),
    ("EVENT SEQ(A a, B b, !C c) WITHIN 5", "A1 B2 C5", "after b (#1 at 2) and before 6"),
    ("EVENT SEQ(A a, B b, !C c) WITHIN 5", "A1 B2 C6", None),
    ("SEQ(A a, B b, !C c) WITHIN 3 EVENTS", "A1 B2 C3", f"after b (#1 at 2) and {UP_TO}"),
    ("AND(A a, B b, !C c) WITHIN 5", "C1 A2 B3", "from -2 and up to the time of b (#2 at 3)"),
    ("AND(A a, B b, !C c) WITHIN 2 EVENTS", "A1 B2 C2", f"{FROM} and {TO_B}"),
    ("AND(A a, B b, !C c) WITHIN 2 EVENTS", "A1 B2 D2 D2 C2", f"{FROM} and {TO_B}"),
    ("AND(A a, B b, !C c) WITHIN 2 EVENTS", "A1 B2 C3", None),
    ("AND(A a, B b, !C c) WITHIN UNBOUNDED", "A1 B2 C2", TO_B),
]  # fmt: skip


@pytest.mark.parametrize(("text", "history", "where"), INTERVALS)
def test_the_interval_of_a_negation_is_described(text: str, history: str, where: str | None) -> None:
    table = events(history)
    picked = [row for row, event in enumerate(table) if event["type"] in "AB"]
    (unwanted,) = (row for row, event in enumerate(table) if event["type"] == "C")
    why = nestream.query(text).why(table, picked)
    assert why.matched == (where is None)
    if where is not None:
        (obstacle,) = why.obstacles
        at = table[unwanted]["ts"]
        assert obstacle.text == f"!C c, and {where} there is c = #{unwanted} (C at {at})"


def test_a_root_and_in_the_order_of_arrival_ends_with_its_last_event() -> None:
    query = nestream.query("AND(A a, B b, !C c) WITHIN 2 EVENTS")
    assert query.why(events("A1 B2 C2"), [0, 1], order="arrival").matched
    (obstacle,) = (
        nestream.query("AND(A a, B b, !C c) WITHIN 9")
        .why(events("A1 C2 B2"), [0, 2], order="arrival")
        .obstacles
    )
    assert "up to b (#2 at 2)" in obstacle.text


def test_equal_times_are_described_as_the_order_has_it() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 5")
    (obstacle,) = query.why(events("A1 B1"), [0, 1]).obstacles
    assert obstacle.text == "a must come before b: both are at 1, and equal times do not follow each other"
    assert query.why(events("A1 B1"), [0, 1], order="arrival").matched
    (obstacle,) = query.why(events("B1 A1"), [0, 1], order="arrival").obstacles
    assert obstacle.text == "a must come before b: #1 (A at 1) arrives after #0 (B at 1)"


def test_times_of_two_days_are_told_with_their_dates() -> None:
    midnight = datetime(2026, 1, 6)
    minutes = {"A": -10, "B": 10}
    table = [{"ts": midnight + timedelta(minutes=at), "type": kind} for kind, at in minutes.items()]
    (obstacle,) = nestream.query("EVENT SEQ(A a, B b) WITHIN 20 minutes").why(table, [0, 1]).obstacles
    assert obstacle.text == (
        "from a = #0 (A at 2026-01-05 23:50:00) to b = #1 (B at 2026-01-06 00:10:00) it is 20 min;"
        " the window is 20 minutes, and a match must be shorter"
    )


def test_the_nearest_event_out_of_reach_has_the_number_that_the_asker_uses() -> None:
    why = nestream.query("SEQ(A a, B b) WITHIN 5").why(events("A1 B99"), [0], first=100)
    assert "the nearest is #101 at 99" in why.obstacles[0].text


@pytest.mark.parametrize("seed", range(60))
def test_the_answers_with_any_window_and_many_equal_times_are_true(seed: int) -> None:
    random = Random(f"windows/{seed}")
    text = random_query(random)
    window = random.choice(["{}", "{} EVENTS", "{} EVENTS", "UNBOUNDED"]).format(random.randint(1, 6))
    text = re.sub(r"WITHIN (UNBOUNDED|\d+( \w+)?)(?=\s|$)", f"WITHIN {window}", text)
    table = random_history(random, types=types_of(text)).slice(0, 9)
    coarse = random.choice((1, 2, 4, 8))
    times = [time // coarse for time in table.column("ts").to_pylist()]
    place = table.schema.get_field_index("ts")
    table = table.set_column(place, "ts", pa.array(times, table.schema.field(place).type))
    examine(text, table, random.choice(("time", "arrival")), random)
