"""The pictures of docs/guides/why.md are what the code draws; tests/docs has those of the cookbook.

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
    page = (DOCS / "guides/why.md").read_text(encoding="utf-8")
    found: Any = re.search(r'hygiene = nestream\.query\("""(.*?)"""\)', page, re.DOTALL)
    query = nestream.query(found[1])
    events = sample("hospital")
    return {
        "timeline": query.show(events, most_matches=2).timeline.svg(),
        "plan": plan_graph(query, analyze=events).svg(),
    }


@pytest.mark.parametrize("name", ["timeline", "plan"])
def test_a_picture_is_what_the_code_draws(name: str) -> None:
    assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == drawings()[name] + "\n"


if __name__ == "__main__":
    (DOCS / "pictures").mkdir(exist_ok=True)
    for name, svg in drawings().items():
        (DOCS / "pictures" / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
