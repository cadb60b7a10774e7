"""The laws of the printer: what it writes reads as the same tree, and is written the same again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from nestream.language.ast import Query
from nestream.language.parser import parse
from nestream.language.printer import print_pattern, print_query
from nestream.model.expression import Expression
from nestream.model.text import print_expression
from tests.generators.language import queries, random_query, where_formulas

hundreds = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def check_laws(query: Query) -> None:
    text = print_query(query)
    read = parse(text)
    assert read == query
    # `1 == True == 1.0` in Python, so the trees are also compared as they are written.
    assert repr(replace(read, dialect=query.dialect)) == repr(query)
    assert print_query(read) == text


@hundreds
@given(queries())
def test_a_printed_query_reads_as_the_same_query(query: Query) -> None:
    check_laws(query)


@pytest.mark.parametrize("block", range(2))
def test_thousands_of_printed_queries_read_as_the_same_queries(block: int) -> None:
    for seed in range(block * 1000, (block + 1) * 1000):
        check_laws(random_query(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_very_many_printed_queries_read_as_the_same_queries(block: int) -> None:
    for seed in range(100_000 + block * 5000, 100_000 + (block + 1) * 5000):
        check_laws(random_query(seed))


@hundreds
@given(where_formulas())
def test_a_printed_formula_reads_as_the_same_formula(formula: Expression) -> None:
    text = print_expression(formula)
    read = parse(f"A a WHERE {text}").where
    assert repr(read) == repr(formula)


def test_a_pattern_on_one_line_reads_as_the_same_pattern() -> None:
    for seed in range(300):
        pattern = random_query(seed).pattern
        text = print_pattern(pattern)
        assert parse(text).pattern == pattern
