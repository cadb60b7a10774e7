"""Reads lines of flat JSON objects as a table, by Arrow all at once and not one by one.

Arrow's reader accepts more than JSON lines (NaN, several objects per line, one object over several lines),
and crashes on some input, such as the line `null`. So it only gets lines that are certainly one flat object
each or no JSON at all. If the result is None, the caller reads the lines one by one and finds out what is
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

FEWEST = 16
"""Fewer lines are faster to read one by one."""
EXACT = 2**53
"""From here on, integers are not all exact as floats."""


def read_flat(lines: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
    """The lines as a table with these columns of strings, integers, floats and booleans.

    None if a line is not a flat object, has a member that is not in the schema, or a value that the column
    does not take unchanged.
    """
    if len(lines) < FEWEST:
        return None
    data = b"\n".join(lines)
    if not _is_flat(data, len(lines)):
        return None
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    try:
        if not data.isascii():
            data.decode()
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=options,
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    return table if len(table) == len(lines) and all(map(_are_plain, floats)) else None


def written_type(wanted: pa.DataType) -> pa.DataType:
    """The JSON type of the values of an Arrow type: numbers, booleans, or otherwise strings."""
    if pa.types.is_integer(wanted):
        return pa.int64()
    if pa.types.is_floating(wanted):
        return pa.float64()
    return wanted if pa.types.is_boolean(wanted) else pa.string()


def _is_flat(data: bytes, lines: int) -> bool:
    """Whether each line has one opening brace, at its start, and one closing brace, at its end.

    Then there is nothing beside the object, and nothing is nested. Escapes such as `\\ud800` are excluded
    too.
    """
    return (
        data.startswith(b"{")
        and data.endswith(b"}")
        and data.count(b"\n") == lines - 1 == data.count(b"}\n{")
        and data.count(b"{") == lines == data.count(b"}")
        and b"[" not in data
        and b"\\u" not in data
    )


def _are_plain(column: pa.ChunkedArray) -> bool:
    """Whether each number is as it was written: an integer may be too large for a float, or be -0."""
    values = pc.drop_null(column).to_numpy()
    return bool((np.abs(values) < EXACT).all()) and not bool((np.signbit(values) & (values == 0)).any())
