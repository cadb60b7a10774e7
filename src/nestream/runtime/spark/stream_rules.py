"""The queries of a job on Spark: fixed, or rules that change between two micro-batches.

The driver tries a change on a stream without events that is as far in time as the buckets. That decides what
is refused, and since when each new rule sees events: the same for all buckets, whatever they hold.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from nestream.job.live_rules import Change, LiveRules
from nestream.job.progress import Progress as JobProgress
from nestream.model.schema import EventError, Schema
from nestream.model.time import Duration
from nestream.runtime.arrivals import Arrivals, Compiler
from nestream.runtime.compiled import Compiled
from nestream.runtime.layers import RunningLayer
from nestream.runtime.progress import layers_of
from nestream.runtime.spark.partitioning import Partitioning, keeps
from nestream.runtime.spark.stream import stream_partitioning
from nestream.runtime.state import SavedState

Compilers = Callable[[DataFrame], tuple[Schema, Callable[[Any], Compiler]]]
"""From a DataFrame of events to their schema, and to how queries are compiled for them."""


class FixedQueries:
    """A query or a set that does not change."""

    versions = None

    def __init__(self, compiled: Compiled, identity: str) -> None:
        self.compiled, self.identity = compiled, identity
        self.partitioning = stream_partitioning(compiled.scope)
        self.types = compiled.scope.types
        """The event types in the order of their numbers, which waiting events use."""
        self.members: Mapping[str, str] = {}

    def look(self, greatest: int | None, events: int) -> Change | None:
        """Nothing changes."""
        return None

    def show(self, progress: JobProgress) -> None:
        """There are no rules to show."""

    def saved(self) -> dict[str, Any] | None:
        """Nothing is kept."""
        return None


class ChangingRules:
    """Rules from a source of rules, as the buckets run them.

    A checkpoint says how events are split; a new stream is `split` by a key if there is one.
    """

    def __init__(
        self,
        live: LiveRules,
        schema: Schema,
        compiler_of: Callable[[Any], Compiler],
        delay: int,
        saved: Mapping[str, Any] | None,
        split: bool,
    ) -> None:
        self._live = live
        live.begin(None if saved is None else saved["rules"])
        self._compiler_of = compiler_of
        self._arrivals = Arrivals(
            compiler_of(live.start()),
            time=schema.time,
            type=schema.type,
            lateness=Duration(delay),
            schema=schema,
        )
        state = None if saved is None else SavedState.from_bytes(base64.b64decode(saved["state"]))
        if saved is None or state is None or state.query != self.identity:  # refused when states are opened
            self._progress = self._arrivals.begin()
            self.partitioning = stream_partitioning(self.compiled.scope, None if split else "single")
            self.types = self.compiled.scope.types
        else:
            self._progress = self._arrivals.begin(since=state.numbers["since"])
            self._progress.load(state.numbers, state.tables)
            self.partitioning, self.types = Partitioning(**saved["partitioning"]), tuple(saved["types"])

    @property
    def compiled(self) -> Compiled:
        """The running rules, each with the time since which it sees events."""
        return self._progress.run.compiled

    @property
    def identity(self) -> str:
        """What the state of a bucket must agree with."""
        return self._arrivals.compiler.identity

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions of the running rules."""
        return self._live.running.versions

    @property
    def members(self) -> Mapping[str, str]:
        """The identities of the running rules."""
        return self._arrivals.compiler.members

    def show(self, progress: JobProgress) -> None:
        """Show which rules run, and which are refused."""
        self._live.show(progress)

    def saved(self) -> dict[str, Any] | None:
        """The rules, and since when each sees events."""
        numbers, tables = self._progress.save()
        state = SavedState(self.identity, numbers, tables).to_bytes()
        return {
            "rules": self._live.json(),
            "state": base64.b64encode(state).decode(),
            "partitioning": vars(self.partitioning),
            "types": self.types,
        }

    # -- changes -------------------------------------------------------------------------------------------

    def look(self, greatest: int | None, events: int) -> Change | None:
        """Check the rules, and apply what has changed and fits."""
        self._greatest, self._events = greatest, events
        return self._live.look(self)

    def change(self, queries: Any) -> dict[str, Any]:
        """Continue with other rules; raises if they do not fit, and then nothing has changed."""
        compiler, before = self._compiler_of(queries), self._arrivals.compiler
        self._pass_time()
        arrivals = self._arrivals.changed(compiler)
        progress, joined = arrivals.take_over(self._progress, before)
        self._check(progress.run.compiled)
        self._arrivals, self._progress = arrivals, progress
        if {*self.types} != {*self.compiled.scope.types}:
            self.types = self.compiled.scope.types
        return {name: progress.since(name) for name in joined}

    def _pass_time(self) -> None:
        """Advance to where the buckets are. Where windows count events, these count as passed."""
        progress = self._progress
        if self._greatest is None:
            return
        for layer in layers_of(progress.run).values():
            run = layer.run if isinstance(layer, RunningLayer) else layer
            run.store.seen = self._events
        progress.greatest = self._greatest * progress.run.schema.per_microsecond
        for _ in progress.decided():
            raise AssertionError("there are no events yet, so there are no matches")

    def _check(self, compiled: Compiled) -> None:
        """Raise if the events would have to be split differently from those that are held."""
        if not keeps(compiled.scope, self.partitioning):
            key = self.partitioning.key
            raise EventError(
                f"this stream splits its events by `{key}`, and a match of this rule may have events with "
                f"several values of it\n"
                f"  hint: compare `{key}` in the rule, or start over with --partitions 1 to run any rule"
            )


JobQueries: TypeAlias = FixedQueries | ChangingRules
"""What a job runs now, and what it runs next."""
