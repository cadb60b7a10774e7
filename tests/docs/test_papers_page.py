"""docs/papers/index.md: every path, test and corpus case that it names exists, and every item names both."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers" / "index.md").read_text()
STATES = {"yes", "differs", "corrected"}
PAPERS = 5


def rows() -> list[list[str]]:
    """The rows of the tables of the papers: item, state, code, test, difference."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if len(row) == 5 and row[0] not in {"item", "---"}]


def names(path: str) -> set[str]:
    """The tests of a file, or the titles of the cases of a corpus file."""
    text = (ROOT / path).read_text()
    return set(re.findall(r"^def (test_\w+)", text, re.M)) | set(re.findall(r"^== (.+)$", text, re.M))


def test_every_paper_has_a_table_and_every_state_is_one_of_those_explained() -> None:
    assert len(re.findall(r"^\| item \| state \|", PAGE, re.M)) == PAPERS
    assert {row[1] for row in rows()} == STATES
    assert all(f"| {state} | " in PAGE for state in STATES)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_item_names_its_code_and_a_test_and_a_deviation_its_reason(row: list[str]) -> None:
    _, state, code, test, reason = row
    assert code
    assert test
    assert state == "yes" or reason


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:src|tests|benchmarks|docs)/[^`:]+)", PAGE)
    assert len(named) > 80
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 40
    assert [f"{path}::{test}" for path, test in named if test not in names(path)] == []


def test_every_corpus_case_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:papers|meaning)/\w+\.case)`(?:: ([^|]+?) \|)?", PAGE)
    assert len(named) > 30
    for path, title in named:
        assert (ROOT / "tests/corpus" / path).exists(), path
        assert not title or title in names(f"tests/corpus/{path}"), title
