"""The pictures of docs/why.md and docs/examples.md are what the code draws.

`python -m tests.show.test_pictures` draws them anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.data import sample
from nestream.show import plan_graph

DOCS = Path(__file__).resolve().parents[2] / "docs"


def drawings() -> dict[str, str]:
    """The pictures by name, of the query and events that the page shows."""
    page = (DOCS / "why.md").read_text(encoding="utf-8")
    found: Any = re.search(r'hygiene = nestream\.query\("""(.*?)"""\)', page, re.DOTALL)
    query = nestream.query(found[1])
    events = sample("hospital")
    return {
        "timeline": query.show(events, most_matches=2).timeline.svg(),
        "plan": plan_graph(query, analyze=events).svg(),
        **examples(),
    }


def examples() -> dict[str, str]:
    """The timelines of docs/examples.md: of queries without RETURN, so that they show their events."""
    names: dict[str, Any] = {}
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        exec(block, names)
    found = {}
    for name, query, events in (("brute-force", "brute_force", "logins"), ("recovery", "recovery", "prices")):
        text = re.sub(r"RETURN .*?$", "", names[query].text, flags=re.MULTILINE)
        found[name] = nestream.query(text).show(names[events]).timeline.svg()
    return found


@pytest.mark.parametrize("name", ["timeline", "plan", "brute-force", "recovery"])
def test_a_picture_is_what_the_code_draws(name: str) -> None:
    assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == drawings()[name] + "\n"


if __name__ == "__main__":
    (DOCS / "pictures").mkdir(exist_ok=True)
    for name, svg in drawings().items():
        (DOCS / "pictures" / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
