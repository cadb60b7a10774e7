"""Reads the fixtures: a query before a rule, and the plan after it or the reason why the rule refuses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nestream_papers.rewrite.rule import Rule
from nestream_papers.rewrite.rules import RULES
from nestream_papers.rewrite.rules.absorption import ABSORPTION
from nestream_papers.rewrite.rules.projection import PROJECTION

FOLDER = Path(__file__).parent / "fixtures"
BY_FILE: dict[str, Rule] = {
    rule.apply.__module__.rpartition(".")[2]: rule for rule in (*RULES, ABSORPTION, PROJECTION)
}
BY_NAME = {rule.name: rule for rule in BY_FILE.values()}


@dataclass(frozen=True)
class Fixture:
    """What a rule makes of a query; the rules of `first` are applied before it."""

    rule: Rule
    before: str
    first: tuple[Rule, ...]
    after: str | None
    refused: str | None

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.before}"


def fixtures() -> list[Fixture]:
    """Those of all files."""
    return [fixture for path in sorted(FOLDER.glob("*.txt")) for fixture in _read(path)]


def _read(path: Path) -> list[Fixture]:
    found = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        said = dict(line.split(": ", 1) for line in lines)
        assert said.keys() <= {"before", "first", "after", "refused"}, path.name
        assert ("after" in said) != ("refused" in said), said
        first = tuple(BY_NAME[name] for name in said.get("first", "").split(", ") if name)
        found.append(
            Fixture(BY_FILE[path.stem], said["before"], first, said.get("after"), said.get("refused"))
        )
    return found
