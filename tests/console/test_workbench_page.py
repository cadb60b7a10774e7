"""From trial to deployment in a browser, on the running payments job; work with matches; the editor."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.browsing import PATIENCE, until, visiting
from tests.console.payments import RULES, Payments
from tests.console.pipeline import wait
from tests.console.served import Console
from tests.console.test_pages import IMAGES, audited

RULE = "large-without-login"
LAXER = RULES[RULE].replace("900", "200")
STRICTER = RULES[RULE].replace("900", "4000")


@pytest.fixture
def payments(running: tuple[Payments, Console]) -> Payments:
    return running[0]


@pytest.fixture
def console(running: tuple[Payments, Console]) -> Console:
    return running[1]


@pytest.fixture(scope="module")
def visitor(browser: Browser, running: tuple[Payments, Console]) -> Iterator[Page]:
    with visiting(browser, running[1], width=1440) as opened:
        until(opened, f"nestream.received >= {running[0].committed()}")
        yield opened


@pytest.fixture
def page(visitor: Page, console: Console, payments: Payments) -> Iterator[Page]:
    """The page of queries with the deployed rule; afterwards no draft, no trial, and the rule as it was."""
    visitor.goto(f"{console.base}/queries?rule={RULE}")
    accepted(visitor)
    yield visitor
    with console.client() as client:
        job = client.get("/api/snapshot").json()["data"]["job"]
        for draft in job["drafts"]:
            asked = {"name": draft["name"], "revision": draft["revision"]}
            client.post("/api/draft/discard", json=asked).raise_for_status()
        for name in (RULE, "query"):
            client.post("/api/trial/stop", json={"name": name})
        path = payments.folder / "rules" / f"{RULE}.neel"
        if path.read_text() != RULES[RULE]:
            body = {"name": RULE, "text": RULES[RULE], "before": path.read_text()}
            assert client.post("/api/deploy", json=body).json()["ok"]
    visitor.evaluate("sessionStorage.clear()")


def accepted(page: Page) -> None:
    expect(page.locator(".verdict")).to_contain_text("accepted", timeout=PATIENCE)


def write(page: Page, text: str) -> None:
    """Replace what the editor holds, and wait until it is checked."""
    page.locator("#query-text").fill(text)
    page.locator("#query-text").press("Escape")
    accepted(page)


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def runs_now(page: Page) -> None:
    """Wait until the job runs what was just deployed."""
    expect(page.locator("#said")).to_contain_text(re.compile(r"Version \d+ is deployed"), timeout=PATIENCE)
    (version,) = re.findall(r"Version \d+", page.locator("#said").inner_text())
    expect(page.locator("#deployed")).to_contain_text(
        f"{version} is deployed, and the job runs it", timeout=PATIENCE
    )


def test_a_new_query_begins_with_types_of_the_job_and_what_is_written_stays(page: Page) -> None:
    page.locator("label.field select").first.select_option(label="a new query")
    area = page.locator("#query-text")
    expect(area).to_have_value(re.compile(r"Payment a,\n  Login b,\n  a.user = b.user"), timeout=PATIENCE)
    accepted(page)
    write(page, "PATTERN Payment p WITHIN 1 minute")
    page.get_by_label("Events").select_option("stock")
    accepted(page)
    expect(area).to_have_value("PATTERN Payment p WITHIN 1 minute")


def test_a_false_alarm_is_found_its_rule_is_changed_tried_deployed_and_fewer_matches_come(
    page: Page, payments: Payments, console: Console
) -> None:
    payments.large("u501", city="Gent")
    until(page, "nestream.matches.some((match) => match.entities.includes('u501'))")
    page.get_by_role("link", name="Overview").click()
    page.get_by_label("Filter").fill("user:u501")
    page.locator("button.violation").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("svg.timeline")).to_be_visible(timeout=PATIENCE)
    expect(dialog.locator(".evidence")).to_contain_text("Login")
    dialog.get_by_role("button", name="False alarm").click()
    expect(dialog).to_contain_text("Marked as a false alarm")
    dialog.get_by_role("button", name="Edit this rule").click()
    accepted(page)
    write(page, RULES[RULE].replace("900", "9000"))
    button(page, "Save draft")
    expect(page.locator("#said")).to_have_text("The draft is saved.")
    before = page.evaluate("[nestream.totals.matches, nestream.statistics.rule]")
    button(page, "Try on the live stream")
    difference = page.locator(".difference")
    expect(difference).to_contain_text(re.compile(r"\+0 new, [1-9]\d* gone"), timeout=PATIENCE)
    gone = page.get_by_role("table", name="Gone matches")
    expect(gone).to_contain_text("u501", timeout=PATIENCE)
    assert page.evaluate("[nestream.totals.matches, nestream.statistics.rule]") == before
    button(page, "Deploy…")
    asked = page.get_by_role("dialog", name="Deploy Large payment without a login?")
    expect(asked).to_contain_text(re.compile(r"On trial: \+0 new, \d+ gone"))
    expect(asked.locator(".differs").first).to_contain_text("p.amount > 900")
    asked.get_by_role("button", name="Deploy", exact=True).click()
    runs_now(page)
    found = payments.committed()
    payments.large("u502", city="Gent")
    refunded = {"city": "Gent", "currency": "EUR", "amount": 800.0, "user": "u502"}
    payments.write("Refund", **refunded)
    payments.write("Login", user="nobody", city="Gent")
    wait(lambda: payments.committed() > found, 120)  # the other rule finds the refund
    until(page, f"nestream.received >= {payments.committed()}")
    about = "match.query === 'large-without-login' && match.entities.includes('u502')"
    assert page.evaluate(f"nestream.matches.some((match) => {about})") is False


def test_a_draft_survives_a_reload_and_is_seen_by_others_with_its_title(
    page: Page, browser: Browser, console: Console
) -> None:
    titled = STRICTER.replace("Large payment", "Huge payment")
    write(page, titled)
    page.reload()
    accepted(page)
    assert page.locator("#query-text").input_value() == titled  # not saved, and still there
    expect(page.locator("#draft-state")).to_contain_text("Changes are not saved")
    button(page, "Save draft")
    expect(page.locator("#draft-state")).to_contain_text("The draft was saved")
    with visiting(browser, console) as other:
        other.goto(f"{console.base}/queries?rule={RULE}")
        accepted(other)
        assert other.locator("#query-text").input_value() == titled
        write(other, LAXER)
        button(other, "Save draft")
        expect(other.locator("#said")).to_have_text("The draft is saved.")
        # The first has nothing unsaved, so it shows the newer one, and says so.
        expect(page.locator("#said")).to_contain_text("It was changed elsewhere", timeout=PATIENCE)
        assert page.locator("#query-text").input_value() == LAXER
        page.locator("#query-text").fill(STRICTER)
        write(other, titled)
        button(other, "Save draft")
        notice = page.locator(".notice", has_text="The draft was changed elsewhere")
        expect(notice).to_be_visible(timeout=PATIENCE)
        assert page.locator("#query-text").input_value() == STRICTER
        notice.get_by_role("button", name="Save mine over it").click()
        expect(page.locator("#said")).to_have_text("The draft is saved.")
        expect(other.locator("#said")).to_contain_text("It was changed elsewhere", timeout=PATIENCE)
        assert other.locator("#query-text").input_value() == STRICTER


def test_a_trial_survives_a_reload_and_never_shows_among_the_matches_of_the_job(
    page: Page, console: Console
) -> None:
    write(page, LAXER)
    button(page, "Try on the live stream")
    expect(page.locator(".difference")).to_contain_text(
        re.compile(r"\+[1-9][\d,]* new, 0 gone Large payment without a login: [\d,]+ in both"),
        timeout=PATIENCE,
    )
    page.reload()
    page.get_by_role("tab", name="Trial").click()
    new = page.get_by_role("table", name="New matches")
    expect(new).to_be_visible(timeout=PATIENCE)
    new.get_by_role("button", name="Show match 1 on the timeline").click()
    expect(page.locator("[role=tabpanel]:not([hidden]) svg.timeline")).to_be_visible(timeout=PATIENCE)
    page.locator("#query-text").fill(STRICTER)
    expect(page.get_by_text("The text in the editor has changed since")).to_be_visible()
    amounts = "nestream.matches.filter((match) => match.query === 'large-without-login')"
    assert page.evaluate(f"{amounts}.every((match) => match.events.at(-1).event.amount > 900)")
    page.get_by_role("link", name="Overview").click()
    assert page.get_by_label("Severity").locator("option").all_inner_texts() == [
        "all",
        "high",
        "medium and high",
        "low alone",
    ]
    page.get_by_role("link", name="Queries").click()
    button(page, "Stop the trial")
    until(page, "!nestream.trials.length")


def test_versions_are_listed_and_an_earlier_one_comes_back(page: Page, payments: Payments) -> None:
    write(page, STRICTER)
    button(page, "Deploy…")
    page.get_by_role("dialog").get_by_role("button", name="Deploy", exact=True).click()
    runs_now(page)
    page.get_by_role("tab", name="Versions").click()
    listed = page.get_by_role("table", name="Versions of the rules")
    expect(listed).to_contain_text(f"replace {RULE} (console)")
    newest = int(listed.locator("tbody tr").first.locator("td").first.inner_text())
    listed.get_by_role("button", name=f"Roll back to version {newest - 1}", exact=True).click()
    asked = page.get_by_role("dialog")
    expect(asked.locator(".differs").first).to_contain_text("p.amount > 4000")
    asked.get_by_role("button", name="Roll back").click()
    expect(page.locator("#said")).to_contain_text(f"Version {newest + 1} is deployed")
    wait(lambda: payments.progress()["version"] == newest + 1, 60)
    assert (payments.folder / "rules" / f"{RULE}.neel").read_text() == RULES[RULE]
    expect(page.locator("#query-text")).to_have_value(RULES[RULE], timeout=PATIENCE)


def test_a_file_that_was_changed_by_hand_is_reported_and_a_text_of_ones_own_stays(
    page: Page, payments: Payments
) -> None:
    page.locator("#query-text").fill(STRICTER)
    path = payments.folder / "rules" / f"{RULE}.neel"
    path.write_text(LAXER)
    expect(page.locator(".notices")).to_contain_text(
        re.compile(rf"The file {RULE}\.neel was changed by hand: version \d+"), timeout=PATIENCE
    )
    notice = page.locator(".notice", has_text="The deployed rule has changed since you began")
    expect(notice).to_be_visible()
    assert page.locator("#query-text").input_value() == STRICTER
    notice.get_by_role("button", name="Take the deployed text").click()
    expect(page.locator("#query-text")).to_have_value(LAXER)


def test_matches_are_commented_filtered_and_exported(page: Page, console: Console, tmp_path: Path) -> None:
    page.get_by_role("link", name="Matches", exact=True).click()
    page.get_by_role("link", name=re.compile("Open the match of")).nth(2).click()
    dialog = page.get_by_role("dialog")
    address = page.url.partition("match=")[2]
    dialog.get_by_role("button", name="Acknowledge").click()
    dialog.get_by_role("textbox", name="Comment").fill("the customer called <b>first</b>")
    dialog.get_by_role("button", name="Add comment").click()
    expect(dialog.get_by_role("list", name="Comments")).to_contain_text("called <b>first</b>")
    page.keyboard.press("Escape")
    page.get_by_label("Filter").fill("status:acknowledged")
    rows = page.get_by_role("table", name="Matches").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("acknowledged, 1 comment")
    for label, suffix in (("Export as CSV", "csv"), ("Export as Parquet", "parquet")):
        with page.expect_download() as download:
            button(page, label)
        path = tmp_path / f"matches.{suffix}"
        download.value.save_as(path)
        if suffix == "csv":
            (row,) = csv.DictReader(io.StringIO(path.read_text(), newline=""))
        else:
            (row,) = pq.read_table(path).to_pylist()
        assert (row["id"], row["status"]) == (address, "acknowledged")
        assert row["comments"] == "the customer called <b>first</b>"
    page.get_by_label("Filter").fill("")
    with page.expect_download() as download:
        button(page, "Export as CSV")
    download.value.save_as(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == page.evaluate("nestream.totals.matches")


def test_the_editor_completes_types_attributes_variables_and_functions(page: Page) -> None:
    area = page.locator("#query-text")
    completions = page.get_by_role("listbox", name="Completions")
    area.fill("PATTERN SEQ(")
    area.press("End")
    area.press_sequentially("Pay")
    expect(completions).to_contain_text("Payment", timeout=PATIENCE)
    area.press("Tab")
    assert area.input_value() == "PATTERN SEQ(Payment"
    area.press_sequentially(" p, Refund back, p.")
    expect(completions).to_contain_text("currency", timeout=PATIENCE)
    area.press_sequentially("curr")
    expect(completions.get_by_role("option")).to_have_count(1, timeout=PATIENCE)
    area.press("Tab")
    area.press_sequentially(" = ba")
    expect(completions).to_contain_text("variable", timeout=PATIENCE)
    area.press("Tab")
    area.press_sequentially(".currency, ab")
    expect(completions).to_contain_text("function", timeout=PATIENCE)
    area.press("Escape")
    expect(completions).to_be_hidden()
    assert area.input_value() == "PATTERN SEQ(Payment p, Refund back, p.currency = back.currency, ab"


def test_one_click_writes_what_was_meant_and_a_type_that_never_occurs_is_warned_of(page: Page) -> None:
    area = page.locator("#query-text")
    area.fill("PATTERN SEQ(Payment p, Refund r, p.user = r.user, p.amuont > 10)\nWITHIN 1 minute")
    fix = page.locator("#diagnostics .fix")
    expect(fix.first).to_contain_text("amount", timeout=PATIENCE)
    fix.first.click()
    accepted(page)
    assert "p.amount > 10" in area.input_value()
    area.press("Control+z")
    assert "p.amuont > 10" in area.input_value()
    area.fill("PATTERN SEQ(Paymnet p, Refund r, p.user = r.user)\nWITHIN 1 minute")
    expect(page.locator("#diagnostics .warning")).to_contain_text("no event has type", timeout=PATIENCE)
    page.locator("#diagnostics .warning .fix").click()
    expect(area).to_have_value(re.compile(r"SEQ\(Payment p"))


def test_ctrl_enter_runs_format_lays_out_and_results_of_an_earlier_text_say_so(page: Page) -> None:
    area = page.locator("#query-text")
    write(page, "// title: Mine\nPATTERN SEQ(Payment p,Refund r,p.user=r.user) WITHIN 1 minute")
    button(page, "Format")
    expect(area).to_have_value(re.compile(r"^// title: Mine\nPATTERN SEQ\(Payment p, Refund r", re.MULTILINE))
    accepted(page)
    area.press("Control+Enter")
    status = page.get_by_role("region", name="Results").get_by_role("status").first
    expect(status).to_contain_text("matches in", timeout=PATIENCE)
    stale = page.get_by_text("These results are from an earlier text")
    expect(stale).to_be_hidden()
    area.press("End")
    area.press_sequentially(" ")
    expect(stale).to_be_visible()


def test_a_plan_opens_fitted_zooms_and_marks_estimates_that_are_off(page: Page) -> None:
    parts = ", ".join(f"Payment p{n}" for n in range(8))
    write(page, f"PATTERN SEQ({parts}, Refund r, p0.user = r.user, p0.amount > 1e9)\nWITHIN 1 minute")
    button(page, "Plan")
    panel = page.locator("[role=tabpanel]:not([hidden])")
    plan = panel.locator("svg.graph")
    expect(plan).to_be_visible(timeout=PATIENCE)
    frame = panel.locator(".graph-frame")
    assert frame.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1")
    width = plan.bounding_box()
    assert width is not None
    button(page, "Zoom in")
    wider = plan.bounding_box()
    assert wider is not None
    assert wider["width"] > width["width"]
    button(page, "Fit the plan")
    assert frame.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1")
    marked = panel.locator(".node.off")
    expect(panel.locator(".off.hint")).to_contain_text("off by 10 times or more")
    assert marked.count() > 0
    expect(marked.first.locator("title")).to_contain_text("times too")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_workbench_passes_the_rules_of_accessibility(page: Page, every: bool) -> None:
    write(page, RULES[RULE].replace("900", "800"))  # not many more: each row takes its time to look at
    button(page, "Save draft")
    button(page, "Try on the live stream")
    expect(page.get_by_role("table", name="New matches")).to_be_visible(timeout=PATIENCE)
    page.locator("#query-text").press("End")
    page.locator("#query-text").press("Control+Space")
    expect(page.get_by_role("listbox", name="Completions")).to_be_visible(timeout=PATIENCE)
    audited(page, every=every)
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Versions").click()
    button(page, "Deploy…")
    expect(page.get_by_role("dialog")).to_be_visible()
    audited(page, every=every)
    page.keyboard.press("Escape")


def test_screenshot_of_a_trial(page: Page, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--screenshots", default=False):
        pytest.skip("pictures are taken with --screenshots")
    page.set_viewport_size({"width": 1200, "height": 760})
    write(page, RULES[RULE].replace("900", "700"))
    button(page, "Save draft")
    button(page, "Try on the live stream")
    expect(page.get_by_role("table", name="New matches")).to_be_visible(timeout=PATIENCE)
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / "console-trial.png")
