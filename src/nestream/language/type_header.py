"""Reads the attributes of event types from text, or from a comment before a query: `Shelf(id) Counter(id)`.

In the SASE dialect, a comparison on an attribute that a type does not have is true. A query declares the
attributes of types in a comment that begins with `types:`, before anything but comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nestream.model.diagnostics import Diagnostic, Span

_COMMENT: Final = re.compile(r"\s*(?:/\*(?P<block>.*?)\*/|(?://|--(?=\s|$))(?P<line>[^\n]*))", re.DOTALL)
_KEYWORD: Final = "types:"
_NAME: Final = r"(?:`[^`]+`|[\w.-]+)"
_TYPE: Final = re.compile(rf"[\s,]*(?P<name>{_NAME})\s*\((?P<attributes>\s*(?:{_NAME}[\s,]*)*)\)[\s,]*")

Types = Mapping[str, tuple[str, ...]]


def header_types(text: str) -> tuple[Types, list[Diagnostic]]:
    """The types that the comments before a query declare, and the problems with them."""
    place = 0
    while (found := _COMMENT.match(text, place)) is not None:
        place = found.end()
        group = "line" if found["line"] is not None else "block"
        content = found[group]
        if not content.strip().startswith(_KEYWORD):
            continue
        try:
            return read_types(content.strip().removeprefix(_KEYWORD)), []
        except ValueError as problem:
            message, _, hint = str(problem).partition("\n  hint: ")
            start = found.start(group) + len(content) - len(content.lstrip())
            span = Span(start, found.start(group) + len(content.rstrip()))
            return {}, [Diagnostic("type-header", message, span, hint=hint)]
    return {}, []


def read_types(text: str) -> Types:
    """The attributes of each type in a text; raises a ValueError that says what is wrong."""
    found: dict[str, tuple[str, ...]] = {}
    place, text = 0, text.strip()
    while place < len(text):
        part = _TYPE.match(text, place)
        if part is None:
            raise ValueError(
                f"cannot read the types from {text[place : place + 40]!r}\n"
                "  hint: write each type with its attributes: Shelf(id, shelf) Counter(id)"
            )
        name = part["name"].strip("`")
        if name in found:
            raise ValueError(f"the type `{name}` is declared twice\n  hint: declare it once")
        found[name] = tuple(each.strip("`") for each in re.findall(_NAME, part["attributes"]))
        place = part.end()
    if not found:
        raise ValueError("no type is declared\n  hint: write them as Shelf(id, shelf) Counter(id)")
    return found
