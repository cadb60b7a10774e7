"""What a bucket of a stream does with its events: late ones leave, the others wait, and time decides matches.

Both the stateful operator of `query.match(df)` and the jobs of `nestream stream` drive buckets with this.
They differ in where the state is and in who knows the watermark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from nestream.model.columns import computable
from nestream.model.query_set_table import with_versions
from nestream.runtime.local import LocalRun
from nestream.runtime.progress import Progress
from nestream.runtime.spark.batch import CODE, Task
from nestream.runtime.spark.stream_bucket import Bucket, Cells
from nestream.runtime.spark.stream_pack import AHEAD, FUTURE, LATE, MALFORMED, MATCHES, REASONS, packed
from nestream.runtime.state import SavedState

ROWS_A_PACK = 1 << 16
"""How many matches leave in one pack."""
LATE_REASON = "before the watermark"


class Found(NamedTuple):
    """A pack that leaves a bucket: matches, or events that were not taken and why."""

    kind: str
    rows: int
    reason: str | None
    data: bytes | None


@dataclass(frozen=True)
class StreamTask:
    """What a bucket needs to know; it is sent to the workers.

    `carried` are the columns of the packs. With `whole`, late and malformed events leave with all their
    columns.
    """

    task: Task
    identity: str
    carried: pa.Schema
    whole: bool
    versions: Mapping[str, int] | None = None
    """The versions of the queries of a set that may change."""

    @classmethod
    def of(
        cls,
        task: Task,
        events: pa.Schema,
        identity: str,
        buckets: tuple[int, ...],
        *,
        whole: bool,
        unread: Iterable[pa.Field] = (),
        versions: Mapping[str, int] | None = None,
    ) -> StreamTask:
        """The task of a query over events of a schema."""
        names = [name for name in events.names if whole or (name in task.columns and name != task.type)]
        code = pa.field(CODE, pa.string() if task.scope.any_type else pa.int16())
        carried = pa.schema([*(events.field(name) for name in names), *unread, code])
        read = ", ".join(f"{name} {events.field(name).type}" for name in task.columns)
        key = task.partitioning.key
        dealt = "1" if key is None else f"{len(buckets)} by {key}: {', '.join(map(str, buckets))}"
        if key in events.names and pa.types.is_decimal(events.field(key).type):
            dealt = dealt.replace(" by ", " by double ", 1)
        return cls(task, f"{identity}\nEVENTS {read}\nBUCKETS {dealt}", carried, whole, versions)

    @property
    def wanted(self) -> pa.Schema:
        """The columns of the matches."""
        return self._versioned(self.task.wanted.empty_table()).schema

    def _versioned(self, matches: pa.Table) -> pa.Table:
        return matches if self.versions is None else with_versions(matches, self.versions)

    # -- buckets -------------------------------------------------------------------------------------------

    def bucket(self) -> Bucket:
        """A bucket without events."""
        return Bucket(self.task.run(self._schema))

    def restored(self, saved: SavedState, cells: Cells) -> Bucket:
        """A bucket from its saved state."""
        return Bucket.restored(self.task.run(self._schema), saved, cells, self.task.time)

    def changed(self, bucket: Bucket, before: StreamTask, staying: Collection[str]) -> Bucket:
        """A bucket of `before` that continues with the queries of this task; some may stay as they are."""
        found = self.bucket()
        Progress(bucket.run, 0).going_on(found.run, 0, (), staying)
        if not isinstance(found.run, LocalRun):
            found.run.expire()
        found.waiting = bucket.waiting.mapped(lambda events: self._coded(events, before))
        return found

    def _coded(self, events: pa.Table, before: StreamTask) -> pa.Table:
        """Waiting events, with types numbered as in this task."""
        place, kind = events.schema.get_field_index(CODE), self.carried.field(CODE).type
        names = pc.cast(before.task.type_names(events.column(CODE).combine_chunks()), pa.string())
        codes = names
        if not self.task.scope.any_type:
            types = self.task.types
            codes = pc.fill_null(pc.index_in(names, pa.array(types, pa.string())), len(types)).cast(kind)
        return events.set_column(place, pa.field(CODE, kind), codes)

    def take(self, bucket: Bucket, events: pa.Table, watermark: int | None) -> Iterator[Found]:
        """Let the events wait; yield the late ones."""
        times = computable(events.column(self.task.time), self.task.schema.unit, self.task.time).to_numpy(
            zero_copy_only=False
        )
        if watermark is not None and (times < watermark).any():
            late = times < watermark
            behind = events.filter(pa.array(late)).combine_chunks()
            yield Found(LATE, behind.num_rows, LATE_REASON, packed(behind) if self.whole else None)
            events, times = events.filter(pa.array(~late)), times[~late]
        bucket.waiting.add(self._needed(events), times)

    def settle(self, bucket: Bucket, watermark: int) -> Iterator[Found]:
        """The matches that are decided once the watermark is reached."""
        for table in bucket.settle(watermark, self._typed):
            for begin in range(0, table.num_rows, ROWS_A_PACK):
                part = self._versioned(table.slice(begin, ROWS_A_PACK).cast(self.task.wanted))
                yield Found(MATCHES, part.num_rows, None, packed(part.combine_chunks()))

    def malformed(self, pack: Any) -> Found:
        """A pack of events that cannot be used, with their common reason."""
        shared = REASONS.get(pack.slot)
        reason = None if shared is None else shared.format(time=self.task.time, type=self.task.type)
        return Found(FUTURE if pack.slot == AHEAD else MALFORMED, pack.rows, reason, pack.data)

    # -- columns -------------------------------------------------------------------------------------------

    def _needed(self, events: pa.Table) -> pa.Table:
        """The columns that the engine needs."""
        names = [name for name in self.task.columns if name != self.task.type]
        return events.select([*names, CODE])

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events as the engine takes them, with type names."""
        task = self.task
        types = task.type_names(batch.column(CODE))
        return pa.RecordBatch.from_pydict(
            {name: types if name == task.type else batch.column(name) for name in task.columns}
        )

    @property
    def _schema(self) -> pa.Schema:
        (empty,) = self._needed(self.carried.empty_table()).combine_chunks().to_batches(1) or (
            pa.RecordBatch.from_pylist([], self._needed(self.carried.empty_table()).schema),
        )
        return self._typed(empty).schema
