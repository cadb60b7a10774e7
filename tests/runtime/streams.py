"""Streams of a query or of a set of one, for the tests of what they hold."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

import nestream
from nestream.runtime.stream import Stream

BIG = 2**60 + 1
LEAST, GREATEST = -(2**63), 2**63 - 1
START = datetime(2026, 1, 31, 12)


def stream_of(text: str, many: bool = False, **options: Any) -> Stream:
    query = nestream.queries({"q": text}) if many else nestream.query(text)
    stream: Stream = query.stream(**options)
    return stream


def spans(matches: Any) -> list[tuple[Any, Any]]:
    rows = matches.to_pylist() if isinstance(matches, pa.Table) else matches
    return [(row["match_start"], row["match_end"]) for row in rows]
