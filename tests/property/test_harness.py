"""The tools of the property tests: what the generators make, and that differences are found and shrunk."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from nestream.language.ast import Composite, Exists, Negation, Pattern, Primitive, Repeated, parts
from nestream.language.parser import parse
from nestream.logical.nodes import leaves, target_variables
from nestream.query import query
from tests.generators.histories import histories
from tests.generators.queries import flat_queries, keyed_nested_queries, valid_queries
from tests.property.cases import Case, random_case
from tests.property.differential import run_cases
from tests.property.harness import DifferenceError, assert_same_matches, difference
from tests.property.measure import measure
from tests.property.runners import RUNNERS, Runner, reference
from tests.property.shrink import shrink

few = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def forgetful(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
    """A runner that loses the second match of queries with a negation."""
    found = reference(text, table, order=order, seed=seed)
    return pa.concat_tables([found.slice(0, 1), found.slice(2)]) if "!" in text else found


def depth(pattern: Pattern) -> int:
    """How many operators are nested."""
    match pattern:
        case Primitive():
            return 0
        case Negation(body=body) | Exists(body=body) | Repeated(body=body):
            return depth(body)
        case Composite(components=components):
            return 1 + max(map(depth, components))


@few
@given(valid_queries())
def test_every_generated_query_binds_and_is_small(text: str) -> None:
    plan = query(text).plan
    assert len({leaf.variable for leaf in leaves(plan.root)}) <= 9
    assert len(target_variables(plan.root)) <= 5
    assert depth(parse(text).pattern) <= 4


@few
@given(flat_queries())
def test_flat_queries_are_sequences_of_events_joined_on_id(text: str) -> None:
    assert depth(parse(text).pattern) == 1


@few
@given(keyed_nested_queries())
def test_keyed_queries_bind(text: str) -> None:
    assert query(text).plan.root


@few
@given(histories())
def test_histories_have_at_most_fourteen_events_with_numbers_of_their_own(table: pa.Table) -> None:
    assert table.num_rows <= 14
    assert table.column("n").to_pylist() == list(range(table.num_rows))


def test_the_random_cases_reach_the_whole_language() -> None:
    texts = [random_case(0, index).text for index in range(1500)]
    for wanted in (
        *("EVENT ", "WHERE ", "[id]", "[id = ", " OR ", "EVENTS", "UNBOUNDED", "RETURN ", "LIMIT ", " AS "),
        *(
            "ANY(",
            "EXISTS ",
            "!EXISTS ",
            "!OR(",
            "!AND(",
            "!SEQ(",
            "!(",
            " : ",
            " AND ",
            "NOT ",
            " IN ",
            " NOT IN ",
        ),
        *(
            "BETWEEN",
            "IS NULL",
            "IS NOT NULL",
            "abs(",
            "lower(",
            "upper(",
            "length(",
            "coalesce(",
            ".flag",
            ".s ",
        ),
        *(".f ", ".ts - ", " % ", " * ", " / ", " + ", ".type", "-1"),
    ):
        assert any(wanted in text for text in texts), wanted
    nested = [parse(text).pattern for text in texts]
    assert max(map(depth, nested)) == 6  # four, and two around a negation of the whole
    assert any(isinstance(p, Negation) and isinstance(p.body, Composite) for n in nested for p in parts(n))


def test_matches_and_matches_removed_by_a_negation_are_frequent() -> None:
    measured = measure(400, seed=1)
    assert measured.matched >= 0.4 * measured.cases
    assert measured.removed >= 0.12 * measured.cases


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    assert str(random_case(3, 7)) == str(random_case(3, 7))
    assert str(random_case(3, 7)) != str(random_case(3, 8))


def test_the_reference_agrees_with_itself() -> None:
    assert run_cases(0, "reference", False, range(60)).failures == ()


def test_a_runner_that_loses_matches_is_found_and_its_case_shrunk() -> None:
    runner = Runner(forgetful, ordered=True)
    case = next(case for index in range(500) if difference(case := random_case(0, index), runner))
    smallest = shrink(case, lambda smaller: difference(smaller, runner) is not None)
    assert smallest.table.num_rows <= 3 < case.table.num_rows
    assert len(smallest.text) <= len(case.text)
    with pytest.raises(DifferenceError, match="missing") as found:
        assert_same_matches(smallest.text, smallest.table, runner)
    assert "events: " in str(found.value)
    assert "expect:" in str(found.value)


def test_a_runner_that_raises_is_a_finding() -> None:
    def fails(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        raise ZeroDivisionError("nothing to divide by")

    found = difference(random_case(0, 0), Runner(fails))
    assert found is not None
    assert "ZeroDivisionError" in str(found)


def test_without_a_promised_order_limit_may_take_any_match() -> None:
    table = pa.Table.from_pylist([{"ts": ts, "type": "A", "n": ts} for ts in range(3)])

    def last(text: str, table: pa.Table, *, order: str, seed: int) -> pa.Table:
        return reference(text.replace("LIMIT 1", ""), table, order=order, seed=seed).slice(2)

    case = Case("PATTERN A a LIMIT 1", table)
    assert difference(case, Runner(last)) is None
    assert difference(case, Runner(last, ordered=True)) is not None
    assert difference(case, RUNNERS["reference"]) is None
