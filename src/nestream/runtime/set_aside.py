"""Counts the events that a stream leaves out, late ones and dead letters, and passes them to handlers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


class SetAside:
    """Where late events and dead letters go; without a handler, the first one gives a warning."""

    def __init__(
        self,
        time: str,
        late: Callable[[dict[str, Any]], None] | None,
        dead_letter: Callable[[Any, str], None] | None,
    ) -> None:
        for name, handler in (("late", late), ("dead_letter", dead_letter)):
            if handler is not None and not callable(handler):
                raise TypeError(f"{name} must be a function that takes each such event, not {handler!r}")
        self.time = time
        self._late = late
        self._dead_letter = dead_letter
        self.late_count = 0
        self.dead_count = 0

    def bury(self, event: Any, reason: str) -> None:
        """Handle an event that cannot be used."""
        self.dead_count += 1
        if self._dead_letter is not None:
            self._dead_letter(event, reason)
        elif self.dead_count == 1:
            said = f"an event was left out: {reason}\n  hint: pass dead_letter=... to receive such events"
            warnings.warn(said, stacklevel=2)

    def leave(self, event: Any) -> None:
        """Handle a late event."""
        self.late_count += 1
        if self._late is not None:
            self._late(event)
        elif self.late_count == 1:
            said = (
                f"an event was left out because it is late: `{self.time}` is {event[self.time]}\n"
                "  hint: allow more with lateness=..., or pass late=... to receive such events"
            )
            warnings.warn(said, stacklevel=2)
