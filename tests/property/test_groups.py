"""Random queries with groups and aggregates: every way of the core agrees with the reference."""

from __future__ import annotations

import pytest

from tests.property.differential import report, run_cases

WAYS = ("engine", "engine-split", "engine-one-by-one", "set", "set-split", "native-small")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_groups_are_the_same_in_every_way_to_run(way: str) -> None:
    failures = run_cases(0, way, True, range(40)).failures
    assert not failures, report(0, way, failures[0], groups=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_groups_are_the_same_in_very_many_cases(way: str) -> None:
    failures = run_cases(1, way, True, range(4_000)).failures
    assert not failures, report(1, way, failures[0], groups=True)
