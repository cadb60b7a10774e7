"""The state of one key bucket of a stream: an engine and the waiting events, both kept as chunks.

A bucket is stored as a small header and chunks of Arrow data. A chunk is written once and removed whole:

- waiting chunks hold events as they arrived, after the watermark of their time. Which of them still wait is
  known from the watermark in the header, so a chunk is not rewritten when some of its events are settled;
- held chunks hold the events that the engine holds, in order. Small neighbours are merged, but never over
  more than a fraction of the window, so that a chunk expires soon after its first event.

A worker keeps the engines it has run. The header has a new token in each version, so an engine is reused only
if it is exactly the one that the state describes; otherwise the chunks are read.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from nestream.engine.program import Measure
from nestream.model.columns import computable
from nestream.runtime.local import LocalRun
from nestream.runtime.reorder_buffer import ReorderBuffer
from nestream.runtime.runs import AnyRun
from nestream.runtime.saved_events import POSITION, TIME, TYPE
from nestream.runtime.spark.stream_pack import packed, unpacked
from nestream.runtime.state import SavedState, StateError

CHUNKS_A_WINDOW = 8
MOST_ROWS = 1 << 18
KEPT_BYTES = 1 << 28
"""How many bytes of engines a worker keeps."""


class Cells(Protocol):
    """The storage of a bucket: the state store, behind numbers and bytes."""

    def header(self) -> bytes | None:
        """The header; None if nothing is stored."""

    def set_header(self, data: bytes) -> None:
        """Write the header."""

    def chunk(self, number: int) -> bytes:
        """Read a chunk."""

    def set_chunk(self, number: int, data: bytes) -> None:
        """Write a chunk."""

    def remove_chunk(self, number: int) -> None:
        """Remove a chunk."""

    def clear(self) -> None:
        """Remove everything."""


@dataclass(frozen=True)
class Chunk:
    """A chunk of held events: its number, the position of its first event, and their number."""

    number: int
    first: int
    rows: int


class Bucket:
    """An engine and the events that wait for it."""

    def __init__(self, run: AnyRun) -> None:
        self.run = run
        self.waiting = ReorderBuffer()
        self.token: str | None = None
        self.cells: Cells | None = None
        """Where it was last saved, if that is worth keeping with it."""
        self.timer: int | None = None
        self._held: list[Chunk] = []
        self._written: dict[int, int] = {}
        """For each waiting part, the chunk that holds it."""
        self._saved = 0
        """The position up to which held events are written."""
        self._next = 0

    # -- events in, matches out ----------------------------------------------------------------------------

    def settle(self, watermark: int, typed: Any) -> Iterator[pa.Table]:
        """Pass the engine the events that the watermark has reached; yield what is then decided."""
        ready = self.waiting.settled(watermark)
        batches = [typed(batch) for batch in ready.to_batches()] if ready is not None else []
        if batches:
            self.run.plan_for(pa.Table.from_batches(batches))
        for batch in batches:
            self.run.append(batch)
        return self.run.advance(watermark, in_order=False)

    @property
    def due(self) -> int | None:
        """The least watermark at which there is something to do without another event."""
        moments = [moment for moment in (self.waiting.first, self.run.due()) if moment is not None]
        return min(moments, default=None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left that a later event could match with."""
        counts = self.run.program.measure is Measure.EVENTS
        return not counts and not self.waiting.parts and self.run.is_empty

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds spent on finding the matches of each query of a set, in this process."""
        return {} if isinstance(self.run, LocalRun) else self.run.seconds

    @property
    def rows(self) -> int:
        """The number of held events, including waiting ones."""
        return len(self.waiting) + len(self.run.store)

    # -- state ---------------------------------------------------------------------------------------------

    def save(self, identity: str, cells: Cells) -> None:
        """Write what has changed."""
        numbers, tables = self.run.save()
        held = tables.pop("held")
        self._save_held(held, cells)
        self._save_waiting(cells)
        self.token = uuid.uuid4().hex
        numbers = {
            **numbers,
            "first": held.column(POSITION)[0].as_py() if held.num_rows else 0,
            "held": [[chunk.number, chunk.first, chunk.rows] for chunk in self._held],
            "waiting": [self._written[part.number] for part in self.waiting.parts],
            "next": self._next,
            "token": self.token,
            "timer": self.timer,
        }
        cells.set_header(SavedState(identity, numbers, tables).to_bytes())

    def _save_held(self, held: pa.Table, cells: Cells) -> None:
        positions = held.column(POSITION).to_numpy()
        first = int(positions[0]) if len(positions) else self.run.store.seen
        ends = [chunk.first for chunk in self._held[1:]] + [self._saved]
        gone = sum(end <= first for end in ends[: len(self._held)])
        for chunk in self._held[:gone]:
            cells.remove_chunk(chunk.number)
        self._held = self._held[gone:]
        start = int(np.searchsorted(positions, self._saved))
        self._saved = self.run.store.seen
        if start == len(positions):
            return
        times = held.column(TIME).to_numpy()
        while self._held and self._joins(self._held[-1], len(positions) - start, times):
            last = self._held.pop()
            start = int(np.searchsorted(positions, last.first))
            cells.remove_chunk(last.number)
        held = held.set_column(held.schema.get_field_index(TYPE), TYPE, held.column(TYPE).dictionary_encode())
        for begin in range(start, len(positions), MOST_ROWS):
            part = held.slice(begin, MOST_ROWS)
            self._held.append(Chunk(self._next, int(positions[begin]), part.num_rows))
            cells.set_chunk(self._next, packed(part))
            self._next += 1

    def _joins(self, chunk: Chunk, rows: int, times: Any) -> bool:
        """Whether the last chunk is rewritten together with as many rows after it."""
        program = self.run.program
        if chunk.rows > rows or chunk.rows + rows > MOST_ROWS:
            return False
        oldest = times[max(len(times) - rows - chunk.rows, 0)]
        return program.measure is not Measure.TIME or bool(
            times[-1] - oldest <= program.window // CHUNKS_A_WINDOW
        )

    def _save_waiting(self, cells: Cells) -> None:
        parts = self.waiting.parts
        present = {part.number for part in parts}
        for number in [number for number in self._written if number not in present]:
            cells.remove_chunk(self._written.pop(number))
        for part in parts:
            if part.number not in self._written:
                self._written[part.number] = self._next
                cells.set_chunk(self._next, packed(part.table))
                self._next += 1

    @classmethod
    def restored(cls, run: AnyRun, saved: SavedState, cells: Cells, time: str) -> Bucket:
        """The bucket that a header and its chunks describe."""
        bucket, numbers = cls(run), saved.numbers
        _, fresh = run.save()
        tables = [fresh["held"]]
        for number, first, rows in numbers["held"]:
            bucket._held.append(Chunk(number, first, rows))
            table = unpacked(cells.chunk(number))
            gone = int(np.searchsorted(table.column(POSITION).to_numpy(), numbers["first"]))
            table = table.slice(gone)
            names = table.column(TYPE).cast(pa.string())
            tables.append(table.set_column(table.schema.get_field_index(TYPE), TYPE, names))
        held = pa.concat_tables([table for table in tables if table.num_rows] or tables[:1])
        run.load(numbers, {**saved.tables, "held": held})
        bucket._saved = run.store.seen
        bucket._next = numbers["next"]
        bucket.token, bucket.timer = numbers["token"], numbers["timer"]
        for number in numbers["waiting"]:
            table = unpacked(cells.chunk(number))
            times = computable(table.column(time), run.schema.unit, time).to_numpy(zero_copy_only=False)
            if run.watermark is not None:
                later = times > run.watermark
                if not later.all():
                    table, times = table.filter(pa.array(later)), times[later]
            bucket._written[bucket.waiting.arrivals] = number
            bucket.waiting.add(table, times)
        return bucket


class Kept:
    """The buckets that this worker ran most recently, within a number of bytes."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, int], tuple[Bucket, int]] = OrderedDict()

    def take(self, identity: str, number: int, token: str) -> Bucket | None:
        """Remove and return the bucket of exactly that version."""
        found = self._buckets.pop((identity, number), None)
        return found[0] if found is not None and found[0].token == token else None

    def keep(self, identity: str, number: int, bucket: Bucket) -> None:
        """Keep a saved bucket."""
        size = bucket.run.store.payload.nbytes + sum(table.nbytes for table in bucket.waiting.tables())
        self._buckets[identity, number] = bucket, size
        while sum(size for _, size in self._buckets.values()) > KEPT_BYTES:
            self._buckets.popitem(last=False)


KEPT = Kept()


def saved_state(data: bytes, identity: str) -> SavedState:
    """Read a header; raises `StateError` if it belongs to another query."""
    saved = SavedState.from_bytes(data)
    check_identity(saved.query, identity)
    return saved


def check_identity(saved: str, identity: str) -> None:
    """Raise `StateError` if a checkpoint belongs to another query."""
    if saved != identity:
        raise StateError(
            "the checkpoint belongs to another query\n"
            f"  it was written by:\n{_indented(saved)}\n  and this is:\n{_indented(identity)}\n"
            "  hint: start the changed query with a new checkpoint, or continue with the old query"
        )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
