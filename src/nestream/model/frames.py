"""Tables of other libraries: lazy frames, batches in a list, and the index of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from nestream.model.python_values import a, python_column
from nestream.model.schema import EventError


def is_of(events: Any, package: str, *names: str) -> bool:
    """Whether a value is of a class in a package that need not be installed."""
    return any(
        kind.__name__ in names and package in ("", kind.__module__.partition(".")[0])
        for kind in type(events).__mro__
    )


def is_unread(events: Any) -> bool:
    """Whether the events are lazy: a Polars LazyFrame, or an Arrow dataset or scanner."""
    return is_of(events, "polars", "LazyFrame") or is_of(events, "pyarrow", "Dataset", "Scanner")


def read(events: Any) -> Any:
    """Read lazy events into a table."""
    try:
        return events.collect() if is_of(events, "polars", "LazyFrame") else events.to_table()
    except Exception as problem:  # whatever error the library raises
        raise EventError(
            f"cannot read events from {a(type(events).__name__)}: {problem}\n"
            "  hint: read it yourself, and pass the table"
        ) from problem


def are_batches(events: list[Any]) -> bool:
    """Whether a list holds Arrow tables or batches, and not single events."""
    return bool(events) and all(isinstance(each, pa.RecordBatch | pa.Table) for each in events)


def is_frame(events: Any) -> bool:
    """Whether the events are a pandas DataFrame; does not import pandas."""
    return type(events).__module__.partition(".")[0] == "pandas" and hasattr(events, "columns")


def from_pandas(frame: Any, time: str | None = None) -> pa.Table:
    """The columns of a frame, and those of its index that have names.

    An unnamed index of times is the `time`, unless the frame has such a column.
    """
    names = [str(name) for name in frame.columns]
    series = [frame.iloc[:, place] for place in range(len(names))]
    for name, level in _index(frame, names, time):
        names.append(name)
        series.append(level)
    columns = [_column(name, values) for name, values in zip(names, series, strict=True)]
    if not len(frame):  # pandas assumes floats where it knows nothing
        columns = [pa.nulls(0) if pa.types.is_floating(column.type) else column for column in columns]
    return pa.table(columns, names=names)


def _index(frame: Any, names: list[str], time: str | None) -> Iterator[tuple[str, Any]]:
    for place, name in enumerate(frame.index.names):
        level = frame.index.get_level_values(place)
        if name is None and is_of(level, "pandas", "DatetimeIndex"):
            name = time
        if name is not None and str(name) not in names:
            yield str(name), level.to_series()


def _column(name: str, series: Any) -> pa.Array:
    if series.dtype == object:
        values = [value if known else None for value, known in zip(series, series.notna(), strict=True)]
        return python_column(name, values)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as problem:
        raise EventError(
            f"column `{name}` holds {series.dtype}, which Arrow cannot hold: {problem}\n"
            "  hint: convert the column, or leave it out"
        ) from None
