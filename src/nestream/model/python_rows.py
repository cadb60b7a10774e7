"""Rows of a table as Python values, for texts and pages; times finer than a microsecond need no pandas.

Arrow returns such times as timestamps of pandas, and fails where pandas is not installed.

>>> import pyarrow as pa
>>> from nestream.model.python_rows import python_rows
>>> python_rows(pa.table({"n": [1], "at": pa.array([1_000], pa.timestamp("ns"))}))[0]["n"]
1
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def python_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a table, each a dictionary; a time that Python cannot hold is text, as in JSON."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (ValueError, OverflowError):
        names = table.column_names
        return [
            {name: python_value(table.column(name)[row]) for name in names} for row in range(table.num_rows)
        ]
    return rows


def python_value(scalar: pa.Scalar) -> Any:
    """The Python value of a scalar; a time that Python cannot hold is text, as in JSON."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        pass
    if isinstance(scalar, pa.StructScalar):
        return {field.name: python_value(scalar[place]) for place, field in enumerate(scalar.type)}
    if isinstance(scalar, pa.ListScalar):
        return [python_value(item) for item in scalar.values]
    if pa.types.is_duration(scalar.type):
        return scalar.value / 1e9
    return str(scalar.cast(pa.string()).as_py()).replace(" ", "T", 1)
