"""Random sets that change while events come, and what each of their queries has to emit."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

import nestream
from nestream.model.diagnostics import QueryError
from nestream.runtime.stream import Stream
from tests.generators.histories import SCHEMA, random_history
from tests.generators.queries import random_query
from tests.property.sets import is_endless

Row = dict[str, Any]


@dataclass
class Stint:
    """A query in a set, from the arrival of one event to that of another, which sees events since a time."""

    name: str
    text: str
    first: int
    since: int | None
    end: int | None = None


def random_rules(random: Random, count: int) -> list[str]:
    """Texts of queries that run on a stream of a set."""
    found: list[str] = []
    while len(found) < count:
        text = random_query(random)
        try:
            query = nestream.query(text)
            query.prepare(SCHEMA.empty_table())
        except QueryError:
            continue
        if query.plan.limit is None and not is_endless(query):
            found.append(text)
    return found


def random_arrivals(random: Random, parts: int) -> tuple[list[Row], int]:
    """Events in the order of their arrival, and a lateness within which all of them are."""
    rows: list[Row] = []
    for _ in range(parts):
        after = max((row["ts"] for row in rows), default=0)
        rows += [{**row, "ts": row["ts"] + after} for row in random_history(random).to_pylist()]
    times = [row["ts"] for row in rows]
    behind = max((max(times[:n]) - times[n] for n in range(1, len(times))), default=0)
    return [{**row, "n": number} for number, row in enumerate(rows)], max(behind, 0)


def key(match: Row) -> str:
    """A match as text, whatever it shows."""
    shown = [match["match_start"], match["match_end"], match["events"], sorted(match["values"])]
    return json.dumps(shown, default=str)


class Changing:
    """A stream whose set changes, together with what happened to it."""

    def __init__(
        self, rules: dict[str, str], lateness: Any, *, schema: pa.Schema = SCHEMA, **options: Any
    ) -> None:
        self.rules, self.schema = rules, schema
        self.how: dict[str, Any] = {"schema": schema, "lateness": lateness, **options}
        self.stream = self._start()
        self.stints = [Stint(name, text, 0, None) for name, text in rules.items()]
        self.arrived: list[Row] = []
        self.found: Counter[tuple[str, str]] = Counter()

    def _start(self) -> Stream:
        stream: Stream = nestream.queries(self.rules).stream(**self.how)
        return stream

    def push(self, events: list[Row], *, singly: bool) -> None:
        """Push events, one by one or together."""
        self.arrived += events
        if singly:
            found = [match for event in events for match in self.stream.push(event)]
            found += self.stream.flush()
        else:
            found = self.stream.push_batch(pa.Table.from_pylist(events, self.schema)).to_pylist()
        self.found.update((match["query"], key(match)) for match in found)

    def change(self, rules: dict[str, str]) -> dict[str, Any]:
        """Change the set."""
        joined: dict[str, Any] = self.stream.change(rules)
        now = len(self.arrived)
        for stint in self.stints:
            if stint.end is None and rules.get(stint.name) != stint.text:
                stint.end = now
        self.stints += [Stint(name, rules[name], now, since) for name, since in joined.items()]
        self.rules = rules
        return joined

    def restart(self) -> None:
        """Save the state, and go on from it in a new stream of the set as it is now."""
        self.stream = self._start().restore(self.stream.save())

    def finish(self) -> None:
        """End the input."""
        self.found.update((match["query"], key(match)) for match in self.stream.finish())

    def expected(self) -> Counter[tuple[str, str]]:
        """What all the queries have to emit: each alone, over the events that it sees, while it is there."""
        wanted: Counter[tuple[str, str]] = Counter()
        for stint in self.stints:
            wanted.update((stint.name, key(match)) for match in self._alone(stint))
        return wanted

    def _alone(self, stint: Stint) -> list[Row]:
        stream = nestream.queries({stint.name: stint.text}).stream(**self.how)
        seen = [
            event if stint.since is None or event["ts"] >= stint.since else None for event in self.arrived
        ]

        def found(events: list[Row | None]) -> list[Row]:
            parts = [pa.Table.from_pylist([event], self.schema) for event in events if event is not None]
            return [match for part in parts for match in stream.push_batch(part).to_pylist()]

        before, while_there = found(seen[: stint.first]), found(seen[stint.first : stint.end])
        if stint.end is not None:
            return while_there
        while_there += stream.finish()
        spans = Counter((match["match_start"], match["match_end"]) for match in [*before, *while_there])
        history = pa.Table.from_pylist([event for event in seen if event is not None], self.schema)
        matches = nestream.query(stint.text).match(history, strategy="reference").to_pylist()
        assert spans == Counter((match["match_start"], match["match_end"]) for match in matches)
        return while_there


def change_at_random(random: Random, parts: int = 3) -> Changing:
    """Run a stream with changes and restarts at random places."""
    events, lateness = random_arrivals(random, parts)
    pool = random_rules(random, 4)

    def some() -> dict[str, str]:
        names = random.sample(["p", "q", "r"], random.randint(1, 3))
        return {name: random.choice(pool) for name in names}

    running = Changing(some(), random.choice([lateness, lateness + 2]))
    while events:
        size = random.choice([1, 2, 5, 9])
        running.push(events[:size], singly=random.random() < 0.5)
        events = events[size:]
        if random.random() < 0.4:
            running.change(some() if random.random() < 0.6 else {**running.rules, **some()})
        if random.random() < 0.3:
            running.restart()
    running.finish()
    return running
