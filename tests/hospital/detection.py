"""What was planted beside what was found: the matches of the rules as event numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from nestream.hospital.simulator import Moment, simulate

Numbers = Counter[tuple[str, tuple[int, ...]]]


def moments(events: int, seed: int = 0, **options: Any) -> list[Moment]:
    """The first events of a simulation."""
    return list(islice(simulate(seed, **options), events))


def planted(simulated: Iterable[Moment]) -> Numbers:
    """The ground truth: each match once, by its rule and its events."""
    return Counter((one.query, one.events) for moment in simulated for one in moment.planted)


def found(matches: Iterable[Mapping[str, Any]]) -> Numbers:
    """Matches of the query set in the same form."""
    return Counter(
        (match["query"], tuple(entry["event"]["event"] for entry in match["events"]))
        for match in matches
        if match["events"]  # those of other queries are events for the rules
    )
