"""Every page of the console in a browser, on a running pipeline: what it shows, how fast, and for whom."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.console.pipeline import HOSTILE, TRIGGER, Pipeline, wait

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PATIENCE = 30_000
"""Milliseconds that a busy machine may take for what is not measured."""
PAGES = ("ward", "queries", "matches", "health")
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


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


def visit(page: Page, pipeline: Pipeline, path: str) -> None:
    page.goto(pipeline.console.base + path)


def until(page: Page, expression: str) -> None:
    """Wait until something holds in the page; asked from outside, as the page may not evaluate texts."""
    wait(lambda: bool(page.evaluate(expression)), 60)


def held(page: Page, expression: str) -> Any:
    """What the browser holds."""
    return page.evaluate(f"window.nestream.{expression}")


def test_a_planted_violation_is_on_the_ward_within_the_trigger_and_a_second(
    page: Page, pipeline: Pipeline
) -> None:
    until(page, f"nestream.received >= {pipeline.planted}")
    before = pipeline.planted
    pipeline.go_on(1)
    committed = pipeline.committed_at(pipeline.planted)
    until(page, f"nestream.received >= {pipeline.planted}")
    shown = time.time()
    assert shown - committed < TRIGGER + 1
    newest = page.locator("ol.violations li").first
    rules = {rule["name"]: rule["title"] for rule in held(page, "job.rules")}
    last = held(page, "matches.at(-1)")
    expect(newest).to_contain_text(rules[last["query"]])
    truth = [json.loads(line) for line in pipeline.job.truth.read_text().splitlines()]
    planted = {(one["query"], tuple(one["events"])) for one in truth}
    numbers = tuple(part["event"]["event"] for part in last["events"])
    assert (last["query"], numbers) in planted
    assert held(page, "received") == pipeline.planted > before
    assert held(page, "missed") == 0


def test_the_ward_shows_each_worker_where_the_last_event_was(page: Page, pipeline: Pipeline) -> None:
    until(page, "nestream.workers.size >= 8")
    where: dict[str, str] = {}
    for path in sorted(pipeline.job.events.glob("part-*.jsonl")):
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["wID"] is not None:
                where[str(event["wID"])] = event["room"]
    page.wait_for_timeout(600)
    rooms = {row[0]: row[1] for row in held(page, "job && [...window.nestream.workers.values()]")}
    assert rooms == where
    drawn = page.locator("svg.floor .worker").count()
    assert drawn == len([room for room in where.values() if not room.startswith("<")])
    states = {row[2] for row in held(page, "job && [...window.nestream.workers.values()]")}
    assert {"clean", "due"} & states


def test_a_violation_opens_with_its_events_its_timeline_and_its_rule(page: Page, pipeline: Pipeline) -> None:
    page.locator("button.violation").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
    rows = dialog.locator("tbody tr").count()
    assert rows == dialog.locator("svg.timeline .event.used").count() > 0
    assert dialog.locator("svg.timeline .absent").count() > 0
    assert "PATTERN" in dialog.locator("pre.query").inner_text()
    dialog.get_by_role("button", name="Edit this rule").click()
    expect(page).to_have_url(re.compile("/queries\\?rule="))
    assert "PATTERN" in page.locator("#query-text").input_value()


def test_filters_narrow_the_list_and_the_statistics_and_stand_in_the_address(
    page: Page, pipeline: Pipeline
) -> None:
    until(page, f"nestream.received >= {pipeline.planted}")
    severities = {match["severity"] for match in held(page, "matches")}
    chosen = next(name for name in ("high", "low") if name in severities)
    page.get_by_label("Severity").select_option(chosen)
    expect(page).to_have_url(re.compile(f"severity={chosen}"))
    some = page.locator("button.violation")
    expect(some.first).to_be_visible()
    assert set(some.locator(".severity").all_inner_texts()) == {chosen}
    page.reload()
    expect(some.first).to_be_visible()
    assert set(some.locator(".severity").all_inner_texts()) == {chosen}
    page.get_by_label("Area").select_option("Store")
    expect(page.locator("ol.violations")).to_contain_text("None yet")
    page.get_by_role("button", name="Clear").click()
    expect(some.first).to_be_visible()


def test_the_editor_underlines_the_right_word_and_shows_the_hint(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/queries")
    text = "PATTERN SEQ(Recycle r, Operating o,\n  r.id = x.id) // 🏥\nWITHIN 1 hours"
    page.locator("#query-text").fill(text)
    marked = page.locator(".layer mark.said-error")
    expect(marked.first).to_be_visible(timeout=PATIENCE)
    assert "".join(marked.all_inner_texts()) == "x.id"
    expect(page.locator("#diagnostics")).to_contain_text("unknown variable `x`")
    expect(page.locator("#diagnostics")).to_contain_text("hint: the variables are")
    # The coloured text lies exactly below the one that is typed.
    assert page.locator(".layer").inner_text().rstrip("\n") == text
    sizes = [
        page.locator(part).evaluate("(e) => [e.clientWidth, getComputedStyle(e).font]")
        for part in (".layer", "#query-text")
    ]
    assert sizes[0] == sizes[1]
    page.get_by_role("button", name="line 2, column 10").click()
    area = page.locator("#query-text")
    assert area.evaluate("(e) => e.value.slice(e.selectionStart, e.selectionEnd)") == "x.id"
    assert page.get_by_role("button", name="Run").is_disabled()


def test_a_query_is_run_on_a_data_set_and_its_plan_is_drawn(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/queries?rule=unfinished-instrument")
    page.get_by_label("Events").select_option("hospital")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
    assert page.locator("svg.timeline .absent").count() > 0
    expect(page.get_by_role("table", name="Matches")).to_be_visible()
    page.get_by_role("button", name="Plan", exact=True).click()
    plan = page.locator("[role=tabpanel]:not([hidden]) svg.graph")
    expect(plan).to_be_visible(timeout=PATIENCE)
    expect(plan).to_contain_text("Recycle r")
    expect(plan).to_contain_text("found")
    page.get_by_role("tab", name="Rewritten plan").click()
    expect(plan).to_be_visible()


def test_an_edited_rule_shows_its_effect_on_the_live_stream(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/queries?rule=hygiene-before-entering")
    area = page.locator("#query-text")
    area.fill("PATTERN SEQ(Enter-Operating-Room o)\nWITHIN 1 minutes")
    expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
    page.get_by_role("button", name="Try on the live stream").click()
    until(page, "nestream.trials.length && nestream.trials[0].matches > 0")
    expect(page.get_by_role("table", name="Matches of the trial")).to_be_visible(timeout=PATIENCE)
    before = held(page, "trials[0].matches")
    pipeline.go_on(2)
    until(page, f"nestream.trials[0].matches > {before}")
    page.get_by_role("link", name="Ward").click()
    page.get_by_label("Severity").select_option("trial")
    expect(page.locator("button.violation.trial").first).to_be_visible()
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("table", name="State by leaf")).to_contain_text("trial")
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("button", name="Stop the trial").click()
    until(page, "!nestream.trials.length")


def test_the_matches_page_draws_lanes_and_tells_why_events_did_not_match(
    page: Page, pipeline: Pipeline
) -> None:
    visit(page, pipeline, "/matches?rule=unfinished-instrument&data=hospital")
    timeline = page.locator("svg.timeline")
    expect(timeline).to_be_visible(timeout=PATIENCE)
    lanes = timeline.locator(".lane-name title").all_text_contents()
    assert {"Recycle", "Washing", "Operating", "Sharpening"} <= set(lanes)
    assert timeline.locator(".joined").count() > 0
    assert timeline.locator(".absent").count() > 0
    page.get_by_label("Search").fill("sharpening")
    expect(page.locator("input[type=checkbox]").first).to_be_visible()
    page.wait_for_timeout(500)
    page.get_by_role("checkbox", name=re.compile("Sharpening")).first.check()
    page.get_by_role("button", name="Why did these not match?").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("They are no match", timeout=PATIENCE)
    expect(answer).to_contain_text("only negates")
    assert answer.locator("mark.blamed").count() > 0


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
        visit(page, pipeline, "/ward")
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
        expect(page.get_by_role("table", name="Time by query")).to_be_visible(timeout=PATIENCE)
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
    expect(dialog).to_contain_text(HOSTILE)
    visit(page, pipeline, "/matches?rule=hygiene-before-entering&data=live")
    expect(page.get_by_role("table", name="Matches")).to_contain_text("<script>", timeout=PATIENCE)
    visit(page, pipeline, "/ward?area=" + "%3Cscript%3Ewindow.hostile=1%3C/script%3E")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hostile") is None
    assert page.locator("main script, main img, dialog script, dialog img").count() == 0


def test_the_health_page_tells_of_the_stream(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/health")
    card = page.get_by_role("region", name="Matches a second")
    expect(card).to_contain_text(
        f"{pipeline.planted} committed, {pipeline.planted} received", timeout=PATIENCE
    )
    expect(page.get_by_role("region", name="Watermark")).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    expect(page.get_by_role("region", name="State", exact=True)).to_contain_text(re.compile("[KM]?B"))
    expect(page.get_by_role("region", name="Late events", exact=True)).to_contain_text("0")
    page.get_by_role("button", name="Measure now").click()
    slow = page.get_by_role("table", name="Time by query")
    expect(slow).to_be_visible(timeout=PATIENCE)
    assert slow.locator("tbody tr").count() == len(held(page, "job.rules"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_fails_the_rules_of_accessibility(
    page: Page, pipeline: Pipeline, name: str, scheme: str
) -> None:
    visit(page, pipeline, f"/{name}")
    ready = {
        "ward": "button.violation",
        "queries": ".verdict[data-state=fine]",
        "matches": "main input[type=checkbox]",
        "health": ".card .value",
    }
    expect(page.locator(ready[name]).first).to_be_visible(timeout=PATIENCE)
    if name == "ward":
        _no_violations(page)
        page.locator("button.violation").first.click()
        expect(page.locator("dialog svg.timeline")).to_be_visible(timeout=PATIENCE)
    if name == "queries":
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.locator("svg.graph").first).to_be_visible(timeout=PATIENCE)
    _no_violations(page)


def _no_violations(page: Page) -> None:
    found = Axe().run(page, options=WCAG).response["violations"]
    assert [f"{one['id']}: {one['help']} {one['nodes'][0]['html'][:160]}" for one in found] == []


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
    visit(page, pipeline, "/ward")
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
    assert counters["missing"] == 0
