"""A real browser shows what a notebook would: nothing is loaded, nothing fails, and it is accessible."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

import nestream
from nestream.data import sample
from tests.cli.commands import EXAMPLE

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

PROGRAM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium")
QUERY = nestream.query(EXAMPLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def shown() -> str:
    """A query, its matches and an answer to why, with an attribute that would like to run."""
    hostile = nestream.query("SEQ(A a, B b) WITHIN 10")
    events = [
        {"ts": n, "type": t, "x": "<img src=x onerror=\"document.title='run'\">"}
        for n, t in [(1, "A"), (2, "B")]
    ]
    parts = (
        QUERY,
        QUERY.show(sample("hospital")),
        QUERY.why(sample("hospital"), [0, 5]),
        hostile.show(events),
    )
    return "".join(part._repr_html_() for part in parts)


@pytest.mark.parametrize(("background", "text"), [("#fff", "#1f2328"), ("#111", "#ddd")])
def test_what_a_notebook_shows_is_accessible_on_light_and_on_dark(
    browser: object, background: str, text: str
) -> None:
    page = browser.new_page()  # type: ignore[attr-defined]
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    style = f"background:{background};color:{text};font-family:sans-serif"
    page.set_content(
        f'<!doctype html><html lang="en"><head><title>a notebook</title></head>'
        f'<body style="{style}"><main><h1>cells</h1>{shown()}</main></body></html>'
    )
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.title() == "a notebook"
    assert page.locator("svg").count() == 3
    assert all(page.locator("svg").nth(n).bounding_box()["height"] > 60 for n in range(3))
    assert asked == []
    assert said == []
    page.close()
