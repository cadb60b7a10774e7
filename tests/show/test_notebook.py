"""What a notebook shows: the HTML of queries and of their matches, which is well formed and harmless."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import nestream
from nestream.data import sample
from nestream.show import highlighted
from tests.cli.commands import EXAMPLE

QUERY = nestream.query(EXAMPLE.read_text(encoding="utf-8"))


class Reader(HTMLParser):
    """Reads HTML, checks that its elements are closed, and keeps its text and tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        self.tags.add(tag)
        if tag not in ("br",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_query_shows_its_text_and_its_plan() -> None:
    shown = Reader(QUERY._repr_html_())
    assert QUERY.formatted in shown.text
    assert {"pre", "svg"} <= shown.tags
    assert "script" not in shown.tags


def test_matches_show_their_number_their_timeline_and_the_first_rows() -> None:
    found = QUERY.show(sample("hospital"))
    assert len(found) == found.table.num_rows == QUERY.count(sample("hospital"))
    html = found._repr_html_()
    shown = Reader(html)
    assert f"{len(found)} matches" in shown.text
    assert {"svg", "table"} <= shown.tags
    assert html.count("<tr>") == 1 + min(len(found), 10)


def test_no_matches_show_as_none() -> None:
    found = QUERY.show(sample("hospital").slice(0, 5))
    assert "0 matches" in Reader(found._repr_html_()).text


def test_why_shows_what_stops_the_events() -> None:
    shown = Reader(QUERY.why(sample("hospital"), [0, 5])._repr_html_())
    assert "no match" in shown.text
    assert "table" in shown.tags


def test_hostile_values_stay_text() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN 10")
    events = [{"ts": 1, "type": "A", "x": "<script>1</script>"}, {"ts": 2, "type": "B", "x": "</table>"}]
    shown = Reader(query.show(events)._repr_html_())
    assert "script" not in shown.tags
    assert "<script>1</script>" in shown.text


@pytest.mark.parametrize(
    "text",
    [
        'SEQ(A a, !B b, a.x != "<b>" AND a.y >= 1.5) WITHIN 2 hours',
        "EVENT SEQ(`odd <type>` a, ANY(B, C) b) WHERE [id] WITHIN 10 EVENTS",
    ],
)
def test_highlighting_keeps_the_text(text: str) -> None:
    html = highlighted(text)
    assert Reader(html).text == text
    assert re.search(r"<span[^>]*>WITHIN</span>", html)


def test_the_negation_of_a_pattern_stands_out_and_an_inequality_does_not() -> None:
    html = highlighted("SEQ(A a, !B b, a.x != 1) WITHIN 2")
    assert html.count(">!</span>") == 1


def test_the_table_under_a_timeline_has_the_numbers_that_why_takes() -> None:
    query = nestream.query("SEQ(A a, B+ b, C c) WITHIN 10")
    events = [{"ts": n, "type": kind} for n, kind in enumerate("XABBC")]
    html = query.show(events)._repr_html_()
    assert "<td><b>#1</b> ts=1 type=A</td><td>2 events: 2, 3</td><td><b>#4</b> ts=4 type=C</td>" in html
    assert query.why(events, [1, 4]).matched
