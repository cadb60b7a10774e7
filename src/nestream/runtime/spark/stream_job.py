"""The driver of a stream: runs one Spark job for each micro-batch, and commits it.

The driver keeps the watermark, knows the state of every bucket by its files, and publishes what the workers
found. A failed micro-batch leaves only files that no commit names. When rules change, a job moves all buckets
to the new rules, and a commit records it, before the next micro-batch runs.
"""

from __future__ import annotations

import json
import time as clock
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame

from nestream.job.live_rules import Change as RulesChange
from nestream.job.progress import FILE, Progress, State
from nestream.model.schema import EventError
from nestream.runtime.spark.collecting import collected
from nestream.runtime.spark.shipping import shipped
from nestream.runtime.spark.stream_batch import ASIDE, Change, Matching, Order
from nestream.runtime.spark.stream_bucket import check_identity
from nestream.runtime.spark.stream_commit import Commit, Commits, identity_of, signed
from nestream.runtime.spark.stream_pack import COUNT, FOUND, MATCHES
from nestream.runtime.spark.stream_place import Place
from nestream.runtime.spark.stream_results import Results
from nestream.runtime.spark.stream_rules import JobQueries
from nestream.runtime.spark.stream_sink import BatchFiles
from nestream.runtime.spark.stream_task import StreamTask
from nestream.runtime.state import StateError

_UNFINISHED = (f".{FILE}.", ".nestream-")
"""The prefix of the hidden files of an interrupted write."""
COUNTED = ("events", "matches", "late", "malformed", "future")


class Stopped(Exception):  # noqa: N818 - nothing is wrong
    """The stream is being stopped: the micro-batch is left to the next start."""


@dataclass(frozen=True)
class Writes:
    """What a stream writes, and where."""

    checkpoint: str
    matches: BatchFiles
    aside: BatchFiles | None


@dataclass(frozen=True)
class Plan:
    """How micro-batches run while the queries do not change.

    `packs` packs the events of a micro-batch.
    """

    task: StreamTask
    packs: Callable[[Any], DataFrame]

    @cached_property
    def shipped(self) -> bytes:
        """The task, as it is sent to the workers."""
        data: bytes = cloudpickle.dumps(self.task)  # type: ignore[no-untyped-call]  # PySpark does not type it
        return data


class StreamJob:
    """Runs the micro-batches of a stream, each from the state that the previous one committed.

    `plan` says how the current queries run, and `packs_of` makes a DataFrame of packs.
    """

    def __init__(
        self,
        queries: JobQueries,
        plan: Callable[[JobQueries], Plan],
        buckets: tuple[int, ...],
        writes: Writes,
        commits: Commits,
        *,
        packs_of: Callable[[list[dict[str, Any]]], DataFrame],
        delay: int,
        limit: int | None,
    ) -> None:
        self._queries, self._plan_of, self._plan = queries, plan, plan(queries)
        self._buckets, self._writes, self._packs_of = buckets, writes, packs_of
        self._rules: str | None = None if commits.last is None else commits.last.rules
        """The file that holds the rules."""
        self._turn = Lock()
        """Held by a micro-batch, or by a change between two of them."""
        self._delay, self._limit = delay, limit
        self._commits, self._last = commits, commits.last
        self._place = Place(writes.checkpoint)
        self.job = ""
        """A name that no other checkpoint has."""
        self._ended: float | None = None
        """When the last micro-batch was done."""
        self.stopping = Event()
        self.problem: BaseException | None = None
        """Why the stream failed."""
        self.progress = Progress()
        self.done: SimpleQueue[Progress] = SimpleQueue()
        """The progress after each micro-batch."""
        self.changes: SimpleQueue[RulesChange] = SimpleQueue()
        """The outcome of each change of the rules."""

    # -- the beginning -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Publish what the last commit contains; raises if the checkpoint belongs to another query."""
        self.job = identity_of(self._place)[:8] if self._last is None else self._last.job
        for files in self._files():
            files.place.make()
        if self._last is None:
            if self._writes.matches.has_files():
                raise EventError(
                    f"{self._writes.matches.place} has matches, and there is no checkpoint to continue from\n"
                    "  hint: choose another folder, or empty it"
                )
        else:
            try:
                check_identity(self._last.identity, self._plan.task.identity)
            except StateError as problem:
                raise EventError(str(problem)) from None
            self._publish(self._last, again=self._told() >= self._last.number)
            self._note(self._last)
        self._queries.show(self.progress)
        for files in self._files():
            files.sweep()
        for name in self._place.names():
            if name.startswith(_UNFINISHED):
                self._place.remove(name)

    def _told(self) -> int:
        """The last micro-batch that was certainly published, because progress.json is written after that."""
        try:
            return int(json.loads(self._place.read(FILE) or b"{}").get("batch", -1))
        except ValueError:
            return -1

    def _files(self) -> Iterable[BatchFiles]:
        return [files for files in (self._writes.matches, self._aside()) if files is not None]

    def _matches(self) -> BatchFiles:
        """The files of matches, with their current columns."""
        return replace(self._writes.matches, schema=self._plan.task.wanted)

    def _aside(self) -> BatchFiles | None:
        """The files of events that are left out; several streams may share a folder, so the names differ."""
        aside = self._writes.aside
        return None if aside is None else replace(aside, prefix=f"{aside.prefix}-{self.job}")

    def _publish(self, commit: Commit, *, again: bool = False) -> None:
        self._writes.matches.publish(commit.matches, again=again)
        if (aside := self._aside()) is not None:
            aside.publish(commit.aside, again=again)

    # -- micro-batches -------------------------------------------------------------------------------------

    def __call__(self, arrived: Any, number: int) -> None:
        """Run a micro-batch; an error is kept for whoever waits for the stream."""
        try:
            with self._turn:
                if self.stopping.is_set():
                    raise Stopped
                self._run(arrived, number)
        except BaseException as problem:
            self.problem = problem
            raise

    def _run(self, arrived: Any, number: int) -> None:
        last = self._last
        begin = clock.monotonic()
        if last is not None and last.ended:
            raise EventError(
                "new events arrived after a run with --flush, which ended the input\n"
                "  hint: remove the checkpoint and the matches, and start over without --flush"
            )
        expected = 0 if last is None else last.number + 1
        if number < expected:
            return  # it was committed, and Spark does not know
        if number > expected:
            raise EventError(
                f"Spark is at micro-batch {number:,}, and {self._commits.place} has no state for it\n"
                "  hint: a checkpoint of an earlier version cannot be used; start over with a new checkpoint "
                "and a new folder for the matches"
            )
        self._look()
        self._commit(self._results(self._plan.packs(arrived), self._order(number)), number, begin)

    def finish(self, *, flush: bool) -> None:
        """At the end of the input, count the pending matches, or emit them if the input has ended."""
        last, begin = self._last, clock.monotonic()
        if last is None or last.ended:
            return
        packs = self._packs_for(last)
        order = replace(self._order(last.number + 1), ends=True, is_trial=not flush)
        results = self._results(packs, order)
        if flush:
            self._commit(results, last.number + 1, begin, ended=True)
        else:
            pending, left = results.count("matches"), self._left()
            self.progress.pending = pending if left is None else min(pending, left)

    def _packs_for(self, commit: Commit) -> DataFrame:
        """Packs without events, so that each bucket with a state runs."""
        row = {"slot": COUNT, "task": 0, "number": 0, "rows": 0, "data": None}
        return self._packs_of([{"bucket": bucket, **row} for bucket in commit.states])

    # -- rules ---------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check the rules between two micro-batches; a running micro-batch checks them itself."""
        if self._turn.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._turn.release()

    def _look(self) -> None:
        """Apply changes of the rules. A change is a commit, so that a replay applies it too."""
        last, before, members = self._last, self._plan, dict(self._queries.members)
        if last is not None and last.ended:
            return
        change = self._queries.look(None if last is None else last.greatest, self.progress.events)
        self._queries.show(self.progress)
        if change is None:
            return
        self._plan, self._rules = self._plan_of(self._queries), None
        self.progress.changed(change.json())
        seconds = self.progress.seconds_by_rule
        self.progress.seconds_by_rule = {n: took for n, took in seconds.items() if n in self._queries.members}
        if last is not None:
            states = last.states
            if states and before.task.identity != self._plan.task.identity:
                staying = {name for name, own in self._queries.members.items() if members.get(name) == own}
                order = replace(self._order(last.number), change=Change(before.shipped, frozenset(staying)))
                states = self._results(self._packs_for(last), order).states(states)
            counts = {**last.counts, "changes": self.progress.changes}
            commit = replace(
                last,
                identity=self._plan.task.identity,
                states=states,
                counts=counts,
                rules=self._kept_rules(),
            )
            self._commits.add(commit, last)
            self._last = commit
            self._note(commit)
        self.changes.put(change)

    def _kept_rules(self) -> str | None:
        """The file that holds the current rules; written if it does not exist yet."""
        if self._rules is None and (saved := self._queries.saved()) is not None:
            self._rules = f"rules-{uuid.uuid4().hex[:12]}"
            self._commits.place.write(self._rules, signed(saved))
        return self._rules

    # -- what is run ---------------------------------------------------------------------------------------

    def _order(self, number: int) -> Order:
        last = self._last
        return Order(
            number,
            None if last is None else last.greatest,
            self._delay,
            {} if last is None else last.states,
            self._commits.place,
            self._matches(),
            self._aside(),
            self._left(),
        )

    def _results(self, packs: DataFrame, order: Order) -> Results:
        """Run the job, and run it again if it lost a worker."""
        packs.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")  # would make a job of each stage
        rows = packs.repartition(len(self._buckets), "bucket").mapInArrow(
            shipped(Matching(self._plan.shipped, order)), FOUND
        )
        return Results.of(collected(rows))

    def _commit(self, results: Results, number: int, begin: float, *, ended: bool = False) -> None:
        found, last, aside = clock.monotonic(), self._last, self._aside()
        matches = results.tables[MATCHES]
        if (left := self._left()) is not None and matches:
            matches = [pa.concat_tables(matches).slice(0, left)]
        commit = Commit(
            number,
            self._plan.task.identity,
            self.job,
            self._buckets,
            results.greatest(None if last is None else last.greatest),
            {} if ended else results.states({} if last is None else last.states),
            [*self._matches().write(number, matches), *results.files(MATCHES)],
            [] if aside is None else [*aside.write(number, results.tables[ASIDE]), *results.files(ASIDE)],
            self._counts(results) | {"flushed": ended},
            ended,
            self._kept_rules(),
        )
        self._commits.add(commit, last)
        self._last = commit
        self._publish(commit)
        end, progress = clock.monotonic(), self.progress
        progress.batches += 1
        progress.at = datetime.now(UTC)
        progress.batch_seconds, progress.checkpoint_seconds = end - begin, end - found
        progress.rate = (commit.counts["events"] - progress.events) / max(end - begin, 1e-3)
        progress.busy = min((end - begin) / max(end - (self._ended or begin), 1e-3), 1.0)
        self._ended = end
        progress.seconds_by_rule = dict(Counter(progress.seconds_by_rule) + results.seconds)
        self._note(commit)
        self.done.put(copy(progress))

    def _counts(self, results: Results) -> dict[str, Any]:
        counts = self.progress.counts()
        counts |= {name: counts[name] + results.count(name) for name in COUNTED}
        counts["matches"] = self._wanted(counts["matches"])
        return counts | {"by_rule": dict(Counter(counts["by_rule"]) + results.by_rule)}

    def _left(self) -> int | None:
        return None if self._limit is None else max(self._limit - self.progress.matches, 0)

    def _wanted(self, matches: int) -> int:
        return matches if self._limit is None else min(matches, self._limit)

    # -- progress ------------------------------------------------------------------------------------------

    def _note(self, commit: Commit) -> None:
        """Update the progress from a commit."""
        progress = self.progress
        for name, value in commit.counts.items():
            setattr(progress, name, value)
        progress.batch = commit.number
        progress.state_rows = sum(version.rows for version in commit.states.values())
        progress.state_bytes = sum(version.size for version in commit.states.values())
        if commit.greatest is not None:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=commit.greatest)
            now = progress.at or datetime.now(UTC)
            progress.seen(moment, timedelta(microseconds=self._delay), now)

    def close(self) -> None:
        """Release the checkpoint to other jobs."""
        self._commits.close()

    def tell(self, state: State | None = None) -> None:
        """Replace progress.json beside the checkpoint."""
        if state is not None:
            self.progress.state = state
        self.progress.looked = datetime.now(UTC)
        self._place.write(FILE, json.dumps(self.progress.json()).encode() + b"\n")
