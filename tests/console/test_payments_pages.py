"""The pages of a payments job on the embedded runtime, as somebody who knows no hospital sees them."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from nestream.job import rule_topic
from tests.console.browsing import PATIENCE, until, visiting
from tests.console.payments import Payments
from tests.console.pipeline import wait
from tests.console.served import Console, JobFolder, event, match, serving
from tests.console.test_pages import IMAGES, audited, with_few_rows

OVERRIDE = "u\u202e6543"
LONG = "x" * 300


@pytest.fixture
def payments(running: tuple[Payments, Console]) -> Payments:
    return running[0]


@pytest.fixture
def console(running: tuple[Payments, Console]) -> Console:
    return running[1]


@pytest.fixture(scope="module")
def visitor(browser: Browser, running: tuple[Payments, Console]) -> Iterator[Page]:
    """One page for all tests, as a visitor has; errors of its scripts fail the last of them."""
    payments, console = running
    with visiting(browser, console) as opened:
        until(opened, f"nestream.received >= {payments.committed()}")
        yield opened


@pytest.fixture
def page(visitor: Page) -> Page:
    """The page, on the overview, with no filter and nothing open."""
    if visitor.locator("dialog").count():
        visitor.keyboard.press("Escape")
    visitor.get_by_role("link", name="Overview").click()
    return visitor


def test_nothing_of_a_hospital_is_on_the_pages_of_another_job(page: Page) -> None:
    links = page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts()
    assert links == ["Overview", "Matches", "Queries", "Health"]
    for name in links:
        page.get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_title(re.compile(f"{name} – Payments"))
        words = page.locator("body").inner_text().lower()
        assert not {"ward", "floor", "clean hands", "worker", "room"} & set(re.findall(r"\w+", words))
    expect(page.locator("#job-name")).to_have_text("Payments")


def test_the_overview_shows_matches_over_time_the_top_values_and_the_newest(
    page: Page, payments: Payments
) -> None:
    chart = page.get_by_role("img", name=re.compile("Matches over time"))
    expect(chart.locator("rect.series").first).to_be_visible()
    expect(chart.locator("text.axis").first).to_be_visible()
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".reading").first).to_contain_text(re.compile(r"\d\d:\d\d:\d\d: .*\d"))
    facets = page.get_by_role("region", name="Most frequent")
    assert facets.get_by_role("heading", level=3).all_inner_texts() == ["USER", "CITY", "CURRENCY"]
    before = payments.committed()
    payments.large("u77", city="Gent")
    wait(lambda: payments.committed() > before, 120)
    newest = page.locator("ol.violations li").first
    expect(newest).to_contain_text("Large payment without a login", timeout=PATIENCE)
    expect(newest).to_contain_text("user u77")
    expect(newest).to_contain_text("high")


def any_event(holds: str) -> str:
    """Whether an event of a match is so, as an expression of the page."""
    return f"match.events.some(({{ event: {{ user, city, amount, currency }} }}) => {holds})"


FILTERS = {
    "user:u5": any_event("user === 'u5'"),
    'city:"New York"': any_event("city === 'New York'"),
    "amount>1500": any_event("amount > 1500"),
    "amount<=1000 currency:EUR": f"{any_event('amount <= 1000')} && {any_event('currency === `EUR`')}",
    "city!=Gent": f"!{any_event('city === `Gent`')}",
    "severity:high refund": "false",
}


def test_a_filter_on_any_attribute_narrows_overview_and_matches(page: Page, console: Console) -> None:
    for written, holds in FILTERS.items():
        page.get_by_role("link", name="Overview").click()
        page.get_by_label("Filter").fill(written)
        expect(page).to_have_url(re.compile("filter="))
        expected = page.evaluate(f"nestream.matches.filter((match) => {holds}).length")
        count = page.get_by_role("region", name="Newest matches").locator(".hint").first
        expect(count).to_contain_text(f"{expected} of those held match the filter")
        page.get_by_role("link", name="Matches", exact=True).click()
        page.get_by_label("Filter").fill(written)
        status = page.get_by_role("region", name="Matches", exact=True).get_by_role("status")
        expect(status).to_contain_text(f"{expected} of the last")
    page.goto(f"{console.base}/overview?filter=user%3Au5")
    expect(page.get_by_label("Filter")).to_have_value("user:u5")
    expect(page.locator("#connection[data-line=open]")).to_be_visible(timeout=PATIENCE)


def test_a_click_on_a_value_is_a_term_of_the_filter(page: Page) -> None:
    first = page.get_by_role("region", name="Most frequent").locator("button.name").first
    name = first.inner_text()
    first.click()
    expect(page.get_by_label("Filter")).to_have_value(f"user:{name}")
    page.get_by_role("region", name="Most frequent").get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_label("Filter")).to_have_value("")
    page.get_by_label("Filter").fill("usr:u5")
    expect(page.locator("#filter-remarks")).to_contain_text("no match has an attribute usr")


def test_a_match_has_an_address_of_its_own(page: Page, console: Console) -> None:
    page.get_by_role("link", name="Matches", exact=True).click()
    page.get_by_role("link", name=re.compile("Open the match of")).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
    title = dialog.get_by_role("heading", level=2).inner_text()
    address = page.url
    assert "match=" in address
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("match="))
    page.goto(address)
    expect(page.get_by_role("dialog").get_by_role("heading", level=2)).to_have_text(title, timeout=PATIENCE)


def test_health_tells_state_age_batch_time_and_lag_with_their_definitions(page: Page) -> None:
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_role("region", name="Job", exact=True)).to_contain_text("running", timeout=PATIENCE)
    expect(page.get_by_role("region", name="Last batch")).to_contain_text("ago")
    expect(page.get_by_role("region", name="Lag")).to_contain_text(
        "How far the watermark was behind the clock when the last batch came"
    )
    expect(page.get_by_role("region", name="Batch time")).to_contain_text("Busy")
    rules = page.get_by_role("table", name="Time by rule")
    expect(rules).to_contain_text(" ms")
    assert rules.locator("tbody tr").count() == 2
    metrics = page.get_by_role("link", name="/metrics")
    expect(metrics).to_have_attribute("href", re.compile(r"^http://127\.0\.0\.1:\d+/metrics$"))
    page.locator("label.field", has_text="Time").locator("select").select_option(label="last hour")
    expect(page).to_have_url(re.compile("range=1"))


def test_a_stream_that_is_killed_has_stalled_and_one_that_goes_on_runs(
    page: Page, payments: Payments
) -> None:
    payments.stop(signal.SIGKILL)
    told = payments.progress()
    old = (datetime.now(UTC) - timedelta(seconds=60)).isoformat()
    (payments.job / "progress.json").write_text(json.dumps({**told, "written": old}))
    expect(page.locator("#connection")).to_contain_text("stalled", timeout=PATIENCE)
    expect(page.get_by_role("alert")).to_contain_text("It has said nothing for")
    payments.start()
    expect(page.locator("#connection")).to_contain_text("running", timeout=PATIENCE)
    payments.stop()
    expect(page.locator("#connection")).to_contain_text("stopped", timeout=PATIENCE)
    payments.start()
    expect(page.locator("#connection")).to_contain_text("running", timeout=PATIENCE)


def test_values_that_turn_text_around_and_long_ones_are_contained(page: Page, payments: Payments) -> None:
    payments.large(OVERRIDE, city="Gent", note=LONG)
    until(page, f"nestream.matches.some((match) => match.entities.includes({json.dumps(OVERRIDE)}))")
    page.get_by_label("Filter").fill(f"user:{OVERRIDE}")
    page.locator("button.violation").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
    assert OVERRIDE in dialog.locator("table bdi").all_text_contents()
    assert LONG not in dialog.inner_text()
    dialog.get_by_role("button", name="Show the whole value").first.click()
    expect(dialog.locator("table")).to_contain_text(LONG)


@pytest.mark.parametrize("many", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_all_tabs_of_a_browser_share_one_line_and_all_of_them_work(
    browser: Browser, console: Console, payments: Payments, many: int
) -> None:
    context = browser.new_context()
    try:
        first = context.new_page()
        first.goto(console.address)
        tabs = [first, *(context.new_page() for _ in range(many - 1))]
        for tab in tabs[1:]:
            tab.goto(f"{console.base}/health", wait_until="commit", timeout=PATIENCE)
        before = payments.committed()
        payments.large("u88", city="Utrecht")
        wait(lambda: payments.committed() > before, 120)
        for tab in tabs:
            until(tab, f"window.nestream && nestream.received >= {before + 1}")
        with console.client() as client:
            assert client.get("/api/counters").json()["browsers"] <= 2
        tabs[-1].goto(f"{console.base}/queries")
        expect(tabs[-1].locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
    finally:
        context.close()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_page_of_any_job_fails_the_rules_of_accessibility(
    browser: Browser, console: Console, every: bool
) -> None:
    ready = {
        "overview": "button.violation",
        "matches": "main input[type=checkbox]",
        "queries": ".verdict[data-state=fine]",
        "health": ".card .value",
    }
    with visiting(browser, console, width=1440) as page:
        for name, shown in ready.items():
            page.goto(f"{console.base}/{name}")
            expect(page.locator(shown).first).to_be_visible(timeout=PATIENCE)
            if name == "matches":
                with_few_rows(page)
            audited(page, every=every)
            page.set_viewport_size({"width": 390, "height": 860})
            for table in page.locator("main table").all()[:1]:
                assert table.evaluate("(e) => e.scrollWidth <= e.parentElement.clientWidth + 1")
            page.set_viewport_size({"width": 1440, "height": 860})


def test_what_a_job_watches_and_what_to_try_is_said_in_its_first_minute(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = JobFolder(tmp_path_factory.mktemp("first") / "job")
    about = json.loads((folder.path / "job.json").read_text())
    changed = {**about, "runtime": "spark", "titels": {}, "matches": "out.txt"}
    (folder.path / "job.json").write_text(json.dumps(changed))
    with serving(folder.path) as console, visiting(browser, console) as page:
        hello = page.get_by_role("region", name="The job is starting")
        expect(hello).to_contain_text("Spark is starting", timeout=PATIENCE)
        expect(hello).to_contain_text("It watches events with one rule: Used without washing")
        expect(hello.get_by_role("listitem")).to_have_count(3)
        expect(page.locator("#page")).to_contain_text("did you mean `titles`?")
        (folder.path / "out.txt").write_text("no matches\n")
        expect(page.locator(".problem")).to_contain_text(
            "The matches cannot be read: cannot tell the format of", timeout=PATIENCE
        )
        folder.progress(batches=0)
        expect(page.get_by_role("region", name="No matches yet")).to_contain_text(
            "waiting for the first events", timeout=PATIENCE
        )
        (folder.path / "out.txt").unlink()
        (folder.path / "out.txt").mkdir()
        row = match("dirty", o=event(5, "Operating", id=7))
        (folder.path / "out.txt" / "part-0.json").write_text(json.dumps(row) + "\n")
        expect(page.locator("button.violation")).to_have_count(1, timeout=PATIENCE)
        expect(page.get_by_role("region", name="No matches yet")).to_have_count(0)


def test_a_page_says_that_matches_are_held_back_while_the_rules_cannot_be_read(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_topic, "PATIENCE", 0.1)
    folder = JobFolder(tmp_path / "job")
    about = json.loads((folder.path / "job.json").read_text())
    (folder.path / "job.json").write_text(json.dumps({**about, "rules": "kafka://127.0.0.1:9/rules"}))
    folder.progress(batches=3)
    folder.matches(match("dirty", o=event(5, "Operating", id=7)))
    with serving(folder.path) as console, visiting(browser, console) as page:
        expect(page.locator(".problem")).to_contain_text("The rules cannot be read", timeout=PATIENCE)
        expect(page.locator(".notice")).to_contain_text("Matches are held back until the console has read")
        expect(page.get_by_role("region", name="No matches yet")).to_contain_text("has not read the rules")


def test_a_run_can_be_cancelled(page: Page) -> None:
    page.get_by_role("link", name="Queries").click()
    parts = ", ".join(f"Payment p{number}" for number in range(12))
    page.locator("#query-text").fill(f"PATTERN SEQ({parts})\nWITHIN 10 hours")
    expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)
    page.get_by_role("button", name="Run").click()
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible()
    cancel.click()
    expect(page.get_by_role("region", name="Results")).to_contain_text("You stopped it", timeout=PATIENCE)
    expect(cancel).to_be_hidden()


def test_screenshots_of_payments(browser: Browser, console: Console, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--screenshots", default=False):
        pytest.skip("pictures are taken with --screenshots")
    with visiting(browser, console, width=1200, height=760) as page:
        expect(page.locator("button.violation").first).to_be_visible(timeout=PATIENCE)
        time.sleep(1)
        page.screenshot(path=IMAGES / "console-overview.png")
