"""The examples of every page give what the page shows, and every query that a page shows is one.

Pages with a notation or a service of their own have tests of their own: the language and the rewriting here,
the hospital in tests/hospital, Spark in tests/spark, Kafka in tests/kafka.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import nestream
from tests.docs.pages import BLOCK, DOCS, TITLE, picture_file, run

ELSEWHERE = {
    "cookbook/hospital-ward.md",  # tests/hospital/test_page.py
    "guides/kafka.md",  # tests/kafka/test_commands.py
    "guides/spark-streams.md",  # tests/spark/test_pages.py and tests/kafka/test_spark_recipe.py
    "guides/spark.md",  # tests/spark/test_pages.py
    "papers/rewriting.md",  # test_rewriting_page.py
    "reference/language.md",  # test_language_page.py
}
ALL = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.parent.name != "design")
PAGES = [page for page in ALL if page not in ELSEWHERE]
RUN = {"python", "console", "text"}
SHOWN = {"neel", "sh", "sql", "java", "json", "csv", "query", "explain", "toml", "lua", "elisp"}
"""Blocks that are shown and not run; `neel` is checked, and those with a title are files of the page."""


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def has_examples(page: str) -> bool:
    return any(block["kind"] in ("python", "console") for block in BLOCK.finditer(text_of(page)))


def queries() -> list[str]:
    """The queries of all pages, also those in tabs."""
    fenced = re.compile(r"^( *)```neel[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(found[2]) for page in ALL for found in fenced.finditer(text_of(page))]


@pytest.mark.parametrize("page", [page for page in PAGES if has_examples(page)])
def test_the_examples_of_a_page_give_what_it_shows(page: str) -> None:
    ran = run(DOCS / page)
    assert ran.text == text_of(page), f"run `python -m tests.docs.pages docs/{page}`"
    for name, svg in ran.pictures.items():
        assert picture_file(name).read_text(encoding="utf-8") == svg


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_of_a_known_kind(page: str) -> None:
    text = text_of(page)
    blocks = list(BLOCK.finditer(text))
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(blocks)
    assert {block["kind"] for block in blocks if not TITLE.search(block["rest"])} <= RUN | SHOWN


@pytest.mark.parametrize("page", ALL)
def test_the_site_understands_the_head_of_every_block(page: str) -> None:
    heads = re.findall(r"^ *```(\S.*)$", text_of(page), re.MULTILINE)
    assert [head for head in heads if not re.fullmatch(r'[\w-]+( title="[^"]+")?', head)] == []


@pytest.mark.parametrize("query", queries(), ids=lambda query: " ".join(query.split())[:60])
def test_a_query_that_a_page_shows_is_accepted(query: str) -> None:
    nestream.query(query)


def test_every_picture_of_the_cookbook_is_shown() -> None:
    shown = {
        Path(name).stem
        for page in ALL
        for name in re.findall(r"pictures/cookbook/([\w-]+)\.svg", text_of(page))
    }
    assert {path.stem for path in picture_file("x").parent.glob("*.svg")} == shown
