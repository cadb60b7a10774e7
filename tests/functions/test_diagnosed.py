"""What is wrong with a call is said once, with its place, wherever the call stands."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import nestream

PLACES = (
    "(A a : {} = 1)",
    "(A a) RETURN {} AS v",
    "SEQ(A a, !(B b, {} = 1), C c) WITHIN 10",
    "EVENT SEQ(A a, B b) WHERE {} = 1 ∧ [id] WITHIN 10",
    "SEQ(A a, B b, abs(sqrt({})) > 2) WITHIN 10",
    "(A a : CASE WHEN {} = 1 THEN TRUE END)",
    "(A a : a.x IN ({}, 2) OR NOT {} BETWEEN 1 AND 2)",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("celi(a.x)", "unknown-function", "did you mean `ceil`?"),
        ("power(a.x)", "wrong-argument-count", "write `power(base, exponent)`"),
        ("ceil(a.x, 'a', 2)", "wrong-argument-count", "write `ceil(number)`"),
        ("sqrt('a')", "wrong-type", None),
        ("date_part('huor', a.x)", "bad-constant", None),
        ("date_part(a.y, a.x)", "not-constant", "for example"),
    ],
)
def test_a_wrong_call_is_reported_once_wherever_it_stands(
    place: str, call: str, code: str, said: str | None
) -> None:
    text = place.replace("{}", call)
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(text)
    found = raised.value.diagnostics
    assert [problem.code for problem in found if problem.is_error] == [code] * place.count("{}")
    for problem in found:
        assert call.startswith(text[problem.span.start : problem.span.end][:4]) or code != "unknown-function"
        assert said is None or said in (problem.hint or "")


def rejected(expression: str, **columns: pa.DataType) -> str:
    """What is said of an expression over events with such columns."""
    schema = pa.schema([("ts", pa.timestamp("us")), ("type", pa.string()), *columns.items()])
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(f"(A a) RETURN {expression} AS v").match(schema.empty_table())
    assert len(raised.value.diagnostics) == 1
    return str(raised.value)


def test_a_timestamp_minus_a_bare_number_says_what_to_write() -> None:
    assert "write `a.ts - 5 s`" in rejected("a.ts - 5")


@pytest.mark.parametrize(
    "expression", ["lower(a.x)", "a.x + 1", "-a.x", "a.x = 1", "coalesce(a.x, 1)", "a.x IN (1)"]
)
@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("y", pa.int64())]), pa.binary()], ids=str)
def test_a_column_that_cannot_be_computed_with_is_named_in_a_sentence(
    expression: str, kind: pa.DataType
) -> None:
    said = rejected(expression, x=kind)
    assert "only IS NULL applies to" in said or "cannot be compared" in said


def test_a_regular_expression_that_cannot_be_read_is_reported() -> None:
    assert "not a regular expression of RE2" in rejected("'a' MATCHES '('")
    assert "before `%`" in rejected(r"'a' LIKE 'a\b'")


def test_the_words_of_like_and_case_stay_names_elsewhere() -> None:
    events = [{"ts": 1, "type": "Case", "like": "a", "end": 1, "when": 2}]
    for text in (
        "(Case when : when.like = 'a')",
        "(Case like : like.end = 1 AND like.`when` = 2)",
        "(Case end : CASE WHEN end.end = 1 THEN end.like LIKE 'a' ELSE FALSE END)",
        "(Case matches : matches.like MATCHES 'a' AND matches.like NOT LIKE 'b%')",
        "SEQ(Case case, !Case then) WITHIN 5",
    ):
        query = nestream.query(text)
        assert query.count(events) == 1
        assert nestream.query(str(query)).count(events) == 1


EXTREMES: dict[str, Any] = {
    "a.ts < TIMESTAMP '9999-12-31'": True,
    "a.ts > TIMESTAMP '0001-01-01'": True,
    "TIMESTAMP '9999-12-31' - a.ts": None,
    "TIMESTAMP '9999-12-31'": None,
    "a.ts + 15000000 weeks": None,
    "least(a.ts, DATE '9999-12-31') = a.ts": True,
    "date_part('year', DATE '9999-12-31')": 9999,
}


@pytest.mark.parametrize("expression", EXTREMES)
def test_a_constant_beyond_the_range_of_nanoseconds_is_compared_as_what_it_is(expression: str) -> None:
    table = pa.table({"ts": pa.array([10**18], pa.timestamp("ns")), "type": ["A"]})
    query = nestream.query(f"(A a) RETURN {expression} AS v")
    for way in ("auto", "reference"):
        assert query.match(table, strategy=way).column("v").to_pylist() == [EXTREMES[expression]]


def test_a_window_beyond_the_range_of_nanoseconds_takes_everything() -> None:
    times = pa.array([-(2**61), 2**61, 2**61 + 5], pa.timestamp("ns"))
    table = pa.table({"ts": times, "type": ["A", "B", "A"]})
    for text in (
        "SEQ(A a, B b)",
        "SEQ(A a, B b, !C c)",
        "SEQ(!C c, A a, B b)",
        "AND(A a, !C c, B b, a.ts < b.ts)",
    ):
        query = nestream.query(f"{text} WITHIN 15000000 weeks")
        assert query.count(table) == query.count(table, strategy="reference") == 1


def test_a_column_that_is_null_throughout_goes_through_every_stage() -> None:
    rows = [{"ts": place, "type": kind, "x": None, "id": 1} for place, kind in enumerate("ABAB")]
    for text, wanted in (
        ("SEQ(A a, B b, coalesce(a.x, b.x, 7) = 7) WITHIN 10", 3),
        ("SEQ(A a, B b) WHERE [x] WITHIN 10", 0),
        ("SEQ(A a, B b, a.x = b.id) WITHIN 10", 0),
        ("SEQ(A a, !(B b, b.x = a.x), A c) WITHIN 10", 1),
        ("SEQ(A a, B b, NOT a.x) WITHIN 10 RETURN lower(a.x) AS s, a.x + b.id AS n", 3),
    ):
        query = nestream.query(text)
        assert query.count(rows) == query.match(rows, strategy="reference").num_rows == wanted
        assert query.match(rows).num_rows == wanted
        assert len(list(query.stream([dict(row) for row in rows]))) == wanted


def test_an_attribute_that_a_stream_sees_late_is_null_until_then() -> None:
    stream = nestream.query("SEQ(A a, B b, coalesce(a.x, 'none') = b.y) WITHIN 10").stream()
    found = list(stream.push({"ts": 1, "type": "A", "y": None}))
    found += stream.push({"ts": 2, "type": "B", "y": "none", "x": "seen"})
    found += stream.finish()
    assert len(found) == 1
