"""Parts of SVG that the drawings share: escaped text, one style sheet for light and dark, short numbers.

Text and lines take the colour of their surroundings, and the other colours are legible on light and on dark,
so that a drawing fits any notebook or page. There are no scripts, and nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

COLOURS = ("#3b82f6", "#e07020", "#22a06b", "#b05cd6", "#d6455d", "#0d97a8", "#a68000", "#7c7ce8")
"""Colours for matches; each has a contrast of at least 3 with white and with black."""

WIDEST = 1200
"""A wider drawing keeps its size."""

_STYLE = """
.nestream-svg{font:12px system-ui,sans-serif;color:inherit;max-width:100%;height:auto}
.nestream-svg text{fill:currentColor}
.nestream-svg .quiet{opacity:.72}
.nestream-svg .number{font-size:10px;opacity:.72}
.nestream-svg .rule{stroke:currentColor;stroke-opacity:.18}
.nestream-svg:root{color:#1f2328;background:#fff}
@media (prefers-color-scheme:dark){.nestream-svg:root{color:#e6e6e6;background:#16181c}}
"""


def text_of(value: object) -> str:
    """Text inside an element or attribute, without the characters that XML does not allow."""
    kept = "".join(c if c.isprintable() else " " for c in str(value))
    return escape(kept, quote=True)


def number(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def cut(text: str, most: int) -> str:
    """Text of bounded length."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def document(width: float, height: float, title: str, description: str, parts: Iterable[str]) -> str:
    """A whole drawing, with a title and a description for people who cannot see it."""
    # a very wide drawing is scrolled, because it would be too small to read at page width
    look = ' style="max-width:none"' if width > WIDEST else ""
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    # a screen reader sees an image as one thing; its label says everything
    label = f'role="img" aria-label="{text_of(title)}: {text_of(description)}"'
    head = f"<title>{text_of(title)}</title><desc>{text_of(description)}</desc><style>{_STYLE}</style>"
    body = "".join(parts)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="nestream-svg"{look} {size} {label}>'
    return f"{opening}{head}{body}</svg>"
