"""Tables of other libraries: what is read only when asked for, batches in a list, and the index of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from nestream.model.python_values import a, python_column
from nestream.model.schema import EventError


def is_of(events: Any, package: str, *names: str) -> bool:
    """Whether a value is of a class of a package that need not be installed."""
    return any(
        kind.__name__ in names and package in ("", kind.__module__.partition(".")[0])
        for kind in type(events).__mro__
    )


def is_unread(events: Any) -> bool:
    """Whether the events are still to be read: a lazy frame of Polars, a dataset or a scanner of Arrow."""
    return is_of(events, "polars", "LazyFrame") or is_of(events, "pyarrow", "Dataset", "Scanner")


def read(events: Any) -> Any:
    """The table of events that are still to be read."""
    try:
        return events.collect() if is_of(events, "polars", "LazyFrame") else events.to_table()
    except Exception as problem:  # whatever the library that reads has to say
        raise EventError(
            f"cannot read events from {a(type(events).__name__)}: {problem}\n"
            "  hint: read it yourself, and pass the table"
        ) from problem


def are_batches(events: list[Any]) -> bool:
    """Whether a list holds tables or batches of Arrow, rather than single events."""
    return bool(events) and all(isinstance(each, pa.RecordBatch | pa.Table) for each in events)


def is_frame(events: Any) -> bool:
    """Whether the events are a DataFrame of pandas, which is not imported for it."""
    return type(events).__module__.partition(".")[0] == "pandas" and hasattr(events, "columns")


def from_pandas(frame: Any, time: str | None = None) -> pa.Table:
    """The columns of a frame, and those of its index that have a name of their own.

    An index of times without a name is the `time`, unless the frame has such a column.
    """
    names = [str(name) for name in frame.columns]
    series = [frame.iloc[:, place] for place in range(len(names))]
    for name, level in _index(frame, names, time):
        names.append(name)
        series.append(level)
    columns = [_column(name, values) for name, values in zip(names, series, strict=True)]
    if not len(frame):  # pandas takes floats where it knows nothing
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
