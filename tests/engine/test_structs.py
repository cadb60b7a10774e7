"""Fields of structs: `p.order.id`, at any depth, with NULL inside, in every way to run a query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import nestream

ORDER = pa.struct(
    [
        ("id", pa.int64()),
        ("to", pa.struct([("city", pa.string()), ("at", pa.timestamp("us"))])),
        ("odd.name", pa.int64()),
    ]
)


def order(n: int) -> dict[str, object] | None:
    """An order, or NULL, or one with NULL inside."""
    if n % 7 == 0:
        return None
    to = None if n % 5 == 0 else {"city": "abc"[n % 3], "at": None if n % 4 == 0 else 10**6 * n}
    return {"id": None if n % 6 == 0 else n % 3, "to": to, "odd.name": n}


EVENTS = pa.table(
    {
        "ts": list(range(60)),
        "type": ["AB"[n * 5 % 2] for n in range(60)],
        "order": pa.array([order(n) for n in range(60)], ORDER),
        "id": [n % 2 for n in range(60)],
    }
)
QUERIES = [
    "SEQ(A a, B b, a.order.id = b.order.id) WITHIN 5",
    "SEQ(A a, B b) WHERE [order.id] WITHIN 5",
    "SEQ(A a, B b, a.order.to.city = b.order.to.city) WHERE [order.id] WITHIN 9",
    "SEQ(A a, !(B c, c.order.id = a.order.id), B b, b.order.to.city IN ('a', 'b')) WITHIN 5",
    "SEQ(A a, B b, a.order.`odd.name` < b.order.`odd.name`) WITHIN 3 RETURN a.order.id AS i",
    "SEQ(A a, B b, a.order.to IS NULL, b.order.to.at >= TIMESTAMP '1970-01-01 00:00:09') WITHIN 5",
    "SEQ(A a, B b) WITHIN 5 RETURN b.order.to.at AS at, b.order.to AS whole, b.order.id + 1 AS next",
    "SEQ(A a, B b) WITHIN 5 KEEP FIRST PER b.order.id, a",
    "AND(A a, B b, a.order.id = b.order.id) WITHIN 3",
]


@pytest.mark.parametrize("text", QUERIES)
def test_every_way_to_run_reads_fields(text: str) -> None:
    query = nestream.query(text)
    expected = query.match(EVENTS, strategy="reference")
    assert expected.num_rows
    for strategy in ("auto", "nested", "flat", "views-balanced"):
        assert query.match(EVENTS, strategy=strategy).equals(expected), strategy
    assert query.count(EVENTS) == expected.num_rows
    assert nestream.queries({"one": query}).match_each(EVENTS)["one"].equals(expected)
    stream = query.stream(schema=EVENTS.schema)
    parts = []
    for start in range(0, 60, 7):
        parts.append(stream.push_batch(EVENTS.slice(start, 7)))
        stream = query.stream(schema=EVENTS.schema).restore(stream.save())
    assert pa.concat_tables([*parts, stream.finish_batch()]).equals(expected)
    assert str(nestream.query(str(query))) == str(query)


def test_events_as_dictionaries_have_fields() -> None:
    query = nestream.query("SEQ(A a, B b, a.order.id = b.order.id) WITHIN 5")
    events = [{"ts": 1, "type": "A", "order": {"id": 1}}, {"ts": 2, "type": "B", "order": {"id": 1}}]
    assert query.count(events) == 1
    assert len(list(query.stream(events))) == 1
    assert query.count([]) == 0


def test_why_reads_fields() -> None:
    query = nestream.query("SEQ(A a, B b, a.order.id = b.order.id) WITHIN 5")
    events = [{"ts": 1, "type": "A", "order": {"id": 1}}, {"ts": 2, "type": "B", "order": {"id": 2}}]
    assert "a.order.id = b.order.id: 1 ≠ 2" in str(query.why(events, [0, 1]))


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("a.order.idd = 1", "did you mean `a.order.id`?"),
        ("a.order.to.street = 'x'", "the fields are `city`, `at`"),
        ("a.id.x = 1", "`a.id` has no fields: it is an integer"),
        ("a.ordr.id = 1", "did you mean `a.order`?"),
        ("a.order = b.order", "cannot be compared"),
    ],
)
def test_a_field_that_there_is_not_is_reported(condition: str, said: str) -> None:
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(f"SEQ(A a, B b, {condition}) WITHIN 5").match(EVENTS)
    assert said in str(raised.value)


def test_brackets_take_no_variable() -> None:
    with pytest.raises(nestream.QueryError, match="brackets take attributes without variables"):
        nestream.query("SEQ(A a, B b) WHERE [a.id] WITHIN 5")
