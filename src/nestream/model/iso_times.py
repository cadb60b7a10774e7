"""Times as text: turns a column of ISO 8601 text into timestamps."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nestream.model.lazy import pc
from nestream.model.plain import is_uuid
from nestream.model.schema import EventError, Kind, kind_of
from nestream.model.wording import cut

_CLOCK: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?"
_LOCAL: Final = f"^{_CLOCK}$"
_ZONED: Final = rf"^{_CLOCK} ?(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$"


def with_times(table: pa.Table, time: str) -> pa.Table:
    """The events with timestamps in place of text; raises an `EventError` for text that is not a time."""
    place = table.schema.get_field_index(time)
    datatype = pa.null() if place < 0 else table.schema.field(place).type
    if kind_of(datatype) is not Kind.STRING or is_uuid(datatype):
        return table
    return table.set_column(place, time, _timestamps(table.column(place), time))


def _timestamps(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    texts = column.cast(pa.string())
    zoned = pc.match_substring_regex(texts, _ZONED)
    local = pc.match_substring_regex(texts, _LOCAL)
    nothing = pc.or_(zoned, local)
    if pc.any(pc.invert(nothing)).as_py():
        raise _wrong(texts, pc.index(nothing, False).as_py(), name)
    in_zone = pc.any(zoned).as_py() or False
    if in_zone and pc.any(local).as_py():
        raise EventError(
            f"the time column `{name}` has times with a zone and without: "
            f"{_at(texts, zoned)} and {_at(texts, local)}\n"
            "  hint: write all of them with a zone, or none"
        )
    fine = pc.any(pc.match_substring_regex(texts, "[.][0-9]{7}")).as_py()
    wanted = pa.timestamp("ns" if fine else "us", "UTC" if in_zone else None)
    texts = pc.replace_substring_regex(texts, " ?(Z|[+-][0-9:]{2,5})$", r"\1") if in_zone else texts
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        place = next(place for place, text in enumerate(texts) if not _fits(text, wanted))
        raise _wrong(column, place, name) from None


def _fits(text: pa.Scalar, wanted: pa.DataType) -> bool:
    try:
        pa.chunked_array([pa.array([text.as_py()])]).cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True


def _at(texts: pa.ChunkedArray, mask: pa.ChunkedArray) -> str:
    return repr(texts[pc.index(mask, True).as_py()].as_py())


def _wrong(texts: pa.ChunkedArray, row: int, name: str) -> EventError:
    shown = cut(repr(texts[row].as_py()))
    return EventError(
        f"row {row} has the time {shown} in column `{name}`, which is not an ISO 8601 timestamp\n"
        '  hint: write times as "2026-01-31T12:00:00", "2026-01-31 12:00:00.5" or "2026-01-31T12:00:00Z", '
        "or convert the column to timestamps"
    )
