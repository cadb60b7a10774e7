"""What README claims about speed and memory, each with the targets that it stands or falls with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Claim:
    """Words of README, and which targets of a suite they are about."""

    words: str
    suite: str
    targets: str
    """A pattern that the titles of the targets have."""

    def lines(self, results: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The targets, with what was measured; none where the suite was not run."""
        known = results.get(self.suite, {}).get("targets", ())
        return [target for target in known if re.search(self.targets, target["title"])]


CLAIMS = (
    Claim("most nested negations cost what a flat query costs", "engine", r"against the flat query$"),
    Claim("gives them within a memory budget", "engine", r"^20 matches an event"),
    Claim(
        "Hundreds of rules run over one pass of the same events", "queries", r"rules together to one alone"
    ),
)
SPEAKS_OF_SPEED = re.compile(
    r"\b(fast(er|est)?|slower|quick(er|ly|est)|times (as|more|less)|million|a second|milliseconds|"
    r"memory|[MG]B|costs?)\b",
    re.IGNORECASE,
)
"""What a sentence with a claim has; one that has it and is no claim above does not belong in README."""
