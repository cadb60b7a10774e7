"""Orders, saves, restores and describes the events that an engine holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.distinct import EmittedMatches
from nestream.engine.event_buffer import EventBuffer
from nestream.engine.keeper import Keeper
from nestream.engine.program import Program
from nestream.model.columns import times_of
from nestream.model.event_types import said_types
from nestream.model.schema import Schema

POSITION, TIME, TYPE = "nestream position", "nestream time", "nestream type"
"""The extra columns of events in a saved state."""


def in_order(events: pa.Table, schema: Schema) -> pa.Table:
    """The events by time and arrival; checked chunk by chunk, because most tables are already in order."""
    column = events.column(schema.time)
    last: int | None = None
    for chunk in column.chunks:
        times = times_of(chunk, schema)
        if len(times) and ((times[1:] < times[:-1]).any() or (last is not None and times[0] < last)):
            return events.take(pa.array(np.argsort(times_of(column, schema), kind="stable")))
        last = int(times[-1]) if len(times) else last
    return events


def saved_events(store: EventBuffer) -> pa.Table:
    """The held events, with their positions, times and types."""
    store.seal()
    held = store.payload.append_column(POSITION, pa.array(store.pos + store.base))
    return held.append_column(TIME, pa.array(store.ts)).append_column(TYPE, store.type_names())


def restore_events(store: EventBuffer, seen: int, held: pa.Table) -> None:
    """Hold the saved events again."""
    store.seen = seen
    store.restore(
        held.select(store.columns),
        pa.array(held.column(TYPE).to_pylist(), pa.string()),
        held.column(TIME).to_numpy(),
        held.column(POSITION).to_numpy(),
    )


def saved_emitted(emitted: EmittedMatches) -> pa.Table:
    """The emitted matches of a projection, as a table of positions."""
    width = emitted.positions.shape[1]
    names = [str(place) for place in range(width)]
    return pa.table([np.ascontiguousarray(emitted.positions[:, n]) for n in range(width)], names)


def restored_emitted(table: pa.Table) -> npt.NDArray[np.int64]:
    """The positions from a saved table."""
    return np.column_stack([column.to_numpy() for column in table.columns])


KEPT = pa.schema(
    [
        ("what", pa.string()),
        ("key", pa.string()),
        ("end", pa.int64()),
        ("until", pa.int64()),
        ("start", pa.int64()),
        ("positions", pa.list_(pa.int64())),
    ]
)
"""The columns of what KEEP holds and remembers, in a saved state."""


def saved_keeper(keeper: Keeper) -> pa.Table:
    """What KEEP holds and remembers, as a table."""
    return pa.Table.from_pylist(keeper.save(), KEPT)


def describe_events(store: EventBuffer, programs: Sequence[Program], watermark: int | None) -> dict[str, Any]:
    """What is held, for a person or a monitor."""
    store.seal()
    return {
        "events": len(store),
        "leaves": {label: len(store.leaf_rows[leaf]) for label, leaf in _labels(store, programs)},
        "bytes": store.payload.nbytes + store.pos.nbytes + store.ts.nbytes + store.type.nbytes,
        "oldest": store.ts[0].item() if len(store) else None,
        "watermark": watermark,
        "position": store.seen,
    }


def _labels(store: EventBuffer, programs: Sequence[Program]) -> Iterator[tuple[str, int]]:
    """A name for each leaf: its types and, for a single query, its variables."""
    users: dict[int, list[str]] = {}
    for program in programs:
        for outline in program.outlines:
            for name, leaf in outline.read:
                names = users.setdefault(leaf, [])
                if name not in names:
                    names.append(name)
    for leaf, names in users.items():
        own = f" {', '.join(names)}" if len(programs) == 1 else f" #{leaf}"
        yield f"{said_types(store.leaves[leaf].types, ' | ')}{own}", leaf
