"""Mistakes in queries with all that is reported: `mistakes.txt` by the parser, `habits.txt` by all checks.

After a change of the messages, `python -m tests.language.mistakes` rewrites both files from their queries.
Read the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nestream
from nestream.language.parser import parse
from nestream.model.diagnostics import Diagnostic, QueryError

READERS: dict[str, Callable[[str], object]] = {"mistakes.txt": parse, "habits.txt": nestream.query}
"""What each file's queries are read by."""


def cases(file: str) -> list[str]:
    """The cases of a file: a query on its first line, then what is wrong with it."""
    return [block for block in _blocks(file) if not block.startswith("# ")]


def _blocks(file: str) -> list[str]:
    return Path(__file__).with_name(file).read_text(encoding="utf-8").strip().split("\n\n")


def query_of(case: str) -> str:
    """The query of a case."""
    return case.splitlines()[0]


def described(query: str, file: str) -> str:
    """The case of a query: the query, and of each problem its code, its place in brackets and its text."""
    try:
        READERS[file](query)
    except QueryError as error:
        return "\n".join([query, *(_described(query, diagnostic) for diagnostic in error.diagnostics)])
    return f"{query}\n  is accepted"


def _described(query: str, diagnostic: Diagnostic) -> str:
    place = query[diagnostic.span.start : diagnostic.span.end]
    lines = [f"  {diagnostic.code} at [{place}]: {diagnostic.message}"]
    lines += [f"    hint: {diagnostic.hint}"] if diagnostic.hint else []
    lines += [f"    write: {diagnostic.suggestion}"] if diagnostic.suggestion else []
    return "\n".join(lines)


def main() -> None:
    """Rewrites the files; a query that was rejected must not become accepted."""
    for file in READERS:
        blocks = _blocks(file)
        written = [block if block.startswith("# ") else described(query_of(block), file) for block in blocks]
        accepted = [block for block in written if block.endswith("  is accepted")]
        if accepted:
            raise SystemExit("these mistakes are now accepted:\n" + "\n".join(accepted))
        Path(__file__).with_name(file).write_text("\n\n".join(written) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
