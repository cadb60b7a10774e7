"""The results of the experiments on views as Markdown tables, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nestream.bench.engine_tables import table
from nestream.bench.spec import Figures

Result = Mapping[str, Any]
TITLES = {
    "window": ("Views by the window (figure 10)", "trades a window"),
    "negated": ("Views of a negated query by the window", "trades a window"),
    "length": ("The length of the inner query (figures 18 and 19)", "length"),
    "number": ("The number of inner queries (figures 20 and 21)", "inner queries"),
    "memory": ("What views compute and hold (figures 16 and 26)", "trades a window"),
    "rewriting": ("Rewriting and views by the length of a negated query (figures 22 and 23)", "length"),
    "accounts": ("Partitioned views by the number of values (figures 24 and 25)", "accounts"),
}
DID = ("computed", "kept", "used", "reused", "unused", "peak")


def tables(figures: Figures) -> str:
    """A table of times for each experiment that there are results for; of memory, one of what views did."""
    found = []
    for name in TITLES:
        results = [result for result in figures.values() if result["experiment"] == name]
        if results:
            found.append(_times(results, name))
            found.append(_did(results) if name == "memory" else "")
    return "\n\n".join(text for text in found if text)


def _times(results: list[Result], experiment: str) -> str:
    title, parameter = TITLES[experiment]
    ways = list(results[0]["ways"])
    rows = [
        [
            f"`{result['query'].partition(' WITHIN ')[0]}`",
            f"{result['value']:,}",
            f"{result['matches']:,}",
            *(_seconds(result, way) for way in ways),
        ]
        for result in results
    ]
    return table(
        title,
        ("query", parameter, "matches", *ways),
        rows,
        f"The paper reports: {results[0]['paper']}. Windows have {results[0]['trades']:,} trades"
        f"{' and more' if parameter == 'trades a window' else ''}. In parentheses is how many times as long "
        "nested execution takes.",
    )


def _seconds(result: Result, way: str) -> str:
    spent = f"{result['ways'][way]['best'] * 1e3:,.1f} ms"
    ratio = result["ratios"].get(way)
    return f"{spent} ({ratio['middle']:,.1f} ×)" if ratio else spent


def _did(results: list[Result]) -> str:
    rows = [
        [way, f"{result['value']:,}", *(f"{found['views'][name]:,}" for name in DID)]
        for result in results
        for way, found in result["ways"].items()
        if "views" in found
    ]
    return table(
        "The same views in numbers",
        ("strategy", "trades a window", *DID[:-1], "bytes at most"),
        rows,
        "Inner results computed, kept, given to outer results, given again, and never given to any.",
    )
