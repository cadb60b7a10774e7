"""What the tests of the pages do with a page: go somewhere, wait for something, look at what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect

from tests.console.pipeline import Pipeline, wait
from tests.console.served import Console

PATIENCE = 120_000
"""Milliseconds that a busy machine may take for what is not measured."""


@contextmanager
def visiting(
    browser: Browser, console: Console, *, dark: bool = False, width: int = 1360, height: int = 860
) -> Iterator[Page]:
    """A page of a new visitor, who has opened the printed address; errors of its scripts fail the test."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    opened.goto(console.address)
    expect(opened.locator("#connection[data-line=open]")).to_be_visible(timeout=PATIENCE)
    yield opened
    context.close()
    assert errors == []


def visit(page: Page, pipeline: Pipeline, path: str) -> None:
    """Go to a page of the console."""
    page.goto(pipeline.console.base + path)


def until(page: Page, expression: str) -> None:
    """Wait until something holds in the page; asked from outside, as the page may not evaluate texts."""
    wait(lambda: bool(page.evaluate(expression)), 180)


def held(page: Page, expression: str) -> Any:
    """What the browser holds."""
    return page.evaluate(f"window.nestream.{expression}")


class Slowed:
    """The first request of a name, kept back; a call lets the console answer it."""

    def __init__(self) -> None:
        self.kept: Route | None = None

    def take(self, route: Route) -> None:
        """Keep the first request, and let the others pass."""
        if self.kept is None:
            self.kept = route
        else:
            route.continue_()

    def is_asked(self) -> bool:
        """Whether the page has sent it."""
        return self.kept is not None

    def __call__(self) -> None:
        """Answer it now."""
        assert self.kept is not None
        self.kept.continue_()


@contextmanager
def slowed(page: Page, name: str) -> Iterator[Slowed]:
    """Let the next request of a name take until the answer is wanted."""
    found = Slowed()
    page.route(f"**/api/{name}", found.take)
    try:
        yield found
    finally:
        page.unroute(f"**/api/{name}")
