"""The stateful operator of a stream: packs of events in, packs of matches, late and malformed events out.

It drives the engine with Spark's watermark. An event is late if its time is before the watermark of the
micro-batch it arrives in. Spark computes the watermark from all events of earlier micro-batches. So an event
that is behind by at most the allowed delay is never late, however the stream is cut into micro-batches. All
other events wait until the watermark reaches them, and the engine takes them by time and arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from nestream.runtime.spark.stream_bucket import KEPT, Bucket, saved_state
from nestream.runtime.spark.stream_pack import EVENTS, GUARD, unpacked
from nestream.runtime.spark.stream_task import StreamTask
from nestream.runtime.state import SavedState

_NUMBER = StructType([StructField("number", LongType())])
_BYTES = StructType([StructField("data", BinaryType())])


class _Cells:
    """The state of one bucket in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._header = handle.getValueState("header", _BYTES)
        self._chunks = handle.getMapState("chunks", _NUMBER, _BYTES)

    def header(self) -> bytes | None:
        found = self._header.get()
        return None if found is None else bytes(found[0])

    def set_header(self, data: bytes) -> None:
        self._header.update((data,))

    def chunk(self, number: int) -> bytes:
        found = self._chunks.getValue((number,))
        assert found is not None, f"chunk {number} is missing in the checkpoint"
        return bytes(found[0])

    def set_chunk(self, number: int, data: bytes) -> None:
        self._chunks.updateValue((number,), (data,))

    def remove_chunk(self, number: int) -> None:
        self._chunks.removeKey((number,))

    def clear(self) -> None:
        self._header.clear()
        self._chunks.clear()


class Operator(StatefulProcessor):
    """Runs the engine of each bucket."""

    def __init__(self, task: StreamTask) -> None:
        self._task = task
        self._handle: Any = None
        self._cells: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called once per task."""
        self._handle = handle
        self._cells = _Cells(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Take the packs of a bucket."""
        packs = sorted(rows, key=lambda pack: (pack.task, pack.number))
        if key[0] == GUARD:
            return self._guarded(packs)
        events = pa.concat_tables(unpacked(pack.data) for pack in packs)
        return self._handled(key[0], events, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Advance a bucket without new events: time has passed."""
        expired = expiredTimerInfo.getExpiryTimeInMs()
        return self._handled(key[0], None, timerValues.getCurrentWatermarkInMs(), expired)

    def close(self) -> None:
        """Called at the end of a task."""

    def _guarded(self, packs: Iterable[Any]) -> Iterator[Row]:
        """Check that the checkpoint belongs to this query, and pass on what cannot be read."""
        header = self._cells.header()
        if header is None:
            self._cells.set_header(SavedState(self._task.identity, {}, {}).to_bytes())
        else:
            saved_state(header, self._task.identity)
        for pack in packs:
            if pack.slot < 0:
                yield Row(**self._task.malformed(pack)._asdict())
            else:
                yield Row(kind=EVENTS, rows=pack.rows, reason=None, data=None)

    def _handled(
        self, number: int, events: pa.Table | None, watermark_ms: int, expired: int | None = None
    ) -> Iterator[Row]:
        bucket = self._bucket(number)
        scale = 1000 * self._task.task.schema.per_microsecond
        watermark = watermark_ms * scale if watermark_ms > 0 else None
        if events is not None:
            for found in self._task.take(bucket, events, watermark):
                yield Row(**found._asdict())
        if watermark is not None:
            for found in self._task.settle(bucket, watermark):
                yield Row(**found._asdict())
        self._save(number, bucket, watermark_ms, scale, expired)

    def _bucket(self, number: int) -> Bucket:
        header = self._cells.header()
        if header is None:
            return self._task.bucket()
        saved = saved_state(header, self._task.identity)
        kept = KEPT.take(self._task.identity, number, saved.numbers["token"])
        return kept if kept is not None else self._task.restored(saved, self._cells)

    def _save(self, number: int, bucket: Bucket, watermark_ms: int, scale: int, expired: int | None) -> None:
        """Write the bucket and set the timer.

        A timer expires when the watermark reaches it, or in some versions of Spark when it passes it. So it
        is set a millisecond early, but always after the current watermark, or it would expire at once and be
        lost.
        """
        due = bucket.due
        timer = None if due is None else max(-(-due // scale) - 1, watermark_ms + 1)
        if timer != bucket.timer or bucket.timer == expired:
            if bucket.timer is not None and bucket.timer != expired:
                self._handle.deleteTimer(bucket.timer)
            if timer is not None:
                self._handle.registerTimer(timer)
            bucket.timer = timer
        if bucket.is_empty:
            self._cells.clear()
            return
        bucket.save(self._task.identity, self._cells)
        KEPT.keep(self._task.identity, number, bucket)
