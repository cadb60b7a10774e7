"""A pipeline for the tests of the pages to look at: simulator, Spark stream, console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.pipeline import Pipeline, running_pipeline

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="take the pictures of docs/images anew")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and {"pipeline", "page"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one Spark at a time is enough for a machine


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """One job for all tests of the pages, with a Spark stream that runs for as long as they do."""
    with running_pipeline(tmp_path_factory.mktemp("pipeline") / "job") as running:
        yield running
