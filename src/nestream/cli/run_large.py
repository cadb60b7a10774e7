"""`nestream run` over a large file: matches events as they are read, without holding them for long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nestream import Queries, Query
from nestream.source import EventFiles


class LargeRun:
    """A query over events in time order; its matches are those of `Query.batches`, in order."""

    def __init__(self, parsed: Query, reader: EventFiles, stream: Any, time: str, type: str) -> None:
        self._parsed, self._reader, self._stream = parsed, reader, stream
        self._time, self._type = time, type
        self._types: dict[str, None] = {}

    @classmethod
    def of(cls, parsed: Query | Queries, reader: EventFiles, *, strategy: str, **how: Any) -> LargeRun | None:
        """The run; None if the events or the query need all events at once."""
        if isinstance(parsed, Queries) or strategy == "reference" or parsed.undeclared:
            return None
        if not reader.can_be_streamed:
            return None
        stream = parsed.stream(schema=reader.schema, strategy=strategy, **how)
        return cls(parsed, reader, stream, how["time"], how["type"]) if stream.is_prompt else None

    def matches(self) -> Iterator[pa.Table]:
        """The matches; the first table is empty and has the columns."""
        rest = pa.table({field.name: pa.array([], field.type) for field in self._reader.schema})
        yield self._stream.push_batch(rest)
        for batch in self._reader:
            names = pc.unique(batch.column(self._type)).to_pylist()
            self._types |= {str(name): None for name in names if name is not None}
            events = pa.concat_tables([rest, pa.Table.from_batches([batch])])
            whole = _before_last_time(events.column(self._time))
            rest = events.slice(whole)
            if whole:
                yield self._stream.push_batch(events.slice(0, whole))
        yield self._stream.push_batch(rest)
        yield self._stream.finish_batch()

    def unseen(self) -> list[str]:
        """Messages about the types that no event has."""
        return self._parsed.unseen(pa.table({self._type: list(self._types)}), self._type)


def _before_last_time(times: pa.ChunkedArray) -> int:
    """How many events are before the last time; events of one time are matched together, and so ordered."""
    numbers = times.cast(pa.int64()).to_numpy()
    return int(np.searchsorted(numbers, numbers[-1], "left")) if len(numbers) else 0
