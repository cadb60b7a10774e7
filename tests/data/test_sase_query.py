"""The query generator gives text in the SASE dialect with the number of parts that was asked for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestream.data import sase_query, sase_selectivity


@given(
    length=st.integers(2, 6),
    equivalence_tests=st.integers(0, 2),
    inequalities=st.integers(0, 2),
    simple=st.integers(0, 2),
    negations=st.integers(0, 2),
    ends=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_a_query_has_the_parts_that_were_asked_for(
    length: int, equivalence_tests: int, inequalities: int, simple: int, negations: int, ends: bool, seed: int
) -> None:
    text = sase_query(
        length, equivalence_tests, inequalities, simple, negations, 5_000, negated_ends=ends, seed=seed
    )
    lines = text.splitlines()
    components = re.findall(r"(!\()?([A-T]) ([xy])\d+", lines[0])
    assert [variable for negated, _, variable in components if not negated] == ["x"] * length
    assert [variable for negated, _, variable in components if negated] == ["y"] * negations
    assert len({name for _, name, _ in components}) == length + negations
    assert lines[0].startswith("EVENT SEQ(")
    if not ends:
        assert not components[0][0]
        assert not components[-1][0]
    conjuncts = lines[1].removeprefix("WHERE ").split(" ∧ ") if len(lines) == 3 else []
    assert len(conjuncts) == equivalence_tests + inequalities + simple
    assert sum(conjunct.startswith("[") for conjunct in conjuncts) == equivalence_tests
    assert lines[-1] == "WITHIN 5000 EVENTS"


def test_the_same_seed_gives_the_same_query() -> None:
    assert sase_query(5, 2, 1, 1, 2, seed=9) == sase_query(5, 2, 1, 1, 2, seed=9)


def test_a_window_may_be_given_as_text() -> None:
    assert sase_query(window="10 minutes").endswith("WITHIN 10 minutes")


def test_what_cannot_be_asked_for_is_an_error() -> None:
    with pytest.raises(ValueError, match="different types"):
        sase_query(length=6, types=4)
    with pytest.raises(ValueError, match="length of at least 2"):
        sase_query(length=1, negations=1)
    with pytest.raises(ValueError, match="as many attributes"):
        sase_query(equivalence_tests=2, attributes=["id"])


def test_the_expected_selectivity_falls_with_the_domain() -> None:
    assert sase_selectivity(10_000, 3, 20, 100) == pytest.approx(0.2083, rel=1e-3)
    assert sase_selectivity(10_000, 3, 20, 10_000) == pytest.approx(0.2083e-4, rel=1e-3)
