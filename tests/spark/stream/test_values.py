"""Values on a Spark stream mean what they mean in process: decimals, and functions of one's own."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nestream
from tests.spark.same import rows
from tests.spark.stream.cases import START, later_events
from tests.spark.stream.streams import Folder

LARGE = 2**53
"""From here on a float no longer tells an integer from the next one."""


def history() -> pa.Table:
    """Events whose decimals differ in digits that a float does not have."""
    numbers = [Decimal(LARGE + n % 3) + Decimal(n % 2) / 10**10 for n in range(24)]
    moments = [START + timedelta(seconds=n) for n in range(24)]
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "type": list("ABABC" * 5)[:24],
            "id": pa.array(numbers, pa.decimal128(38, 10)),
            "n": list(range(24)),
        }
    )


def check(folder: Folder, text: str, *, least: int) -> None:
    """Fail unless a stream, restarted from its checkpoint, gives the matches of this process."""
    table, query = history(), nestream.query(text)
    for begin in range(0, table.num_rows, 8):
        folder.add(table.slice(begin, 8))
    folder.run(query.match(folder.read(table.schema)))
    folder.add(later_events(table))
    folder.run(query.match(folder.read(table.schema)))
    expected = query.match(table)
    assert expected.num_rows >= least
    found = folder.found()
    assert rows(found) == rows(expected.cast(found.schema))


def test_decimals_are_exact_on_a_stream_as_keys_and_in_conditions_and_results(folder: Folder) -> None:
    check(
        folder,
        "SEQ(A a, !(C c, c.id = a.id), B b) WHERE a.id = b.id WITHIN 20 seconds "
        f"RETURN a.n AS one, b.n AS two, b.id - {LARGE} AS rest, b.id AS id",
        least=3,
    )


@pytest.mark.slow
def test_a_function_of_ones_own_travels_to_the_tasks_of_a_stream(folder: Folder) -> None:
    offset = 3
    nestream.function("later_by_some", lambda x: pc.add(x, offset), returns="integer")
    check(
        folder,
        "SEQ(A a, B b, later_by_some(a.n) = b.n) WITHIN 20 seconds RETURN later_by_some(a.n) AS v, b",
        least=3,
    )
