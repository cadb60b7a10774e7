"""A simulated job whose rules change at random, beside an embedded stream that changes at the same places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import nestream
from nestream.compose.settings import Settings
from nestream.job import LiveRules, RuleSet
from nestream.model.schema import Schema
from nestream.runtime.spark.stream_commit import Commits
from nestream.runtime.spark.stream_rules import ChangingRules
from tests.generators.histories import SCHEMA
from tests.job.test_live_rules import Rules
from tests.sets.changing import Changing, Row, Stint, key, random_arrivals
from tests.spark.stream.cases import SECOND, stream_cases, with_timestamps
from tests.spark.stream.real_rules import RealRules
from tests.spark.stream.simulated_job import SimulatedJob
from tests.spark.stream.streams import Folder

KEYED = (
    "SEQ(A a, B b, a.id = b.id) WITHIN {} seconds",
    "SEQ(A a, !(C c, c.id = a.id), B b, a.id = b.id) WITHIN {} seconds RETURN a.n AS first, b.n AS last",
    "SEQ(A a, B b, !(D d, d.id = a.id), a.id = b.id) WITHIN {} seconds",
    "SEQ(B a, C b, a.id = b.id, a.x > 1) WITHIN {} seconds RETURN a.n AS first, b.n AS last",
    "SEQ(A a, C b, a.id = b.id) WITHIN {} seconds KEEP FIRST PER a.id",
    "SEQ(A a, (B+ b : b.id = a.id), C c, a.id = c.id) WITHIN {} seconds RETURN a.n AS first, c.n AS last",
)
"""Rules that can be split by one key."""


class SimulatedRules(SimulatedJob):
    """A job with rules that a test puts in place."""

    def __init__(
        self, rules: Rules, schema: pa.Schema, path: Path, *, buckets: int = 3, delay: int = 0
    ) -> None:
        self.rules, self.limit = rules, None
        known = Schema.of(schema, "ts", "type")

        def queries(commits: Commits) -> ChangingRules:
            live = LiveRules(rules, nestream.queries, lambda parsed: parsed)
            return ChangingRules(
                live,
                known,
                lambda found: found._fixed_compiler(None, known, Settings()),
                delay,
                commits.kept_rules(),
                buckets > 1,
            )

        self.queries = queries
        self._begin(schema, path, delay, buckets)

    def finish(self) -> None:
        """End the input, and emit what is pending."""
        self.job.finish(flush=True)


class ChangingJob(Changing):
    """A job and a stream, with the same changes at the same places; what is found is what the job finds."""

    def __init__(
        self,
        rules: dict[str, str],
        lateness: timedelta,
        chance: Random,
        schema: pa.Schema,
        job_of: Callable[[Rules, int], SimulatedRules | RealRules],
    ) -> None:
        super().__init__(rules, lateness, schema=schema)
        self._chance, self._source = chance, Rules(**rules)
        self.embedded: Counter[tuple[str, str]] = Counter()
        self.is_same = True
        """Whether each rule of the job saw events since the same time as that of the stream."""
        self.job = job_of(self._source, lateness // timedelta(microseconds=1))

    def push(self, events: list[Row], *, singly: bool) -> None:
        """A micro-batch for the job, and the same events for the stream."""
        super().push(events, singly=False)
        self.job.batch(pa.Table.from_pylist(events, self.schema), self._chance)

    def push_first(self, events: list[Row]) -> None:
        """The events that the job has begun with, for the stream."""
        super().push(events, singly=False)

    def change(self, rules: dict[str, str]) -> dict[str, Any]:
        """Change the rules of the job, and those of the stream to what the job has taken."""
        self._source.now = RuleSet(
            self._source.now.version + 1, self._source.now.changed(self._source.now.differences(rules)).rules
        )
        job = self.job.job
        job.look()
        if job.changes.empty():
            return {}
        change = job.changes.get()
        now = len(self.arrived)
        self.rules = dict(job._queries._live.running.texts)  # type: ignore[union-attr]
        joined: dict[str, Any] = self.stream.change(self.rules)
        self.is_same = self.is_same and joined == change.joined
        for stint in self.stints:
            if stint.end is None and (stint.name in change.left or stint.name in change.joined):
                stint.end = now
        self.stints += [Stint(name, self.rules[name], now, since) for name, since in change.joined.items()]
        return change.joined

    def restart(self) -> None:
        """Start the driver again, as after a kill."""
        super().restart()
        self.job.start()

    def finish(self) -> None:
        """End the input of both."""
        super().finish()
        self.job.finish()
        self.embedded, self.found = self.found, Counter()
        self.found.update((match["query"], key(match)) for match in self.job.matches.to_pylist())


def change_job_at_random(
    random: Random, path: Path, parts: int = 3, sizes: Sequence[int] = (1, 2, 5, 9), spark: Any = None
) -> ChangingJob:
    """Run a job with changes, failures and restarts at random places, on Spark if there is a session."""
    arrived, behind = random_arrivals(random, parts)
    table = with_timestamps(pa.Table.from_pylist(arrived, SCHEMA))
    events = table.to_pylist()
    pool = [text.format(random.choice((3, 6, 10))) for text in random.sample(KEYED, 4)]
    if random.random() < 0.5:
        pool = [case.text for case in islice(stream_cases(random.randrange(10_000)), 4)]

    def some() -> dict[str, str]:
        names = random.sample(["p", "q", "r"], random.randint(1, 3))
        return {name: random.choice(pool) for name in names}

    lateness = timedelta(microseconds=random.choice([behind, behind + 2]) * SECOND)
    first = events[: random.choice(sizes)] if spark is not None else []

    def job_of(rules: Rules, delay: int) -> SimulatedRules | RealRules:
        if spark is None:
            return SimulatedRules(rules, table.schema, path, buckets=random.choice((1, 2, 5)), delay=delay)
        path.mkdir(exist_ok=True)
        begin = table.slice(0, len(first))
        return RealRules(rules, Folder(spark, path), begin, partitions=random.choice((1, 2)), delay=delay)

    running = ChangingJob(some(), lateness, random, table.schema, job_of)
    if first:
        running.push_first(first)
        events = events[len(first) :]
    while events:
        size = random.choice(sizes)
        running.push(events[:size], singly=False)
        events = events[size:]
        if random.random() < 0.4:
            running.change(some() if random.random() < 0.6 else {**running.rules, **some()})
        if random.random() < 0.3:
            running.restart()
    running.finish()
    return running
