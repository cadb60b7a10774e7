"""Times written without a zone are of the zone of the column beside them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import nestream
from nestream.model.zones import zone_named

HOURS = [datetime(2026, 10, 25, tzinfo=UTC) + timedelta(hours=n) for n in range(6)]
"""The clocks go back in Berlin at one o'clock."""


def events(zone: str | None) -> pa.Table:
    moments = [moment.replace(tzinfo=None) for moment in HOURS] if zone is None else HOURS
    return pa.table({"ts": pa.array(moments, pa.timestamp("us", zone)), "type": ["A"] * 6, "n": range(6)})


def found(condition: str, table: pa.Table, **options: Any) -> list[int]:
    query = nestream.query(f"SEQ(A a) WHERE {condition} WITHIN 1 hours")
    return [row["a"]["n"] for row in query.match(table, **options).to_pylist()]


@pytest.mark.parametrize("strategy", ["auto", "reference"])
@pytest.mark.parametrize(
    ("zone", "first"),
    [("UTC", 3), (None, 3), ("Europe/Berlin", 2), ("+01:00", 2), ("-02:00", 5), ("America/New_York", None)],
)
def test_a_time_without_zone_is_of_the_zone_of_its_column(
    zone: str | None, first: int | None, strategy: str
) -> None:
    expected = [] if first is None else list(range(first, 6))
    condition = "a.ts >= TIMESTAMP '2026-10-25 03:00:00'"
    assert found(condition, events(zone), strategy=strategy) == expected
    assert found("TIMESTAMP '2026-10-25 04:00:00' - 1 hours <= a.ts", events(zone)) == expected


def test_a_time_that_the_clocks_repeat_is_its_first_one() -> None:
    assert found("a.ts = TIMESTAMP '2026-10-25 02:00:00'", events("Europe/Berlin")) == [0]


def test_a_time_with_a_zone_means_that_zone() -> None:
    assert found("a.ts = TIMESTAMP '2026-10-25 02:00:00Z'", events("Europe/Berlin")) == [2]
    assert found("a.ts IN (DATE '2026-10-25', TIMESTAMP '2026-10-25 04:00')", events("Europe/Berlin")) == [3]


def test_returned_differences_are_of_the_zone_of_the_column() -> None:
    query = nestream.query("SEQ(A a) WITHIN 1 hours RETURN a.ts - TIMESTAMP '2026-10-25 02:00:00' AS since")
    since = query.match(events("Europe/Berlin")).column("since").to_pylist()
    assert since == [timedelta(hours=n) for n in range(6)]


def test_why_shows_times_in_the_zone_of_the_column() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 1 hours")
    assert "01:00:00+01:00" in str(query.why(events("+01:00"), [0]))
    assert "00:00:00Z" in str(query.why(events("UTC"), [0]))


@pytest.mark.parametrize("name", ["UTC", "Z", "+05:30", "-0530", "GMT+8", "UTC-3", "Europe/Berlin"])
def test_zones_have_names_or_offsets(name: str) -> None:
    assert zone_named(name).utcoffset(datetime(2026, 1, 1)) is not None


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(nestream.EventError, match="the time zone 'Mars/Base' is unknown"):
        zone_named("Mars/Base")
