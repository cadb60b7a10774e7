"""The overview of a job with a plan in a browser, on Spark: the ward, its workers, matches and filters."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.console.browsing import PATIENCE, held, until
from tests.console.pipeline import Pipeline, wait


def test_a_planted_violation_is_on_the_ward_once_it_is_committed(page: Page, pipeline: Pipeline) -> None:
    until(page, f"nestream.received >= {pipeline.planted}")
    before = pipeline.planted
    pipeline.go_on(1)
    pipeline.committed_at(pipeline.planted)
    until(page, f"nestream.received >= {pipeline.planted}")
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
    workers = "job && [...window.nestream.workers.values()]"
    wait(lambda: {row[0]: row[1] for row in held(page, workers)} == where, 120)
    drawn = len([room for room in where.values() if not room.startswith("<")])
    expect(page.locator("svg.floor .worker")).to_have_count(drawn, timeout=PATIENCE)
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
    page.locator("svg.floor .room", has_text="Store").click()
    expect(page.get_by_label("Filter")).to_have_value("room:Store")
    expect(page.locator("ol.violations")).to_contain_text("None yet")
    page.get_by_role("button", name="Clear").click()
    expect(some.first).to_be_visible()
