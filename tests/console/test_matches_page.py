"""The page of matches in a browser: timelines, and why events that were picked did not match."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.console.browsing import PATIENCE, slowed, visit
from tests.console.pipeline import Pipeline, wait


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


def source(page: Page) -> Locator:
    """Where the events come from; the names of the sources are part of its label."""
    label = page.locator("label.field").filter(has=page.get_by_text("Events", exact=True))
    return label.locator("select")


def test_what_comes_late_is_not_shown_as_that_of_another_source(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/matches?rule=unfinished-instrument&data=hospital")
    status = page.get_by_role("region", name="Matches").get_by_role("status")
    expect(status).to_contain_text("matches in", timeout=PATIENCE)
    of_hospital = status.inner_text()
    rows = page.get_by_role("group", name="Events to pick from")
    listed = rows.inner_text()
    with slowed(page, "run") as run_now, slowed(page, "events") as list_now:
        source(page).select_option("live")
        wait(lambda: run_now.is_asked() and list_now.is_asked(), 120, lambda: page.wait_for_timeout(20))
        source(page).select_option("hospital")
        expect(status).to_have_text(of_hospital, timeout=PATIENCE)
        run_now()
        list_now()
        page.wait_for_timeout(500)
    expect(status).to_have_text(of_hospital)
    assert rows.inner_text() == listed


def test_another_source_takes_back_what_was_picked_and_answered(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/matches?rule=unfinished-instrument&data=hospital")
    page.get_by_role("checkbox").first.check(timeout=PATIENCE)
    page.get_by_role("button", name="Why did these not match?").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text(re.compile("match"), timeout=PATIENCE)
    source(page).select_option("live")
    expect(page.get_by_role("list", name="Picked events").get_by_role("listitem")).to_have_count(0)
    expect(answer).to_be_empty()
    expect(page.get_by_role("button", name="Why did these not match?")).to_be_disabled()


def test_one_event_more_than_can_be_picked_stays_unpicked_and_the_limit_is_told(
    page: Page, pipeline: Pipeline
) -> None:
    visit(page, pipeline, "/matches?rule=unfinished-instrument&data=hospital")
    boxes = page.get_by_role("checkbox")
    expect(boxes.nth(50)).to_be_visible(timeout=PATIENCE)
    boxes.evaluate_all("(all) => all.slice(0, 50).forEach((box) => box.click())")
    picked = page.get_by_role("list", name="Picked events").get_by_role("listitem")
    expect(picked).to_have_count(50)
    boxes.nth(50).click()
    expect(boxes.nth(50)).not_to_be_checked()
    expect(picked).to_have_count(50)
    told = page.get_by_text("At most 50 events can be picked")
    expect(told).to_be_visible()
    picked.first.get_by_role("button").click()
    expect(told).to_have_count(0)
    boxes.nth(50).check()
    expect(picked).to_have_count(50)
