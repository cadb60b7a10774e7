"""A real browser shows what a notebook would: nothing is loaded, nothing fails, and it is accessible."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

import nestream
from nestream.data import sample
from tests.cli.commands import EXAMPLE

QUERY = nestream.query(EXAMPLE.read_text(encoding="utf-8"))


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
    browser: Browser, background: str, text: str
) -> None:
    page = browser.new_page()
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
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.title() == "a notebook"
    assert page.locator("svg").count() == 3
    boxes = [page.locator("svg").nth(number).bounding_box() for number in range(3)]
    assert all(box is not None and box["height"] > 60 for box in boxes)
    assert asked == []
    assert said == []
    page.close()
