"""A pipeline for the tests of the pages to look at, simulator, Spark stream, console, and a page of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from nestream.console import pool, trial
from tests.console.browsing import visiting
from tests.console.payments import Payments, running_payments
from tests.console.pipeline import Pipeline, running_pipeline
from tests.console.served import Console

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="take the pictures of docs/images anew")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and {"pipeline", "page", "browser"} & set(
            getattr(item, "fixturenames", ())
        ):
            item.add_marker(pytest.mark.xdist_group("pages"))


@pytest.fixture(scope="session", autouse=True)
def time_for_runs() -> Iterator[None]:
    """A busy machine may take longer than a console allows to start a worker or to run a good query.

    Workers start when they are asked: a console starts two before, and most tests need none.
    """

    async def nothing(_: pool.Pool) -> None:
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool.Pool, "warm", nothing)
        patch.setattr(pool, "STARTING", 600.0)
        patch.setattr(pool, "SECONDS", 300.0)
        patch.setattr(trial, "SECONDS", 300.0)
        yield


@pytest.fixture(scope="package")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """One job for all tests of the pages, with a Spark stream that runs for as long as they do."""
    with running_pipeline(tmp_path_factory.mktemp("pipeline") / "job") as running:
        yield running


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Payments, Console]]:
    """One payments job for all tests of its pages, on the embedded runtime, with its console."""
    with running_payments(tmp_path_factory.mktemp("payments")) as found:
        yield found


@pytest.fixture
def page(browser: Browser, pipeline: Pipeline, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a new visitor of the hospital."""
    with visiting(browser, pipeline.console, dark="dark" in request.node.name) as opened:
        yield opened
