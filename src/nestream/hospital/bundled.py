"""The rules of the case study, as they are part of the package."""

from __future__ import annotations

from pathlib import Path

RULES = Path(__file__).parent / "rules"
"""A folder of queries, one for each rule: a set for `nestream.queries`."""


def rule_files(folder: Path = RULES) -> dict[str, str]:
    """The text of each rule's file, by its name."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.neel"))}
