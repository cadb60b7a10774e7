"""A pipeline for the tests of the pages to look at, simulator, Spark stream, console, and a page of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from nestream.console import pool, trial
from tests.console.browsing import PATIENCE
from tests.console.pipeline import Pipeline, running_pipeline

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="take the pictures of docs/images anew")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and {"pipeline", "page"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("spark"))  # one Spark at a time is enough for a machine


@pytest.fixture(autouse=True)
def time_for_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than a console allows to start a worker or to run a good query."""
    monkeypatch.setattr(pool, "STARTING", 600.0)
    monkeypatch.setattr(pool, "SECONDS", 300.0)
    monkeypatch.setattr(trial, "SECONDS", 300.0)


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """One job for all tests of the pages, with a Spark stream that runs for as long as they do."""
    with running_pipeline(tmp_path_factory.mktemp("pipeline") / "job") as running:
        yield running


@pytest.fixture
def page(browser: Browser, pipeline: Pipeline, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a new visitor, who has opened the printed address; errors of its scripts fail the test."""
    context = browser.new_context(
        viewport={"width": 1360, "height": 860},
        color_scheme="dark" if "dark" in request.node.name else "light",
        reduced_motion="reduce",
    )
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    opened.goto(pipeline.console.address)
    expect(opened.locator("#connection")).to_contain_text("live", timeout=PATIENCE)
    yield opened
    context.close()
    assert errors == []
