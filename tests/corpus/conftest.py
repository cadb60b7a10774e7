"""The option that regenerates the expectations of the corpus."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-corpus",
        action="store_true",
        default=False,
        help="write the results of the reference evaluator into the cases; "
        "a case that expects matches is never turned into an error",
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether to write expectations rather than to check them."""
    asked = bool(request.config.getoption("--update-corpus", default=False))
    if asked and hasattr(request.config, "workerinput"):
        pytest.fail("--update-corpus writes the files one case after the other: run it without -n")
    return asked
