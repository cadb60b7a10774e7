"""Random events for jobs, out of order within the lateness, with lines between them that are no events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import nestream

LATENESS = 5
QUERY = """
    PATTERN SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id)
    WITHIN 40
    RETURN a.n AS first, b.n AS last
"""
Row = dict[str, Any]


def random_events(seed: int, number: int) -> list[Row]:
    """Events whose times go back by less than the lateness."""
    randomness = random.Random(seed)
    return [
        {
            "ts": n + randomness.randrange(LATENESS),
            "type": randomness.choice("AABBCX"),
            "id": randomness.randrange(12),
            "n": n,
        }
        for n in range(number)
    ]


def lines(events: list[Row], seed: int) -> Iterator[bytes]:
    """The events as lines of JSON, a few lines between them malformed."""
    randomness = random.Random(seed)
    for event in events:
        if randomness.random() < 0.01:
            yield b"%d is no event\n" % event["n"]
        yield json.dumps(event).encode() + b"\n"


def ending(events: list[Row]) -> Row:
    """An event so late that all the others are decided."""
    return {"ts": max(event["ts"] for event in events) + 1000, "type": "X", "id": 0, "n": len(events)}


def expected(events: list[Row]) -> list[tuple[int, int]]:
    """The matches of all events at once."""
    found = nestream.query(QUERY).match(events, strategy="auto").to_pylist()
    return sorted((match["first"], match["last"]) for match in found)
