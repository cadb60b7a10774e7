"""What a new query begins with: types and attributes of the events that it is for."""

from __future__ import annotations

from typing import Any

import pytest

import nestream
from nestream.console.first_query import EXAMPLES, first_query
from nestream.data import sample

PAYMENTS: list[dict[str, Any]] = [
    {"ts": "2026-01-05T07:00:00Z", "type": kind, "note": f"n{number}", "user": f"u{number % 3}", "in": "EUR"}
    for number, kind in enumerate(["Payment", "Refund", "Payment", "Login", "Refund", "Payment"])
]


def test_it_joins_the_two_most_frequent_types_by_the_entity() -> None:
    text = first_query(PAYMENTS, "ts", "type", "user")
    assert text == "PATTERN SEQ(\n  Payment a,\n  Refund b,\n  a.user = b.user\n)\nWITHIN 1 hour\n"


def test_without_an_entity_it_joins_by_the_first_attribute_whose_values_repeat() -> None:
    assert "a.user = b.user" in first_query(PAYMENTS, "ts", "type")


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"ts": 1, "type": "Only one"}],
        [{"ts": None, "type": None}, {}],
        [{"ts": 1, "type": 7, "x": 1.5}, {"ts": 2, "type": 7, "x": 1.5}],
        [{"ts": 1, "type": "in", "within": "a"}, {"ts": 2, "type": "in", "within": "a"}],
        [{"ts": 1, "type": "A", "x": [1]}, {"ts": 2, "type": "A", "x": [1]}],
        PAYMENTS,
    ],
)
def test_whatever_the_events_are_it_is_a_query(events: list[dict[str, Any]]) -> None:
    assert nestream.query(first_query(events, "ts", "type"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_data_set_finds_something_in_it(name: str) -> None:
    assert nestream.query(EXAMPLES[name]).count(sample(name)) > 0
