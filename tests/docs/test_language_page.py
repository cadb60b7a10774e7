"""Every example of docs/reference/language.md gives the result that the page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.logical.nodes import has_groups
from nestream.model.functions import called_names
from nestream.model.text import RESERVED_WORDS
from tests.corpus.configurations import CONFIGURATIONS, GROUPED
from tests.corpus.notation import read_history, write_matches

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "language.md").read_text(
    encoding="utf-8"
)
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
KINDS = ("query", "events", "matches", "error", "explain", "python")


@dataclass
class Example:
    """A query of the page with the blocks that follow it: events with matches, an error, a plan."""

    query: str
    events: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    matches: str | None = None
    error: str | None = None
    explain: str | None = None


def options(text: str) -> dict[str, Any]:
    """What the title of `events` says beside that word: `order=arrival`, `types=A(x,y)B(x)`."""
    said = re.search(r'title="events, (\S+)"', text)
    found: dict[str, Any] = dict([said[1].split("=", 1)]) if said else {}
    if "types" in found:
        pairs = re.findall(r"([\w-]+)\(([^)]*)\)", found["types"])
        found["types"] = {name: attributes.split(",") for name, attributes in pairs}
    return found


def examples() -> list[Example]:
    """The examples of the page; a query with several histories gives one for each."""
    found: list[Example] = []
    for kind, rest, text in BLOCK.findall(PAGE):
        text = text.rstrip("\n")
        if kind == "query":
            found.append(Example(text))
        elif kind == "events":
            if found[-1].events is not None:
                found.append(Example(found[-1].query))
            found[-1].events, found[-1].options = text, options(rest)
        elif kind in ("matches", "error", "explain"):
            setattr(found[-1], kind, text)
    return found


EXAMPLES = examples()


def run(example: Example, configuration: str) -> str:
    query = nestream.query(example.query)
    if example.events is None:
        return ""
    table = read_history(example.events, {}).table()
    return "\n".join(write_matches(CONFIGURATIONS[configuration](query, table, **example.options))) or "none"


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.error is None], ids=lambda example: " ".join(example.query.split())
)
def test_an_example_gives_the_matches_that_the_page_shows(example: Example, configuration: str) -> None:
    if configuration not in GROUPED and has_groups(nestream.query(example.query).plan):
        with pytest.raises(ValueError, match="groups do not run with"):
            run(example, configuration)
        return
    assert run(example, configuration) == example.matches
    if example.explain is not None:
        assert nestream.query(example.query).explain() == example.explain


@pytest.mark.parametrize(
    "example",
    [e for e in EXAMPLES if e.error is not None],
    ids=lambda example: " ".join(example.query.split()),
)
def test_an_example_is_rejected_with_the_message_that_the_page_shows(example: Example) -> None:
    with pytest.raises(nestream.QueryError) as raised:
        run(example, "reference")
    assert str(raised.value) == example.error


def test_every_example_shows_a_result() -> None:
    assert [example for example in EXAMPLES if example.matches is None and example.error is None] == []


def test_every_block_of_the_page_is_of_a_kind_that_is_tested() -> None:
    assert PAGE.count("```") == 2 * len(BLOCK.findall(PAGE))
    assert {kind for kind, _, _ in BLOCK.findall(PAGE)} <= set(KINDS)


def test_the_python_of_the_page_runs() -> None:
    for kind, _, text in BLOCK.findall(PAGE):
        if kind == "python":
            exec(compile(text, "docs/reference/language.md", "exec"), {})


@pytest.mark.parametrize(
    "word", [*RESERVED_WORDS, *called_names(), "UNBOUNDED", "EVENTS", "TIMESTAMP", "DATE"]
)
def test_every_word_of_the_language_is_on_the_page(word: str) -> None:
    assert re.search(rf"\b{word}\b", PAGE)
