"""The rules of the case study that are part of the package."""

from __future__ import annotations

import re
from pathlib import Path

RULES = Path(__file__).parent / "rules"
"""A folder of queries for `nestream.queries`: the rules, and the queries that they depend on.
"""
_INTO = re.compile(r"\bINTO\s+\S+\s*$", re.IGNORECASE)


def rule_files(folder: Path = RULES) -> dict[str, str]:
    """The text of each query's file, by name."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.neel"))}


def is_rule(text: str) -> bool:
    """Whether the matches of a query are violations, and not events for other queries."""
    return _INTO.search(text) is None
