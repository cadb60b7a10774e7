"""A browser for the tests of the pages, and a pipeline to look at: simulator, Spark stream, console."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.console.pipeline import Pipeline, running_pipeline

HERE = Path(__file__).parent
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="take the pictures of docs/images anew")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and {"pipeline", "page"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one Spark at a time is enough for a machine


def chromium() -> str | None:
    """The browser that is there."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in CHROMIUMS if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    program = chromium()
    if program is None:
        pytest.skip(
            "no Chromium was found, so the console's pages are not tried: run scripts/setup --browser, "
            "install the package chromium, or let CHROMIUM name one"
        )
    with sync_playwright() as playwright:
        # The sandbox needs rights that a container may not give; the only pages opened are our own.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """One job for all tests of the pages, with a Spark stream that runs for as long as they do."""
    with running_pipeline(tmp_path_factory.mktemp("pipeline") / "job") as running:
        yield running
