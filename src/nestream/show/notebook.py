"""Shows a query and its matches in a notebook: HTML without scripts and without anything to load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import pyarrow as pa

from nestream.model.counting import counted, counted_matches, showing_matches
from nestream.model.output import EventColumn
from nestream.model.python_rows import python_rows
from nestream.model.text import RESERVED_WORDS
from nestream.show.around import Around
from nestream.show.drawing import cut
from nestream.show.graph import plan_graph
from nestream.show.timeline import MOST_EVENTS, MOST_MATCHES, Timeline, timeline
from nestream.why.words import plain

FIRST_ROWS = 10
"""How many matches the table under a timeline has."""
_WIDEST = 120
_MOST_MEMBERS = 10
"""How many events of a group the table lists."""

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*')"
    r"|(?P<name>`[^`]*`)"
    rf"|(?P<keyword>(?<![\w.-])(?:{'|'.join(RESERVED_WORDS)})(?![\w-]))"
    r"|(?P<sign>!(?!=)|¬)"
    r"|(?P<number>(?<![\w.-])\d+(?:\.\d+)?(?!\w))",
    re.IGNORECASE | re.DOTALL,
)


def _mixed(colour: str) -> str:
    """A colour mixed with that of the surrounding text, for enough contrast on light and on dark."""
    return f"color-mix(in srgb,{colour} 60%,currentColor)"


_LOOKS = {
    "comment": "opacity:.65;font-style:italic",
    "string": f"color:{_mixed('#22a06b')}",
    "keyword": f"color:{_mixed('#3b82f6')};font-weight:600",
    "sign": f"color:{_mixed('#d6455d')};font-weight:600",
    "number": f"color:{_mixed('#b05cd6')}",
}


def highlighted(text: str) -> str:
    """The text of a query as HTML, with colours that are legible on light and on dark."""
    pieces, at = [], 0
    for found in _TOKEN.finditer(text):
        look = _LOOKS.get(found.lastgroup or "")
        pieces.append(escape(text[at : found.start()]))
        word = escape(found.group())
        pieces.append(f'<span style="{look}">{word}</span>' if look else word)
        at = found.end()
    pieces.append(escape(text[at:]))
    return f'<pre class="nestream-query">{"".join(pieces)}</pre>'


def query_html(query: Any) -> str:
    """A query in a notebook: its text and its plan."""
    return f'<div class="nestream">{highlighted(query.formatted)}{plan_graph(query)._repr_html_()}</div>'


@dataclass(frozen=True)
class Shown:
    """The matches of a query, for viewing: `table` holds all of them, `timeline` the first.

    `around` are the events that they were found in.
    """

    table: pa.Table
    timeline: Timeline
    around: Around | None = field(default=None, repr=False)

    def _repr_html_(self) -> str:
        rows = self.table.num_rows
        head = f"<p><b>{counted_matches(rows)}</b></p>"
        return f'<div class="nestream">{head}{self.timeline.svg() if rows else ""}{self._first_rows()}</div>'

    def _first_rows(self) -> str:
        if not self.table.num_rows:
            return ""
        names = self.table.column_names
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{self._cell(row[name])}</td>' for name in names)}</tr>"
            for row in python_rows(self.table.slice(0, FIRST_ROWS))
        )
        rows = self.table.num_rows
        rest = f"<p>{showing_matches(FIRST_ROWS, rows)}</p>" if rows > FIRST_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _cell(self, value: Any) -> str:
        """A value of a match; an event with its number, a group as the numbers of its events."""
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            numbers = [self._number(one) for one in value[:_MOST_MEMBERS]]
            if all(numbers):
                rest = len(value) - len(numbers)
                more = f" and {rest:,} more" if rest else ""
                return escape(f"{counted(len(value), 'event')}: {', '.join(map(str, numbers))}{more}")
        if isinstance(value, dict):
            number = self._number(value)
            parts = [f"{name}={plain(part)}" for name, part in value.items() if part is not None]
            shown = escape(cut(" ".join(parts), _WIDEST))
            return shown if number is None else f"<b>#{number}</b> {shown}"
        return "" if value is None else escape(cut(str(plain(value)), _WIDEST))

    def _number(self, event: Mapping[str, Any]) -> str | None:
        row = None if self.around is None else self.around.row(event)
        return None if row is None or self.around is None else str(row + self.around.first)

    def text(self, width: int = 100) -> str:
        """The timeline for a terminal."""
        return f"{counted_matches(self.table.num_rows)}\n\n{self.timeline.text(width)}".rstrip()

    __str__ = text

    def __repr__(self) -> str:
        return f"Shown({counted_matches(self.table.num_rows)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows on a terminal."""
        printer.text(self.text())

    def __len__(self) -> int:
        return int(self.table.num_rows)


def show_matches(
    query: Any,
    events: Any,
    *,
    time: str = "ts",
    type: str = "type",
    most_matches: int = MOST_MATCHES,
    most_events: int = MOST_EVENTS,
    **options: Any,
) -> Shown:
    """The matches of a query over some events, with the events around them; takes the options of `match`."""
    table = query.match(events, time=time, type=type, **options)
    if not isinstance(table, pa.Table):
        raise TypeError("a timeline cannot read a Spark DataFrame: collect the events first, with toArrow()")
    read = {"time": time, "type": type, "order": options.get("order", "time"), "types": options.get("types")}
    if options.get("as_of") is not None:
        query = query.as_of(options["as_of"])
    asked, first = _with_events(query, table, events, most_matches, read)
    around = Around(events, **read)
    drawn = timeline(
        asked,
        first,
        around,
        total=table.num_rows,
        most_matches=most_matches,
        most_events=most_events,
        **read,
    )
    return Shown(table, drawn, around)


def _with_events(
    query: Any, matches: pa.Table, events: Any, most: int, read: Mapping[str, Any]
) -> tuple[Any, pa.Table]:
    """The query without the values of RETURN, and its first matches with the events of their variables."""
    output = query.plan.output
    shown = {name for column in output.columns for name in column.events}
    if shown >= set(output.kept) or not matches.num_rows:
        return query, matches.slice(0, most)
    columns = tuple(EventColumn(name) for name in output.kept)
    plan = replace(query.plan, output=replace(output, columns=columns))
    asked = replace(query, bound=replace(query.bound, plan=plan))
    found: list[pa.Table] = []
    for batch in asked.batches(events, **read):
        found.append(batch)
        if sum(one.num_rows for one in found) >= most:
            break
    return asked, pa.concat_tables(found).slice(0, most)
