"""The value of every kind of expression, with NULL in every place."""

from __future__ import annotations

from typing import Any

import pytest

from nestream.language.ast import Primitive
from nestream.language.parser import parse
from nestream.model.expression import Expression
from nestream.reference import Event, value

ATTRIBUTES = {
    "one": 1,
    "two": 2,
    "half": 0.5,
    "minus": -7,
    "zero": 0,
    "most": 2**63 - 1,
    "least": -(2**63),
    "big": 9007199254740993,
    "word": "Über",
    "yes": True,
    "no": False,
    "null": None,
    "huge": 1e308,
    "endless": float("inf"),
}
BINDING = {"a": Event(0, 5, "A", ATTRIBUTES)}


def expression(text: str) -> Expression:
    """A formula of the language, read as the predicate of a component."""
    pattern = parse(f"(A a : {text})").pattern
    assert isinstance(pattern, Primitive)
    (predicate,) = pattern.predicates
    return predicate


def computed(text: str) -> Any:
    return value(expression(text.replace("$", "a.").replace("a.null", "a.`null`")), BINDING)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$one = 1", True),
        ("$one = $two", False),
        ("$one != $two", True),
        ("$one < $two", True),
        ("$two < $two", False),
        ("$two <= $two", True),
        ("$two > $one", True),
        ("$two >= $two", True),
        ("$word = 'Über'", True),
        ("$word < 'z'", False),
        ("$word > 'z'", True),
        ("$one = $one = 1", True),
        ("$one = $one = 2", False),
        ("$yes = true", True),
        ("$yes != $no", True),
        ("$one = 1.0", True),
        ("$half < $one", True),
        ("$big = 9007199254740992.0", False),
        ("$big = 9007199254740992", False),
    ],
)
def test_comparisons(text: str, expected: bool) -> None:
    assert computed(text) is expected


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("operands", [("$null", "$one"), ("$one", "$null"), ("$null", "$null")])
def test_no_comparison_holds_of_null(operator: str, operands: tuple[str, str]) -> None:
    left, right = operands
    assert computed(f"{left} {operator} {right}") is False
    assert computed(f"NOT {left} {operator} {right}") is True


def test_a_chain_with_null_does_not_hold() -> None:
    assert computed("$one = $null = $one") is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$one + $two", 3),
        ("$one - $two", -1),
        ("$two * $minus", -14),
        ("$one / $two", 0.5),
        ("$two / $one", 2.0),
        ("$minus % 3", -1),
        ("7 % -3", 1),
        ("$minus % -3", -1),
        ("-7.5 % 2", -1.5),
        ("-$minus", 7),
        ("-$half", -0.5),
        ("$one + $half", 1.5),
        ("$one + $two * $two", 5),
        ("($one + $two) * $two", 6),
        ("7 - 2 - 1", 4),
        ("$huge * 10", float("inf")),
    ],
)
def test_arithmetic(text: str, expected: float) -> None:
    result = computed(text)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
@pytest.mark.parametrize("operands", [("$null", "$one"), ("$one", "$null"), ("$null", "$null")])
def test_arithmetic_on_null_is_null(operator: str, operands: tuple[str, str]) -> None:
    left, right = operands
    assert computed(f"{left} {operator} {right}") is None


@pytest.mark.parametrize(
    "text",
    [
        "-$null",
        "$one / $zero",
        "$one / 0.0",
        "$zero / $zero",
        "$one % $zero",
        "$half % 0.0",
        "$most + 1",
        "$least - 1",
        "$most * 2",
        "-$least",
        "abs($least)",
        "$endless - $endless",
        "$endless % 2",
    ],
)
def test_what_has_no_value_is_null(text: str) -> None:
    assert computed(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$yes AND $yes", True),
        ("$yes AND $no", False),
        ("$no OR $yes", True),
        ("$no OR $no", False),
        ("NOT $no", True),
        ("NOT $yes", False),
        ("$null AND $yes", False),
        ("$null OR $yes", True),
        ("$null OR $no", False),
        ("NOT $null", True),
        ("NOT ($null AND $yes)", True),
        ("$yes OR $no AND $no", True),
        ("($yes OR $no) AND $no", False),
    ],
)
def test_formulas_are_two_valued(text: str, expected: bool) -> None:
    assert computed(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$one IN (1, 2)", True),
        ("$one IN (2, 3)", False),
        ("$one IN ($null, 1)", True),
        ("$one IN ($null, 2)", False),
        ("$null IN (1, $null)", False),
        ("$one NOT IN (2, 3)", True),
        ("$one NOT IN (1, 2)", False),
        ("$one NOT IN ($null, 2)", False),
        ("$null NOT IN (1)", False),
        ("NOT $null IN (1)", True),
        ("$one IN (1.0)", True),
    ],
)
def test_membership(text: str, expected: bool) -> None:
    assert computed(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$one BETWEEN 1 AND 2", True),
        ("$two BETWEEN 1 AND 2", True),
        ("$zero BETWEEN 1 AND 2", False),
        ("$null BETWEEN 1 AND 2", False),
        ("$one BETWEEN $null AND 2", False),
        ("$one BETWEEN 1 AND $null", False),
        ("$zero NOT BETWEEN 1 AND 2", True),
        ("$one NOT BETWEEN 1 AND 2", False),
        ("$null NOT BETWEEN 1 AND 2", False),
        ("$zero NOT BETWEEN 1 AND $null", True),
        ("NOT $null BETWEEN 1 AND 2", True),
        ("$one BETWEEN 2 AND 1", False),
    ],
)
def test_ranges(text: str, expected: bool) -> None:
    assert computed(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$null IS NULL", True),
        ("$one IS NULL", False),
        ("$null IS NOT NULL", False),
        ("$one IS NOT NULL", True),
        ("$one / 0 IS NULL", True),
        ("a.missing IS NULL", True),
    ],
)
def test_tests_for_null(text: str, expected: bool) -> None:
    assert computed(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abs($minus)", 7),
        ("abs($half)", 0.5),
        ("abs($null)", None),
        ("lower($word)", "über"),
        ("upper($word)", "ÜBER"),
        ("lower($null)", None),
        ("upper($null)", None),
        ("length($word)", 4),
        ("length('')", 0),
        ("length($null)", None),
        ("coalesce($null, $one, $two)", 1),
        ("coalesce($null, $null)", None),
        ("coalesce($zero, 1)", 0),
    ],
)
def test_functions(text: str, expected: Any) -> None:
    assert computed(text) == expected


def test_the_time_and_the_type_are_attributes() -> None:
    assert computed("a.ts") == 5
    assert computed("a.type") == "A"


def test_an_unbound_variable_has_null_for_every_attribute() -> None:
    assert value(expression("b.x IS NULL AND b.ts IS NULL AND b.type IS NULL"), BINDING) is True


def test_durations_and_timestamps_are_integers_in_the_resolution_of_the_times() -> None:
    assert value(expression("90 s"), {}) == 90_000_000
    assert value(expression("90 s"), {}, 1000) == 90_000_000_000
    assert value(expression("TIMESTAMP '1970-01-01 00:00:01'"), {}) == 1_000_000
    assert value(expression("TIMESTAMP '1970-01-01 01:00:00+01:00'"), {}) == 0
    assert value(expression("DATE '1970-01-02'"), {}, 1000) == 86_400_000_000_000
