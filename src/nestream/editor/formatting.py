"""The one canonical layout of a query with the comments before it, as `nestream fmt` writes it."""

from __future__ import annotations

from nestream.language.comments import has_comments_inside, heading
from nestream.query import format_query


def layout(text: str, dialect: str | None = None) -> str:
    """The comments before the query, and the query in its layout; a `QueryError` where it has a mistake."""
    kept = heading(text).strip()
    return f"{kept}{chr(10) if kept else ''}{format_query(text, dialect)}\n"


def loses_comments(text: str) -> bool:
    """Whether the layout would drop comments, which it does with those inside the query."""
    return has_comments_inside(text)
