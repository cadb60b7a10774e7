"""Decimals are exact: compared, computed and used as keys, whatever their scales."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import nestream

WAYS = ("auto", "reference")


def returned(expression: str, **attributes: Any) -> Any:
    """The value of an expression over one event, the same in the engine and in the reference."""
    arrays = {
        name: value if isinstance(value, pa.Array) else pa.array([value])
        for name, value in attributes.items()
    }
    table = pa.table({"ts": [1], "type": ["A"], **arrays})
    query = nestream.query(f"(A a) RETURN {expression} AS v")
    found = [query.match(table, strategy=way).column("v").to_pylist()[0] for way in WAYS]
    assert found[0] == found[1]
    return found[0]


def decimal(text: str, precision: int = 38, scale: int = 18) -> pa.Array:
    return pa.array([Decimal(text)], pa.decimal128(precision, scale))


NEAR = (decimal("0.100000000000000001"), decimal("0.1"))
"""Two decimals that are the same float."""


@pytest.mark.parametrize("operator", ["=", "<=", "<"])
def test_decimals_that_are_the_same_float_are_compared_exactly(operator: str) -> None:
    assert returned(f"a.x {operator} a.y", x=NEAR[0], y=NEAR[1]) is False


def test_a_number_with_a_point_is_a_decimal_beside_decimals() -> None:
    assert returned("a.x = 0.1", x=decimal("0.10", 5, 2)) is True
    assert returned("a.x > 0.1", x=NEAR[0]) is True
    assert returned("a.x IN (0.1, 0.2)", x=decimal("0.2", 5, 2)) is True
    assert returned("a.x * 1.1", x=decimal("1.10", 5, 2)) == Decimal("1.210")


def test_a_decimal_beside_a_float_or_an_integer_is_compared_by_value() -> None:
    assert returned("a.x = a.y", x=decimal("0.5", 5, 2), y=0.5) is True
    assert returned("a.x < a.y", x=decimal("0.1", 5, 2), y=0.1) is True  # the float is a little more
    assert returned("a.x = a.y", x=decimal("9007199254740993", 38, 2), y=9007199254740993) is True
    assert returned("a.x = a.y", x=9007199254740993, y=9007199254740992.0) is False


def test_a_decimal_result_beyond_38_digits_is_null() -> None:
    assert returned("a.x * a.x", x=decimal("1e19")) is None
    assert returned("a.x + a.x", x=decimal("99999999999999999999")) is None
    assert returned("a.x + 1", x=decimal("1")) == 2


def test_a_product_keeps_18_digits_after_the_point() -> None:
    assert returned("a.x * a.y", x=decimal("100.5"), y=decimal("0.000000000000000001")) == Decimal("1.00e-16")
    assert returned("a.x * a.y", x=decimal("0.5"), y=decimal("0.000000000000000003")) == Decimal("2e-18")


def test_a_quotient_is_a_float() -> None:
    assert returned("a.x / 4", x=decimal("1.00", 5, 2)) == 0.25


def pairs(kinds: tuple[pa.DataType, pa.DataType], one: list[Any], other: list[Any]) -> pa.Table:
    """Events A with x and B with y."""
    count = len(one)
    return pa.table(
        {
            "ts": range(2 * count),
            "type": ["A"] * count + ["B"] * count,
            "x": pa.array([*one, *[None] * count], kinds[0]),
            "y": pa.array([*[None] * count, *other], kinds[1]),
        }
    )


KINDS = (pa.decimal128(38, 18), pa.decimal128(10, 2), pa.int64(), pa.float64())


@pytest.mark.parametrize("left", KINDS, ids=str)
@pytest.mark.parametrize("right", KINDS, ids=str)
def test_keys_are_equal_when_their_numbers_are(left: pa.DataType, right: pa.DataType) -> None:
    def of(kind: pa.DataType) -> list[Any]:
        numbers = [1, 0, -3, None] if pa.types.is_integer(kind) else [1, Decimal("0.5"), -3, None]
        return [float(n) if n is not None and kind == pa.float64() else n for n in numbers]

    table = pairs((left, right), of(left), of(right))
    query = nestream.query("SEQ(A a, B b, a.x = b.y) WITHIN 100 RETURN a.x AS x, b.y AS y")
    engine, reference = (query.match(table, strategy=way).to_pylist() for way in WAYS)
    assert engine == reference
    assert len(engine) == sum(a == b for a in of(left) for b in of(right) if a is not None)


def test_integers_that_are_the_same_float_stay_apart_beside_float_keys() -> None:
    big = 2**53
    table = pa.table(
        {
            "ts": [1, 2, 3],
            "type": ["A", "B", "C"],
            "x": pa.array([big, big + 1, None], pa.int64()),
            "y": pa.array([None, None, float(big)], pa.float64()),
        }
    )
    query = nestream.query("SEQ(A a, B b, C c, a.x = b.x AND b.x = c.y) WITHIN 10")
    assert query.count(table) == query.count(table, strategy="reference") == 0


def test_a_stream_takes_decimals_of_growing_scale_and_size() -> None:
    ids = [
        1,
        Decimal("1.0"),
        Decimal("2.25"),
        Decimal("2.250"),
        Decimal("123456789.5"),
        Decimal("123456789.50"),
    ]
    rows = [{"ts": n, "type": "AB"[n % 2], "id": value} for n, value in enumerate(ids)]
    dead: list[Any] = []
    query = nestream.query("SEQ(A a, B b) WHERE [id] WITHIN 10 RETURN a.ts AS a, b.ts AS b")
    found = query.stream(rows, dead_letter=lambda event, reason: dead.append((event, reason)))
    assert [(match["a"], match["b"]) for match in found] == [(0, 1), (2, 3), (4, 5)]
    assert dead == []


def test_a_stream_and_a_query_set_see_decimals_as_match_does() -> None:
    values = [
        Decimal("0.100000000000000001"),
        Decimal("0.1"),
        Decimal("0.10"),
        Decimal("0.100000000000000001"),
    ]
    rows = [
        {"ts": place, "type": kind, "id": value}
        for place, (kind, value) in enumerate(zip("ABAB", values, strict=True))
    ]
    text = "SEQ(A a, B b) WHERE [id] WITHIN 10 RETURN a.ts AS a, b.ts AS b"
    wanted = [(0, 3)]  # the others are equal too, but B comes first
    query = nestream.query(text)
    assert [(m["a"], m["b"]) for m in query.match(rows).to_pylist()] == wanted
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.decimal128(38, 18))])
    assert [(m["a"], m["b"]) for m in query.stream(rows, schema=schema)] == wanted
    assert nestream.queries({"q": text.partition(" RETURN")[0]}).match(rows).num_rows == 1


def test_large_decimals_and_fractions_are_counted_when_a_strategy_is_chosen() -> None:
    ids = [Decimal(n % 5).scaleb(-2) + Decimal(10) ** 19 for n in range(400)]
    table = pa.table({"ts": range(400), "type": ["A", "B"] * 200, "id": pa.array(ids, pa.decimal128(38, 18))})
    query = nestream.query("SEQ(A a, !SEQ(B b, A c), B d) WHERE [id] WITHIN 9")
    counts = {query.count(table, strategy=way) for way in ("auto", "flat", "nested", "reference")}
    assert len(counts) == 1
    assert "found" in query.explain(analyze=table)
