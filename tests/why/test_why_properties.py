"""For random queries and histories the answer to "why?" is right, and every obstacle told is true."""

from __future__ import annotations

import os
from itertools import islice
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nestream
from tests.generators.choices import DrawnChoices
from tests.generators.histories import histories, types_of
from tests.generators.queries import any_query
from tests.property.cases import random_case
from tests.why.truth import Truth

laws = settings(
    max_examples=int(os.environ.get("LAW_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, pa.Table, str]:
    text = any_query(DrawnChoices(draw))
    return text, draw(histories(10, types_of(text))), draw(st.sampled_from(["time", "arrival"]))


def examine(text: str, table: pa.Table, order: str, random: Random) -> None:
    """Ask about matches, about full bindings that are none, and about any events at all."""
    query = nestream.query(text)
    truth = Truth(query, table, order)
    for match in islice((m for m in truth.matches if truth.shows(m)), 5):
        assert query.why(table, list(match.values()), order=order).matched
        why = query.why(table, match, order=order)
        assert why.matched
        assert why.json()["match"] == match
        one = random.choice(list(match.values()))
        assert query.why(table, [one], order=order).matched
    if not table.num_rows:
        return
    parts = [part.binding for part in islice(truth.parts(), 300)]
    asked = [{n: e["n"] for n, e in binding.items()} for binding in random.sample(parts, min(4, len(parts)))]
    for binding in asked:
        why = query.why(table, binding, order=order)
        assert why.matched == truth.shows(binding)
        assert why.matched or why.obstacles
        truth.check(query.why(table, list(binding.values()), order=order), set(binding.values()))
    for size in (1, 2, 3):
        picked = random.sample(range(table.num_rows), min(size, table.num_rows))
        truth.check(query.why(table, picked, order=order), set(picked))


@laws
@given(cases(), st.randoms(use_true_random=False))
def test_matches_match_and_what_stops_others_is_true(case: tuple[str, pa.Table, str], random: Random) -> None:
    examine(*case, random)


@pytest.mark.parametrize("index", range(60))
def test_the_answers_for_random_cases_are_true(index: int) -> None:
    case = random_case(8, index)
    examine(case.text, case.table.slice(0, 10), case.order, Random(index))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20))
def test_the_answers_for_many_random_cases_are_true(chunk: int) -> None:
    for index in range(chunk * 100, chunk * 100 + 100):
        case = random_case(9, index)
        try:
            examine(case.text, case.table.slice(0, 10), case.order, Random(index))
        except Exception as problem:
            problem.add_note(str(case))
            raise
