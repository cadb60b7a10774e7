"""The README shows what its code prints, and its table is that of docs/performance.md.

`python -m tests.docs.test_readme` writes the table anew, after the benchmarks were run.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
QUERIES = (
    "SEQ(A a, B b, C c)",
    "AND(A a, B b, C c)",
    "SEQ(A a, B b, !D d, C c)",
    "SEQ(!D d, A a, B b, C c)",
    "SEQ(A a, B b, C c, !D d)",
    "SEQ(A a, B b, ! SEQ(D d, E e), C c)",
)
PEERS = {
    "Flink CEP": "Flink CEP",
    "Flink SQL": "`MATCH_RECOGNIZE`",
    "Esper": "Esper",
    "DuckDB": "SQL, in DuckDB",
    "Spark SQL": "SQL, in Spark",
}
TABLE = re.compile(r"^\| query \| nestream \|.*?\n\n", re.DOTALL | re.MULTILINE)


def test_the_code_prints_what_the_readme_shows() -> None:
    page = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for (kind, text), following in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "README.md", "exec"), names)
        assert printed.getvalue() == (following[1] if following[0] == "text" else "")


def test_the_table_beside_other_tools_is_that_of_the_performance_page() -> None:
    found = TABLE.search(README.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == table(), "run `python -m tests.docs.test_readme`"


def test_what_the_readme_says_a_tool_cannot_express_is_on_the_performance_page() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for reason in (
        "| `SEQ(!D d, A a, B b, C c)` | Flink CEP | a pattern cannot begin with an absence |",
        "| `SEQ(!D d, A a, B b, C c)` | Flink SQL | a pattern cannot begin with an absence |",
        "| `SEQ(A a, B b, C c, !D d)` | Flink SQL | a pattern cannot end with an absence |",
        "| Flink CEP | `notFollowedBy` takes one event, not a sequence |",
        "| all matches of any of them | Flink SQL | it returns one match for each start |",
    ):
        assert reason in page


def table() -> str:
    """The README's table: of each tool the lines and the time of its best way to run each query."""
    measured: dict[tuple[str, str], tuple[float, str]] = {}
    own: dict[str, str] = {}
    for query, peer, ratio, lines, ours in _rows():
        own[query] = ours
        best = measured.get((query, peer))
        if best is None or ratio < best[0]:
            measured[query, peer] = ratio, lines
    rows = [["query", "nestream", *PEERS.values()], ["---"] * (2 + len(PEERS))]
    for query in QUERIES:
        cells = [_cell(measured.get((query, peer))) for peer in PEERS]
        rows.append([f"`{query}`", f"{own[query]} lines", *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def _rows() -> list[tuple[str, str, float, str, str]]:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    part = page[page.index("### Every peer and query") : page.index("### What a peer cannot express")]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if "|" in line
    ]
    factor, written = lines[0].index("×"), lines[0].index("lines")
    found = []
    for cells in lines[2:]:
        if cells[0].startswith("`") and cells[0].endswith("`") and cells[factor] != "-":
            ratio = float(cells[factor].split()[0].replace(",", ""))
            found.append((cells[0].strip("`"), cells[1], ratio, cells[written], cells[-1]))
    return found


def _cell(best: tuple[float, str] | None) -> str:
    if best is None:
        return "—"
    ratio, lines = best
    digits = 0 if ratio >= 10 else 1 if ratio >= 1 else 2
    return f"{lines} lines, {ratio:.{digits}f} ×"


def write() -> None:
    """Write the table of the README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(TABLE.sub(lambda _: table(), text), encoding="utf-8")


if __name__ == "__main__":
    write()
