"""docs/cookbook/hospital-ward.md: its Python prints what it shows, and it names what there is."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from nestream.hospital import RULES
from nestream.hospital.cycles import CYCLES
from nestream.hospital.hygiene import ENTRIES, LEAVES, ROUNDS, TRIPS
from nestream.hospital.simulator import COLUMNS
from tests.cli.commands import call

PAGE = (Path(__file__).parents[2] / "docs" / "cookbook" / "hospital-ward.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=["compliance", "what is planted"])
def test_the_examples_print_what_the_page_shows(code: str, shown: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/cookbook/hospital-ward.md", "exec"), {})
    assert printed.getvalue() == shown


def test_the_page_has_every_rule_with_its_window_and_every_column() -> None:
    for file in RULES.glob("*.neel"):
        (window,) = re.findall(r"^WITHIN (\d+ \w+)$", file.read_text(), re.MULTILINE)
        assert re.search(rf"^\| `{file.stem}` \| .* \| {window} \|", PAGE, re.MULTILINE), file.stem
    columns = re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE)
    assert set(COLUMNS) <= {name for cell in columns for name in re.findall(r"`([^`]*)`", cell)}


def test_the_scripts_on_the_page_are_scripts() -> None:
    table = PAGE[PAGE.index("| script | steps |") :]
    named = re.findall(r"^\| ([^|`]+) \|", table[: table.index("\n\n")], re.MULTILINE)[2:]
    scripts = {one.name for some in (CYCLES, ENTRIES, TRIPS, LEAVES, ROUNDS) for one in some.scripts}
    assert len(named) > 8
    assert set(named) <= scripts


def test_the_page_has_every_option() -> None:
    said = call("demo", "hospital", "--help").stdout
    options = set(re.findall(r"--[a-z-]{3,}", said)) - {"--help", "--master"}
    assert len(options) >= 9
    assert {option for option in options if option not in PAGE} == set()
