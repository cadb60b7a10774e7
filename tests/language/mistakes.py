"""The mistakes of `mistakes.txt`: each query with everything that is said about it.

After a change of the messages, `python -m tests.language.mistakes` writes them anew from the queries; read
the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

from nestream.language.parser import parse
from nestream.model.diagnostics import Diagnostic, QueryError

FILE = Path(__file__).with_name("mistakes.txt")


def cases() -> list[str]:
    """The cases of the file: a query on its first line, then what is wrong with it."""
    blocks = FILE.read_text(encoding="utf-8").strip().split("\n\n")
    return [block for block in blocks if not block.startswith("#")]


def query_of(case: str) -> str:
    """The query of a case."""
    return case.splitlines()[0]


def described(query: str) -> str:
    """The case of a query: the query, and of each problem its code, its place in brackets and its text."""
    try:
        parse(query)
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
    """Writes the file anew; a query that was rejected must not become accepted."""
    blocks = FILE.read_text(encoding="utf-8").strip().split("\n\n")
    written = [block if block.startswith("#") else described(query_of(block)) for block in blocks]
    accepted = [block for block in written if block.endswith("  is accepted")]
    if accepted:
        raise SystemExit("these mistakes are now accepted:\n" + "\n".join(accepted))
    FILE.write_text("\n\n".join(written) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
