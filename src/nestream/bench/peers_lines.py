"""The lines that a user writes for a query: those of its text, or of the code that puts it."""

from __future__ import annotations

import ast
from pathlib import Path

import nestream
from nestream.bench.peers_install import text_of

POLARS = {
    "two": ("bucketed", "named", "of_type"),
    "bucket": ("bucketed", "named", "of_type"),
    "bound": ("bucketed", "marked", "named", "of_type"),
    "edge": ("bucketed", "edged", "named", "of_type"),
    "and": ("conjunction", "named", "of_type"),
}
"""The functions of `polars_peer.py` that a formulation needs."""


def of_ours(query: str) -> int:
    """The lines of a query as `nestream fmt` lays it out."""
    return len(nestream.query(query).formatted.splitlines())


def of_peer(peer: str, query: str, how: str, folder: Path) -> int:
    """The lines of a peer's query without comments."""
    text = text_of(peer, query, how, folder)
    if text is not None:
        lines = text.read_text(encoding="utf-8").splitlines()
        return sum(bool(line.strip()) and not line.strip().startswith("--") for line in lines)
    if peer == "Polars":
        kind = "and" if query == "and" else "edge" if query in ("leading", "trailing") else how
        return _functions(folder / "polars_peer.py", POLARS[kind])
    return _case(folder / "java" / "FlinkPatterns.java", query)


def _functions(path: Path, names: tuple[str, ...]) -> int:
    """The lines of some functions without their documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    return sum(
        (node.end_lineno or 0) - node.lineno + 1 - (ast.get_docstring(node) is not None) for node in found
    )


def _case(path: Path, query: str) -> int:
    """The lines of one case of a Java switch, up to the next."""
    lines = path.read_text(encoding="utf-8").splitlines()
    place = next(
        row for row, line in enumerate(lines) if line.strip().startswith("case ") and f'"{query}"' in line
    )
    end = next(
        row for row in range(place + 1, len(lines)) if lines[row].strip().startswith(("case ", "default"))
    )
    return end - place - 1
