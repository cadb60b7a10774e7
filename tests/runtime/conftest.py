"""Tests that run once with a query and once with a query set."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["query", "set"])
def many(request: pytest.FixtureRequest) -> bool:
    """Whether the query is the only one of a set."""
    return bool(request.param == "set")
