"""The time column: integers stay integers, ISO-8601 text becomes timestamps, and a file holds one of them.

If a file mixes integers, timestamps without a zone and timestamps with a zone, the most frequent of the three
wins; rows with another are malformed.
"""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from nestream.source.kinds import ARROW_TYPES, TIME_KINDS, Kind, convert, find_misfits, fits, widen

INTEGER, TIMESTAMP, INSTANT = "integer", "timestamp without zone", "timestamp with zone"
_KINDS = {
    INTEGER: (Kind.INTEGER,),
    TIMESTAMP: (Kind.TIMESTAMP, Kind.TIMESTAMP_NS),
    INSTANT: (Kind.INSTANT, Kind.INSTANT_NS),
}
_CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?)?"
_SHAPES = {
    INTEGER: "^-?[0-9]{1,19}$",
    TIMESTAMP: f"^{_CLOCK}$",
    INSTANT: f"^{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$",
}
_SHOWN = {INTEGER: "integers", TIMESTAMP: "timestamps without zone", INSTANT: "timestamps with zone"}
CANDIDATES = (Kind.INTEGER, *TIME_KINDS)


def form_of(declared: pa.DataType | None) -> str | None:
    """The form in which times of a declared type are written."""
    if declared is None:
        return None
    if pa.types.is_integer(declared):
        return INTEGER
    return INSTANT if pa.types.is_timestamp(declared) and declared.tz is not None else TIMESTAMP


def widen_time(kind: Kind, values: pa.Array) -> Kind:
    """Like `widen`, among the kinds that can be a time; TEXT if there is none."""
    return widen(kind, values, CANDIDATES)


def time_form(value: str) -> str | None:
    """Which of the three forms a single text has."""
    for form, kinds in _KINDS.items():
        if re.search(_SHAPES[form], value, re.ASCII):
            array = pa.array([value], pa.string())
            return form if any(fits(kind, array) for kind in kinds) else None
    return None


def vote(values: pa.Array, votes: Counter[str]) -> None:
    """Count the forms of the values; NULL and nonsense do not count."""
    rest = values.drop_null()
    for form in _KINDS:
        if len(rest) == 0:
            return
        wrong = _misfits(rest, form)
        votes[form] += len(rest) - len(wrong)
        rest = rest.take(pa.array(wrong, pa.int64()))


def winner(votes: Counter[str]) -> str | None:
    """The most frequent form; of equals, the first in this file's list."""
    best = max(_KINDS, key=lambda form: votes[form])
    return best if votes[best] else None


def wrong_times(values: pa.Array, form: str | None) -> dict[int, str]:
    """The position and reason of every value that is not a time of that form."""
    reasons = dict.fromkeys(pc.indices_nonzero(_missing(values)).to_pylist(), "time is missing")
    present = pc.indices_nonzero(pc.invert(_missing(values)))
    texts = values.take(present)
    wrong = range(len(texts)) if form is None else _misfits(texts, form)
    for at in wrong:
        reasons[present[at].as_py()] = _reason(texts[at].as_py(), form)
    return reasons


class TimeOrder:
    """Whether the times so far never decrease."""

    def __init__(self) -> None:
        self.holds = True
        self._last: int | None = None

    def add(self, values: pa.Array, kind: Kind | None = None) -> None:
        """Check more times: text of a kind, or a column of times."""
        if not self.holds or not len(values):
            return
        try:
            times = values if kind is None else convert(kind, values)
            if pa.types.is_date(times.type):
                times = times.cast(pa.timestamp("us"))
            numbers = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, ValueError):  # such as times of a finer unit than before
            self.holds = False
            return
        back = times.null_count or (numbers[1:] < numbers[:-1]).any()
        self.holds = not back and (self._last is None or self._last <= int(numbers[0]))
        self._last = int(numbers[-1])


def time_type(kind: Kind) -> pa.DataType:
    """The Arrow type; unknown for a file without events."""
    return pa.int64() if kind is Kind.TEXT else ARROW_TYPES[kind]


def _missing(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(values, ""), True)


def _misfits(values: pa.Array, form: str) -> list[int]:
    """Most nonsense is recognised by its shape; the rest (month 13, too large a number) by trying."""
    shaped = pc.match_substring_regex(values, _SHAPES[form])
    misfits: list[int] = pc.indices_nonzero(pc.invert(shaped)).to_pylist()
    places = pc.indices_nonzero(shaped)
    accepts = lambda part: any(fits(kind, part) for kind in _KINDS[form])  # noqa: E731
    misfits += [places[at].as_py() for at in find_misfits(values.take(places), accepts)]
    return sorted(misfits)


def _reason(value: str, form: str | None) -> str:
    shown = repr(value if len(value) <= 60 else value[:57] + "...")
    found = time_form(value)
    if found is not None and form is not None and found != form:
        return f"time {shown} is not like the others: they are {_SHOWN[form]}"
    try:
        float(value)
    except ValueError:
        return f"time {shown} is neither an integer nor an ISO-8601 timestamp"
    return f"time {shown} is not an integer of 64 bits; count in a finer unit or write ISO-8601"
