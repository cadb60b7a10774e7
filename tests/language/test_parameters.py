"""Parameters: values that come with a query, in the place of `$name`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import nestream
from nestream.query import read_value

EVENTS = [
    {"ts": n, "type": kind, "x": x, "s": s}
    for n, (kind, x, s) in enumerate([("A", 1, "u"), ("B", 5, "it's"), ("B", 9, "v"), ("C", 2, None)])
]


def found(text: str, parameters: Mapping[str, Any]) -> list[Any]:
    """The `ts` of the last event of each match, which the reference and the engine agree on."""
    query = nestream.query(text, parameters=parameters)
    matches = query.match(EVENTS)
    assert matches.equals(query.match(EVENTS, strategy="reference"))
    return list(matches.column("match_end").to_pylist())


@pytest.mark.parametrize(
    ("condition", "value", "ends"),
    [
        ("b.x > $v", 5, [2]),
        ("b.x > $v", np.int64(5), [2]),
        ("b.x > $v", 4.5, [1, 2]),
        ("b.x > $v", Decimal("5.5"), [2]),
        ("b.s = $v", "it's", [1]),
        ("b.s = $v", '" OR 1 = 1 --', []),
        ("b.x IN $v", [5, 7], [1]),
        ("b.x NOT IN $v", (5, 7), [2]),
        ("b.x IN ($v, 9)", [5], [1, 2]),
        ("b.x IN $v", [], []),
        ("b.x NOT IN $v", [], [1, 2]),
        ("b.x IN ($v, 9)", 5, [1, 2]),
        ("$v", True, [1, 2]),
    ],
)
def test_a_parameter_means_what_its_value_would(condition: str, value: Any, ends: list[int]) -> None:
    assert found(f"SEQ(A a, B b, {condition}) WITHIN 10", {"v": value}) == ends


def test_windows_limits_and_equivalence_tests_take_parameters() -> None:
    assert found("SEQ(A a, B b) WITHIN $w", {"w": 1}) == [1]
    assert found("SEQ(A a, B b) WITHIN $w EVENTS", {"w": 3}) == [1, 2]
    assert found("SEQ(A a, (SEQ(B b, C c) WITHIN $w)) WITHIN 10", {"w": 1}) == [3]
    assert found("SEQ(A a, B b) WITHIN 10 LIMIT $n", {"n": 1}) == [1]
    assert found("EVENT B b WHERE [x = $x] WITHIN 10", {"x": 9}) == [2]
    assert found("SEQ(A a, B b) WITHIN 10 RETURN b.x + $n AS y", {"n": 1}) == [1, 2]


@pytest.mark.parametrize("length", [timedelta(seconds=2), "2 s", "2000 ms"])
def test_the_length_of_a_window_is_a_duration(length: Any) -> None:
    events = [{"ts": datetime(2026, 1, 1, 0, 0, s), "type": t} for s, t in ((1, "A"), (3, "B"), (4, "B"))]
    assert nestream.query("SEQ(A a, B b) WITHIN $w", parameters={"w": length}).count(events) == 1


def test_times_are_values() -> None:
    events = [{"ts": datetime(2026, 1, day), "type": "A"} for day in (1, 2, 3)]
    for value in (date(2026, 1, 2), datetime(2026, 1, 2)):
        assert nestream.query("A a WHERE ts >= $t", parameters={"t": value}).count(events) == 2


@pytest.mark.parametrize(
    ("text", "parameters", "code", "said"),
    [
        ("A a WHERE x > $floor", {}, "missing-parameter", "--set floor="),
        ("A a WHERE x > $floor", {"flor": 1}, "missing-parameter", "did you mean `$flor`?"),
        ("A a WHERE x > $floor", {"floor": 1, "flor": 2}, "unknown-parameter", "did you mean `floor`?"),
        ("A a", {"q": 1}, "unknown-parameter", "leave it out"),
        ("A a WHERE x > $v", {"v": [1]}, "bad-parameter", "after IN"),
        ("A a WHERE x > $v", {"v": None}, "bad-parameter", "IS NULL"),
        ("A a WHERE x > $v", {"v": 2**63}, "bad-parameter", "64 bits"),
        ("A a WHERE x > $v", {"v": float("nan")}, "bad-parameter", "finite"),
        ("A a WHERE x > $v", {"v": object()}, "bad-parameter", "a value is a number"),
        ("SEQ(A a, B b) WITHIN $v", {"v": "soon"}, "bad-parameter", "is not a duration"),
        ("SEQ(A a, B b) WITHIN $v", {"v": 0}, "bad-parameter", "is empty"),
        ("SEQ(A a, B b) WITHIN $v", {"v": -1}, "bad-parameter", "is not a window"),
        ("SEQ(A a, B b) WITHIN $v", {"v": True}, "bad-parameter", "is not a window"),
        ("A a LIMIT $v", {"v": "many"}, "bad-parameter", "whole number"),
    ],
)
def test_a_wrong_value_is_reported_with_what_to_do(
    text: str, parameters: Mapping[str, Any], code: str, said: str
) -> None:
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(text, parameters=parameters)
    assert [problem.code for problem in raised.value.diagnostics] == [code]
    assert said in str(raised.value)


def test_parameters_are_a_mapping() -> None:
    with pytest.raises(TypeError, match="must map names to values"):
        nestream.query("A a", parameters=[1])  # type: ignore[arg-type]


def test_the_query_is_printed_with_its_parameters_and_a_state_belongs_to_their_values() -> None:
    text = "PATTERN SEQ(A a, B b)\nWHERE b.x IN ($ids)\nWITHIN $w"
    one, other = (nestream.query(text, parameters={"w": 5, "ids": ids}) for ids in ([1], [2]))
    assert str(one) == text
    assert one.identity("time", "auto") != other.identity("time", "auto")


def test_each_query_of_a_set_takes_its_own_parameters() -> None:
    texts = {"low": "A a WHERE x > $low", "high": "A a WHERE x > $high"}
    queries = nestream.queries(texts, parameters={"low": 0, "high": 5})
    assert {name: query.count(EVENTS) for name, query in queries.members.items()} == {"low": 1, "high": 0}
    with pytest.raises(nestream.QueryError, match=r"no query has a parameter `\$hgh`[\s\S]*did you mean"):
        nestream.queries(texts, parameters={"low": 0, "high": 5, "hgh": 1})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100", 100),
        ("-2.5", -2.5),
        ("true", True),
        ("it's", "it's"),
        ("'007'", "007"),
        ("(1, 2)", [1, 2]),
        ("('a, b', c)", ["a, b", "c"]),
        ("()", []),
        ("5 apples", "5 apples"),
        ("DATE '2026-01-31'", datetime(2026, 1, 31)),
    ],
)
def test_the_command_line_reads_values_as_a_query_does(text: str, value: Any) -> None:
    assert read_value(text) == value
    assert type(read_value(text)) is type(value)
