"""The pages on the engine and on the papers' engine show how a query runs, every reason and every switch."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import nestream
from nestream_papers.options import Options

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def test_the_engine_page_shows_how_its_query_is_run() -> None:
    shown = dict(blocks("how-it-works/engine.md"))
    assert nestream.query(shown["query"]).explain() == shown["explain"].rstrip("\n")


@pytest.mark.parametrize("option", [field.name for field in fields(Options)])
def test_every_switch_is_on_the_page_of_the_papers_engine(option: str) -> None:
    assert f"| `{option}` |" in (DOCS / "papers/engine.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "sources", "pattern"),
    [
        ("how-it-works/engine.md", "nestream/physical", r'reason="(?!from)([^"]+)"'),
        ("papers/engine.md", "nestream_papers/plan", r'(?:reason = |return None, )"([^"]+)"'),
    ],
)
def test_every_reason_for_a_join_is_on_its_page(page: str, sources: str, pattern: str) -> None:
    folder = DOCS.parent / "src" / sources
    source = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py")))
    reasons = re.findall(pattern, source)
    assert len(reasons) >= 3
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [reason for reason in reasons if reason not in text] == []
