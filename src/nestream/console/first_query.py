"""The query that a new text begins with: of the types and attributes that the chosen events have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from nestream.model.text import print_name

EXAMPLES = {
    "hospital": """PATTERN SEQ(
  Recycle r,
  ! SEQ(Disinfection d, Checking c, d.id = c.id = r.id),
  Operating o,
  r.id = o.id
)
WITHIN 1 hour
"""
}
"""Those of data sets that are known."""


def first_query(events: Sequence[dict[str, Any]], time: str, type: str, entity: str | None = None) -> str:
    """The two most frequent types one after the other, with the same value of an attribute of both.

    That attribute is the entity if both have it, and otherwise the first whose values repeat.
    """
    kinds = Counter(str(event[type]) for event in events if event.get(type) is not None)
    names = [name for name, _ in kinds.most_common(2)] or ["A", "B"]
    first, last = names[0], names[-1]
    parts = [f"{print_name(first)} a", f"{print_name(last)} b"]
    shared = _shared(
        [
            [event for event in events if event.get(type) is not None and str(event[type]) == name]
            for name in (first, last)
        ],
        (time, type),
        entity,
    )
    if shared is not None:
        parts.append(f"a.{print_name(shared)} = b.{print_name(shared)}")
    is_number = any(isinstance(event.get(time), int | float) for event in events)
    inner = ",\n  ".join(parts)
    return f"PATTERN SEQ(\n  {inner}\n)\nWITHIN {'100' if is_number else '1 hour'}\n"


def _shared(
    sides: Sequence[list[dict[str, Any]]], without: tuple[str, str], entity: str | None
) -> str | None:
    """An attribute that events of both types have, with values that are compared for equality."""
    names = dict.fromkeys(name for event in sides[0] for name in event if name not in without)
    found = []
    for name in names:
        values = [[event[name] for event in side if event.get(name) is not None] for side in sides]
        together = [value for side in values[: 1 + (sides[0] != sides[1])] for value in side]
        is_key = all(isinstance(value, str | int) and not isinstance(value, bool) for value in together)
        if all(values) and is_key:
            if name == entity:
                return name
            if 1 < len(set(together)) < len(together):
                found.append(name)
    return found[0] if found else None
