"""The examples of docs/papers/rewriting.md are rewritten as shown, and both sides have the same matches."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from nestream.logical.text import disjuncts_text
from nestream.query import query
from nestream_papers.rewrite.normalise import LIMIT, normalise
from nestream_papers.rewrite.rules import RULES
from nestream_papers.rewrite.rules.absorption import ABSORPTION
from nestream_papers.rewrite.rules.projection import PROJECTION
from tests.generators.histories import random_history, types_of
from tests.property.meaning import complete, matches_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "papers" / "rewriting.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)\n^```$", PAGE, re.DOTALL | re.MULTILINE)


def blocks(kind: str) -> list[tuple[str, list[str]]]:
    """The query of each block of a kind, and the lines after it."""
    found = [text.split("\n") for block, text in BLOCKS if block == kind]
    return [(first, rest) for first, *rest in found]


@pytest.mark.parametrize(("text", "lines"), blocks("rewriting"))
def test_an_example_is_rewritten_as_shown_and_means_the_same(text: str, lines: list[str]) -> None:
    plan = complete(query(f"{text} WITHIN 12").plan)
    rewritten = normalise(plan).plan
    assert [re.sub(r"^(=>|OR) ", "", line) for line in lines] == disjuncts_text(rewritten.root)
    chance, found = random.Random(text), 0
    for _ in range(40):
        table = random_history(chance, 13, types_of(text))
        expected = matches_of(plan, table)
        assert matches_of(rewritten, table) == expected
        found += len(expected)
    assert found


@pytest.mark.parametrize(("text", "lines"), blocks("nested"))
def test_what_the_page_says_stays_nested_does_and_for_that_reason(text: str, lines: list[str]) -> None:
    kept = normalise(query(f"{text} WITHIN 12").plan).kept
    assert [line.removeprefix("=> ") for line in lines] == [f"{item.part}: {item.reason}" for item in kept]


@pytest.mark.parametrize(
    "line", [line for kind, text in BLOCKS if kind == "form" for line in text.split("\n")]
)
def test_the_form_of_an_example_is_reached(line: str) -> None:
    text, _, form = line.rpartition(": ")
    assert normalise(query(f"{text} WITHIN 12").plan).form.name == form


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {kind for kind, _ in BLOCKS} == {"rewriting", "nested", "form"}
    assert PAGE.count("```") == 2 * len(BLOCKS)
    assert f"more than {LIMIT}, the negation" in " ".join(PAGE.split())


@pytest.mark.parametrize("name", [rule.name for rule in (*RULES, ABSORPTION, PROJECTION)])
def test_every_rule_is_on_the_page(name: str) -> None:
    assert f"| {name} |" in PAGE
