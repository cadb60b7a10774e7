"""The page of queries in a browser: the editor, runs and plans, and trials on the live stream."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.console.browsing import PATIENCE, held, slowed, until, visit
from tests.console.pipeline import Pipeline, wait


def test_the_editor_underlines_the_right_word_and_shows_the_hint(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/queries")
    text = "PATTERN SEQ(Recycle r, Operating o,\n  r.id = x.id) // 🏥\nWITHIN 1 hour"
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
    area.fill("PATTERN SEQ(Enter-Operating-Room o)\nWITHIN 1 minute")
    expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
    page.get_by_role("button", name="Try on the live stream").click()
    until(page, "nestream.trials.length && nestream.trials[0].matches > 0")
    difference = page.locator(".difference")
    expect(difference).to_contain_text("Entered an operating room without sanitising", timeout=PATIENCE)
    before = held(page, "trials[0].matches")
    pipeline.go_on(2)
    until(page, f"nestream.trials[0].matches > {before}")
    until(page, f"nestream.received >= {pipeline.planted}")
    # Who is in violation is so by a match of the job: the trial, which finds everybody, colours nobody.
    in_violation = "[...nestream.workers.values()].filter(([, , state]) => state === 'violation')"
    by_the_job = "nestream.matches.some((match) => match.entities.includes(name))"
    assert page.evaluate(f"{in_violation}.every(([name]) => {by_the_job})")
    assert held(page, "matches.every((match) => nestream.rules.has(match.query))")
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("table", name="State by leaf")).to_contain_text("(on trial)")
    page.get_by_role("link", name="Queries").click()
    page.get_by_role("button", name="Stop the trial").click()
    until(page, "!nestream.trials.length")
    page.get_by_role("tab", name="Trial").click()
    expect(difference).to_be_hidden()


def test_an_emptied_editor_can_neither_be_run_nor_planned_nor_tried(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/queries?rule=hygiene-before-entering")
    buttons = [
        page.get_by_role("button", name=name, exact=True)
        for name in ("Run", "Plan", "Try on the live stream")
    ]
    expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
    for button in buttons:
        expect(button).to_be_enabled()
    page.locator("#query-text").fill("  ")
    expect(page.locator(".verdict")).to_contain_text("Write a query")
    for button in buttons:
        expect(button).to_be_disabled()


def test_a_slow_answer_is_not_shown_after_that_of_a_later_request(page: Page, pipeline: Pipeline) -> None:
    visit(page, pipeline, "/queries?rule=unfinished-instrument")
    page.get_by_label("Events").select_option("hospital")
    expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
    with slowed(page, "run") as answer_now:
        page.get_by_role("button", name="Run").click()
        wait(answer_now.is_asked, 120, lambda: page.wait_for_timeout(20))
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.locator("[role=tabpanel]:not([hidden]) svg.graph")).to_be_visible(timeout=PATIENCE)
        answer_now()
        page.wait_for_timeout(500)
    expect(page.get_by_role("table", name="Matches")).to_have_count(0)
    expect(page.get_by_role("region", name="Results").get_by_role("status")).to_contain_text("Estimated")
