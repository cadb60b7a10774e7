"""The tables of docs/guides/python.md: each object on the left writes the text beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream import Expr, Pattern, event, expr, pattern, seq

PAGE = (Path(__file__).resolve().parents[2] / "docs/guides/python.md").read_text(encoding="utf-8")
NAMES: dict[str, Any] = {
    **{name: getattr(nestream, name) for name in nestream.__all__},
    "timedelta": timedelta,
    "a": event("A", "a"),
    "b": event("B", "b"),
    "c": event("C", "c"),
    "f": event("Failure", "f"),
    "o": event("Operating", "o"),
    "t": event("Trade", "t").one_or_more(),
    "s": seq(event("B", "b"), event("C", "c")).named("s"),
    "p": seq(event("B", "b"), event("C", "c")).one_or_more().named("p"),
}
OTHER = {"c.next()": {"c": event("Click", "c")}, "o.directly()": {"o": event("Logout", "o")}}


def pairs() -> Iterator[tuple[str, str]]:
    """The code and the text of all tables; a method alone stands for the one before it."""
    inside = False
    for line in PAGE.splitlines():
        inside = line == "| objects | text |" or (inside and line.startswith("|"))
        cells = [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
        if not inside or "`" not in line or "EVENT` in place" in line:
            continue
        codes, texts = (re.findall(r"`([^`]+)`", cell) for cell in cells[1:3])
        if len(texts) == 1:
            texts *= len(codes)
        assert len(codes) == len(texts), line
        yield from (
            pair for pair in zip(codes, texts, strict=True) if not re.fullmatch(r"\w+(\(\))?", pair[0])
        )


def test_the_tables_are_read() -> None:
    assert len(list(pairs())) > 60


@pytest.mark.parametrize(("code", "text"), list(pairs()))
def test_an_object_of_a_table_writes_the_text_beside_it(code: str, text: str) -> None:
    if code.startswith("."):
        query = eval(f"seq(a, b){code}", NAMES)
        assert " ".join(str(query).split()) == f"PATTERN SEQ(A a, B b) {text}"
        return
    made = eval(code, NAMES | OTHER.get(code, {}))
    if isinstance(made, Expr):
        assert str(made) == str(expr(text))
    else:
        assert isinstance(made, Pattern)
        part = seq(event("Z"), made, event("Z"))  # as a component
        assert str(part) == str(seq(event("Z"), pattern(text), event("Z")))
