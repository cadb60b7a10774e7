"""Comments, as one regular expression for all who look for them before or beside the parser."""

from __future__ import annotations

import re
from typing import Final

COMMENT: Final = r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\n]*|--(?=\s|$)[^\n]*"
"""A comment, as the grammar reads it."""

STRING: Final = r"'[^']*(?:''[^']*)*'|\"[^\"]*(?:\"\"[^\"]*)*\"|“[^”]*(?:””[^”]*)*”|‘[^’]*(?:’’[^’]*)*’"
"""A string, as the grammar reads it."""

QUOTED_NAME: Final = r"`(?:[^`]|``)+`"
"""A name in backticks, as the grammar reads it."""

_HEADING: Final = re.compile(rf"(?:\s*(?:{COMMENT}))+")
_LEXICAL: Final = re.compile(rf"{STRING}|{QUOTED_NAME}|(?P<comment>{COMMENT})")


def heading(text: str) -> str:
    """The comments before the query."""
    found = _HEADING.match(text)
    return found[0] if found else ""


def has_comments_inside(text: str) -> bool:
    """Whether comments stand behind the beginning of the query."""
    rest = text[len(heading(text)) :]
    return any(found["comment"] for found in _LEXICAL.finditer(rest))
