"""What all tests share: the random cases that Hypothesis draws, and one browser in a process.

A process can drive Chromium through one Playwright only.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from nestream.model.functions import FUNCTIONS

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None)
settings.load_profile("same")
"""The same cases in every run, so that a change alone can break a test. New ones are drawn by
`--hypothesis-profile=new`, as ./scripts/slow-test does."""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(name, SHORT_LIVED)
"""Spark's virtual machines live for minutes here: a second, better compilation costs more than it saves."""

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The browser that is there."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in CHROMIUMS if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    program = chromium()
    if program is None:
        pytest.skip(
            "no Chromium was found, so pages are not tried: run scripts/setup --browser, "
            "install the package chromium, or let CHROMIUM name one"
        )
    with sync_playwright() as playwright:
        # The sandbox needs rights that a container may not give; the only pages opened are our own.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def only_the_functions_of_the_language() -> Iterator[None]:
    """What a test adds to the functions is gone after it."""
    known = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(known)
