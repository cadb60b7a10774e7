"""The Python of the pages on streams and sets prints what they show, and so does docs/engine.md."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.papers.options import Options

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["editors.md", "examples.md", "python.md", "streaming.md", "sets.md", "views.md", "why.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_print_what_it_shows(page: str) -> None:
    names: dict[str, Any] = {}
    found = blocks(page)
    for (kind, text), following in zip(found, [*found[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"docs/{page}", "exec"), names)
        assert printed.getvalue() == (following[1] if following[0] == "text" else "")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_run(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(blocks(page))
    here = {"python", "text", "console", "sql"}
    others = {
        "streaming.md": {"sh", "json"},  # tests/kafka follows that example
        "editors.md": {"sh", "lua", "toml", "elisp"},  # what to install, and settings of editors
    }
    assert {kind for kind, _ in blocks(page)} <= here | others.get(page, set())


def test_the_engine_page_shows_how_its_query_is_run() -> None:
    shown = dict(blocks("engine.md"))
    assert nestream.query(shown["query"]).explain() == shown["explain"].rstrip("\n")


@pytest.mark.parametrize("option", [field.name for field in fields(Options)])
def test_every_switch_is_on_the_page_of_the_papers_engine(option: str) -> None:
    assert f"| `{option}` |" in (DOCS / "papers-engine.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "sources", "pattern"),
    [
        ("engine.md", "physical", r'reason="(?!from)([^"]+)"'),
        ("papers-engine.md", "papers/plan", r'(?:reason = |return None, )"([^"]+)"'),
    ],
)
def test_every_reason_for_a_join_is_on_its_page(page: str, sources: str, pattern: str) -> None:
    folder = DOCS.parent / "src/nestream" / sources
    source = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py")))
    reasons = re.findall(pattern, source)
    assert len(reasons) >= 3
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [reason for reason in reasons if reason not in text] == []
