"""One reason why some events are not a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nestream.model.diagnostics import Span


@dataclass(frozen=True)
class Obstacle:
    """One reason. `events` are the numbers of the events that it is about; `more` is for programs."""

    kind: str
    text: str
    variables: tuple[str, ...] = ()
    events: tuple[int, ...] = ()
    span: Span | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """The obstacle as plain data."""
        return {
            "kind": self.kind,
            "text": self.text,
            "variables": list(self.variables),
            "events": list(self.events),
            "span": None if self.span is None else [self.span.start, self.span.end],
            **self.more,
        }
