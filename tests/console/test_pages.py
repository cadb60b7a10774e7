"""All pages of the console in a browser, on a pipeline: health, safety, accessibility, lost connections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.console.browsing import PATIENCE, held, until, visit
from tests.console.pipeline import HOSTILE, Pipeline

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PAGES = ("overview", "matches", "queries", "health")
WCAG = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],  # to describe all that passes takes three times as long
}


def test_the_health_page_tells_of_the_stream(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/health")
    card = page.get_by_role("region", name="Matches a second")
    expect(card).to_contain_text(
        f"{pipeline.planted} committed, {pipeline.planted} received", timeout=PATIENCE
    )
    job = page.get_by_role("region", name="Job", exact=True)
    expect(job).to_contain_text("running", timeout=PATIENCE)
    expect(job).to_contain_text(re.compile(r"Watermark 2026-\d\d-\d\d \d\d:\d\d:\d\d"))
    expect(page.get_by_role("region", name="Last batch")).to_contain_text(
        re.compile("the job last spoke .* ago")
    )
    expect(page.get_by_role("region", name="State", exact=True)).to_contain_text(re.compile("[KM]?B"))
    expect(page.get_by_role("region", name="Late and dead")).to_contain_text("0 behind the watermark")
    page.get_by_role("button", name="Measure now").click()
    slow = page.get_by_role("table", name="Time by rule")
    expect(slow).to_contain_text(" ms", timeout=PATIENCE)
    assert slow.locator("tbody tr").count() == len(held(page, "job.rules"))


@pytest.mark.parametrize("name", ["ward", "violation", "queries", "matches", "health"])
def test_screenshots(page: Page, pipeline: Pipeline, request: pytest.FixtureRequest, name: str) -> None:
    if not request.config.getoption("--screenshots", default=False):
        pytest.skip("pictures are taken with --screenshots")
    IMAGES.mkdir(exist_ok=True)
    if name == "ward":  # more to look at
        pipeline.go_on(12)
        pipeline.committed_at(pipeline.planted)
        until(page, f"nestream.received >= {pipeline.planted}")
    page.set_viewport_size({"width": 1200, "height": 760})
    if name in ("ward", "violation"):
        visit(page, pipeline, "/overview")
        expect(page.locator("button.violation").first).to_be_visible()
        if name == "violation":
            page.locator("button.violation.high").first.click()
            expect(page.locator("dialog svg.timeline")).to_be_visible(timeout=PATIENCE)
    elif name == "queries":
        visit(page, pipeline, "/queries?rule=unfinished-instrument")
        page.get_by_label("Events").select_option("hospital")
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.locator("svg.graph").first).to_be_visible(timeout=PATIENCE)
    elif name == "matches":
        visit(page, pipeline, "/matches?rule=unfinished-instrument&data=hospital")
        expect(page.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
        page.get_by_role("button", name=re.compile("Show match 1 ")).click()
        page.wait_for_timeout(1000)
        page.mouse.wheel(0, -5000)
    else:
        visit(page, pipeline, "/health")
        page.get_by_role("button", name="Measure now").click()
        expect(page.get_by_role("table", name="Time by rule")).to_contain_text(" ms", timeout=PATIENCE)
    page.wait_for_timeout(400)
    page.screenshot(path=IMAGES / f"console-{name}.png")


def test_a_hostile_attribute_stays_text(page: Page, pipeline: Pipeline) -> None:
    pipeline.go_on(1, intruder=HOSTILE)
    until(page, f"nestream.received >= {pipeline.planted}")
    hostile = page.locator("button.violation", has_text="<script>")
    expect(hostile.first).to_be_visible()
    hostile.first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
    dialog.locator("table").get_by_role("button", name="Show the whole value").first.click()
    expect(dialog.locator("table")).to_contain_text(HOSTILE)
    visit(page, pipeline, "/matches?rule=hygiene-before-entering&data=live")
    expect(page.get_by_role("table", name="Matches")).to_contain_text("<script>", timeout=PATIENCE)
    visit(page, pipeline, "/overview?filter=" + "%3Cscript%3Ewindow.hostile=1%3C/script%3E")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hostile") is None
    assert page.locator("main script, main img, dialog script, dialog img").count() == 0


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_fails_the_rules_of_accessibility(
    page: Page, pipeline: Pipeline, name: str, every: bool
) -> None:
    visit(page, pipeline, f"/{name}")
    ready = {
        "overview": "button.violation",
        "queries": ".verdict[data-state=fine]",
        "matches": "main input[type=checkbox]",
        "health": ".card .value",
    }
    expect(page.locator(ready[name]).first).to_be_visible(timeout=PATIENCE)
    if name == "overview":
        audited(page, every=every)
        page.locator("button.violation").first.click()
        expect(page.locator("dialog svg.timeline")).to_be_visible(timeout=PATIENCE)
    if name == "queries":
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.locator("svg.graph").first).to_be_visible(timeout=PATIENCE)
    if name == "matches":
        with_few_rows(page)
    audited(page, every=every)


def audited(page: Page, *, every: bool = False) -> None:
    """Fail where a page breaks a rule, as it is loaded: light and wide, and dark and narrow, or every way.

    Each audit takes its time, so the other two ways are for the slow tests.
    """
    before = page.viewport_size
    assert before is not None
    ways = [("light", before["width"]), ("dark", 390)]
    for scheme, width in [*ways, ("dark", before["width"]), ("light", 390)] if every else ways:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({**before, "width": width})
        found = Axe().run(page, options=WCAG).response["violations"]
        assert [f"{one['id']}: {one['help']} {one['nodes'][0]['html'][:160]}" for one in found] == []
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{page.url} is {wide} pixels too wide at {width}"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(before)


def with_few_rows(page: Page) -> None:
    """Leave a few rows in the tables of the matches page: more of the same take longer, and show no more."""
    if page.get_by_label("Filter").is_visible():
        page.get_by_label("Filter").fill("severity:high")
    page.get_by_label("Search").fill("#17")
    expect(page.locator("main input[type=checkbox]").nth(30)).to_have_count(0, timeout=PATIENCE)


def test_the_rules_of_accessibility_would_be_seen_to_fail(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/health")
    expect(page.locator(".card .value").first).to_be_visible()
    page.evaluate(
        """() => {
            const faint = document.createElement("p");
            faint.textContent = "hardly to be read";
            faint.style.color = "#cccccc";
            document.querySelector("main .panel").append(faint, document.createElement("button"));
        }"""
    )
    found = {one["id"] for one in Axe().run(page, options=WCAG).response["violations"]}
    assert found == {"color-contrast", "button-name"}


def test_all_can_be_done_with_the_keyboard(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/overview")
    expect(page.locator("button.violation").first).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('violation')"):
            break
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate("document.activeElement.classList.contains('violation')")
    page.get_by_role("link", name="Queries").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/queries"))
    page.get_by_role("tab", name="Matches").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Plan", exact=True)).to_be_focused()
    area = page.locator("#query-text")
    area.focus()
    page.keyboard.press("Tab")
    expect(area).not_to_be_focused()


def test_a_lost_connection_is_taken_up_again_without_a_gap(page: Page, pipeline: Pipeline) -> None:
    until(page, f"nestream.received >= {pipeline.planted}")
    page.context.set_offline(True)
    pipeline.go_on(2)
    pipeline.committed_at(pipeline.planted)
    page.context.set_offline(False)
    until(page, f"nestream.received >= {pipeline.planted}")
    assert held(page, "missed") == 0
    assert held(page, "received") == pipeline.planted


def test_nothing_is_lost_between_the_sink_and_the_server(page: Page, pipeline: Pipeline) -> None:
    counters = page.evaluate("fetch('/api/counters').then((answer) => answer.json())")
    assert counters["matches"] == pipeline.committed() == pipeline.planted
