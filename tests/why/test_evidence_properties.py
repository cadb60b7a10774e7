"""For random queries and histories the evidence of every match is true, and the missing event undoes it."""

from __future__ import annotations

from itertools import islice

import pytest

import nestream
from tests.property.cases import Case, random_case
from tests.why.evidence_truth import EvidenceTruth


def examine(case: Case) -> int:
    """Check the evidence of some matches; gives how often the missing event was added."""
    table = case.table.slice(0, 10)
    truth = EvidenceTruth(nestream.query(case.text), table, case.order)
    try:
        for match in islice((m for m in truth.matches if truth.shows(m)), 6):
            truth.check_evidence(match)
    except Exception as problem:
        problem.add_note(str(case))
        raise
    return truth.repaired


@pytest.mark.parametrize("chunk", range(3))
def test_the_evidence_of_random_matches_is_true(chunk: int) -> None:
    repaired = sum(examine(random_case(18, index)) for index in range(chunk * 60, chunk * 60 + 60))
    assert repaired, "no sentence was put to the test"


@pytest.mark.parametrize("chunk", range(3))
def test_the_evidence_of_random_matches_with_groups_is_true(chunk: int) -> None:
    for index in range(chunk * 40, chunk * 40 + 40):
        examine(random_case(19, index, groups=True))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20))
def test_the_evidence_of_many_random_matches_is_true(chunk: int) -> None:
    for index in range(chunk * 100, chunk * 100 + 100):
        examine(random_case(20, index))
        examine(random_case(21, index, groups=True))
