"""docs/reference/grammar.md shows every rule of the grammar, with the diagram that the grammar gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("railroad")

from tests.docs.grammar_page import FOLDER, drawing, shown_rules

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/grammar.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", shown_rules())
def test_the_diagram_of_a_rule_is_that_of_the_grammar(rule: str) -> None:
    drawn = FOLDER / f"{rule}.svg"
    assert drawn.is_file(), "run `python -m tests.docs.grammar_page`"
    assert drawn.read_text(encoding="utf-8") == drawing(rule), "run `python -m tests.docs.grammar_page`"


def test_the_page_shows_the_diagram_of_every_rule_once() -> None:
    shown = re.findall(r"\(\.\./pictures/grammar/(\w+)\.svg\)", PAGE)
    assert sorted(shown) == sorted(shown_rules())
    assert {drawn.stem for drawn in FOLDER.glob("*.svg")} == set(shown)
