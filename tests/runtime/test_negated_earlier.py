"""A negated match that is complete before the batch of the match around it still forbids it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import nestream

EVENTS = pa.table(
    {"ts": [0, 1, 2, 3, 4], "type": ["A", "C", "C", "E", "B"], "id": [1, 1, 1, 1, 1], "x": [0, 1, 2, 0, 0]}
)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "text",
    [
        "SEQ(!SEQ(C c, C d, b.id = c.id), B b) WITHIN 9",
        "SEQ(A a, !SEQ(C c, C d, c.x < d.x), B b) WITHIN 9",
        "SEQ(A a, !AND(C c, C d), B b) WITHIN 9",
        "SEQ(A a, !AND(C c, C d, c.x < d.x), B b) WITHIN 9",
        "AND(E e, SEQ(!SEQ(C c, C d, e.id = c.id), B b)) WITHIN 3",
    ],
)
def test_a_negated_match_of_earlier_batches_forbids_a_match(text: str, size: int) -> None:
    query = nestream.query(text)
    assert query.count(EVENTS, strategy="reference") == 0
    stream = query.stream(schema=EVENTS.schema)
    parts = [stream.push_batch(EVENTS.slice(start, size)) for start in range(0, 5, size)]
    assert sum(part.num_rows for part in [*parts, stream.finish_batch()]) == 0
