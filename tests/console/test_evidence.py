"""The picture of a match on a page: what its negations looked at, groups as dots, and one numbering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.console.browsing import PATIENCE
from tests.console.pipeline import wait
from tests.console.served import Console, JobFolder, event, match, serving

STEPS = """// title: Used without its steps
// severity: high
PATTERN SEQ(Washing w,
            ! SEQ(Sharpening s, Disinfection d, Checking c, s.id = d.id = c.id = o.id),
            Operating o, w.id = o.id)
WITHIN 1 hour
"""
TRIES = """// title: Tried too often
PATTERN SEQ(Enter e, Try{3,} t, Leave l)
WITHIN 1 hour
"""
WRONG = "Checking at 07:00:40 (#4) came before Disinfection at 07:01:10 (#6), so no "

EVENTS = [
    event(5, "Enter"),
    event(10, "Washing", id=6),
    event(20, "Sharpening", id=6),
    event(30, "Disinfection", id=9),
    event(40, "Checking", id=6),
    event(50, "Try"),
    event(70, "Disinfection", id=6),
    event(80, "Try"),
    event(90, "Try"),
    event(100, "Operating", id=6),
    event(110, "Leave"),
]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    job = JobFolder(tmp_path_factory.mktemp("job") / "job", {"steps": STEPS, "tries": TRIES})
    job.events(*EVENTS)
    job.matches(match("steps", w=EVENTS[1], o=EVENTS[9]))
    with serving(job.path) as served:
        with served.client() as client:
            wait(lambda: client.post("/api/events", json={"data": "live"}).json()["total"] == len(EVENTS), 60)
        yield served


@pytest.fixture
def page(browser: Browser, console: Console) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1360, "height": 860}, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(console.address)
    yield opened
    context.close()
    assert errors == []


def asked(console: Console, operation: str, **body: Any) -> dict[str, Any]:
    with console.client() as client:
        answer = client.post(f"/api/{operation}", json=body).json()
    assert answer["ok"], answer
    return dict(answer)


def test_a_match_of_the_sink_is_drawn_with_the_events_that_its_negation_looked_at(console: Console) -> None:
    row = match("steps", w=EVENTS[1], o=EVENTS[9])
    drawn = asked(console, "timeline", text=STEPS, rows=[row], data="live")["timeline"]
    (found,) = drawn["matches"]
    numbers = {place["id"]: place["number"] for place in drawn["events"]}
    assert [numbers[place] for place in found["intervals"][0]["events"]] == [2, 4, 6]
    assert found["told"][0].startswith(WRONG)


def test_a_match_whose_events_are_gone_is_drawn_and_says_so(console: Console) -> None:
    row = match("steps", w={**EVENTS[1], "id": 7}, o=EVENTS[9])
    drawn = asked(console, "timeline", text=STEPS, rows=[row], data="live")["timeline"]
    assert drawn["matches"][0]["intervals"][0]["text"] is None
    assert "not among the events" in drawn["notes"][0]


def test_a_run_gives_each_event_its_number(console: Console) -> None:
    found = asked(console, "run", text=STEPS, data="live", name="steps")
    assert [(part["variable"], part["number"]) for part in found["rows"][0]["events"]] == [("w", 1), ("o", 9)]
    assert found["timeline"]["matches"][0]["told"][0].startswith(WRONG)


def test_why_a_match_is_one_is_answered_with_the_same_numbers(console: Console) -> None:
    answer = asked(console, "why", text=STEPS, data="live", picked=[1, 9])
    assert answer["why"]["matched"]
    assert answer["why"]["evidence"][0]["text"].startswith(WRONG)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ("#4", [4]),
        ("07:01:10", [6]),
        ("Disinfection event 70, id 6", [6]),
        ("id 9", [3]),
        ("id=9", [3]),
        ("07:00:40 Checking event 40, id 6", [4]),
        ("checking id 6", [4]),
        ("no such thing", []),
    ],
)
def test_searching_for_what_a_table_shows_finds_it(console: Console, wanted: str, numbers: list[int]) -> None:
    found = asked(console, "events", data="live", text=wanted)
    assert [row["place"] for row in found["rows"]] == numbers


def test_the_page_draws_faded_events_and_says_what_was_out_of_order(page: Page, console: Console) -> None:
    page.goto(f"{console.base}/matches?rule=steps&data=live")
    drawing = page.locator("svg.timeline")
    expect(drawing).to_be_visible(timeout=PATIENCE)
    expect(drawing.locator(".event.looked")).to_have_count(3)
    assert drawing.locator(".event.looked .number").all_text_contents() == ["2", "4", "6"]
    told = page.get_by_role("list", name="What the negations and groups looked at")
    expect(told).to_contain_text(WRONG)
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


def test_the_page_draws_a_group_as_a_row_of_dots_under_a_bracket(page: Page, console: Console) -> None:
    page.goto(f"{console.base}/matches?rule=tries&data=live")
    drawing = page.locator("svg.timeline")
    expect(drawing).to_be_visible(timeout=PATIENCE)
    expect(drawing.locator(".bracket")).to_have_count(1)
    expect(drawing.locator(".event.member")).to_have_count(3)
    expect(drawing.locator(".group-name")).to_have_text("t")
    told = page.get_by_role("list", name="What the negations and groups looked at")
    expect(told).to_contain_text(
        "3 Try events between Enter at 07:00:05 and Leave at 07:01:50; it needs at least 3"
    )
