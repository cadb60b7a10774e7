"""docs/reference/cli.md shows every command; tests/docs/test_pages.py runs them."""

import re

from nestream.cli.main import app
from tests.cli.commands import ROOT

PAGE = ROOT / "docs" / "reference" / "cli.md"


def test_the_page_shows_every_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = set(re.findall(r"^\$ nestream (\w+)", page, re.MULTILINE))
    assert {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    } <= shown
