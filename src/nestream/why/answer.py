"""The answer: whether the picked events match, and what stops them in each alternative, as data and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

import pyarrow as pa

from nestream.model.diagnostics import Span
from nestream.model.python_rows import python_rows
from nestream.model.schema import Schema
from nestream.model.text import print_name
from nestream.reference import Event
from nestream.why.evidence import Evidence
from nestream.why.obstacle import Obstacle
from nestream.why.words import Words, plain, shortened

_WIDTH = 100


@dataclass(frozen=True)
class Alternative:
    """One alternative of the query: the variable of each picked event, and what stops them.

    `missing` are the variables without a picked event; `completion` are the events found for them. `match` is
    the whole match, if there is one, and `evidence` is what its negations and groups examined.
    """

    assignment: Mapping[str, Event]
    missing: tuple[str, ...]
    completion: Mapping[str, Event]
    obstacles: tuple[Obstacle, ...]
    match: Mapping[str, Event] | None = None
    evidence: tuple[Evidence, ...] = ()

    def json(self) -> dict[str, Any]:
        """The alternative as plain data."""
        return {
            "assignment": {name: event.row for name, event in self.assignment.items()},
            "missing": list(self.missing),
            "completion": {name: event.row for name, event in self.completion.items()},
            "obstacles": [obstacle.json() for obstacle in self.obstacles],
        }


@dataclass(frozen=True)
class Why:
    """Whether some picked events are (part of) a match, and if not, everything that stops them."""

    query: str
    table: pa.Table
    schema: Schema
    words: Words
    picked: tuple[int, ...]
    alternatives: tuple[Alternative, ...]
    left_out: int = 0
    """How many more alternatives of the query were not examined."""

    @property
    def match(self) -> Mapping[str, Event] | None:
        """The match that the picked events are part of."""
        return self.alternatives[0].match

    @property
    def matched(self) -> bool:
        """Whether the picked events are part of a match."""
        return self.match is not None

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """What stops the picked events in the nearest alternative; empty if they match."""
        return self.alternatives[0].obstacles

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What the negations and groups of the match examined; empty if there is no match."""
        return self.alternatives[0].evidence

    def json(self) -> dict[str, Any]:
        """The answer as plain data; events are row numbers, spans are offsets in the query."""
        return {
            "matched": self.matched,
            "alternatives": [alternative.json() for alternative in self.alternatives],
            "match": None if self.match is None else {name: event.row for name, event in self.match.items()},
            "evidence": [evidence.json() for evidence in self.evidence],
            "events": {str(row): event for row, event in self.events().items()},
            "left_out": self.left_out,
        }

    def events(self) -> dict[int, dict[str, Any]]:
        """All events that the answer mentions, by row number, with their columns."""
        rows = set(self.picked)
        for alternative in self.alternatives:
            rows |= {event.row for event in alternative.completion.values()}
            rows |= {row for obstacle in alternative.obstacles for row in _mentioned(obstacle)}
            rows |= {event.row for evidence in alternative.evidence for event in evidence.events}
        rows |= {event.row for event in (self.match or {}).values()}
        ordered = sorted(rows)
        taken = python_rows(self.table.take(pa.array(ordered, pa.int64())))
        return {
            row: {name: plain(value) for name, value in event.items()}
            for row, event in zip(ordered, taken, strict=True)
        }

    # -- as text -------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The answer as text for a terminal."""
        lines = [self.verdict, "", *self._event_lines()]
        if self.match is not None:
            return "\n".join([*lines, "", *self._match_lines(self.match)])
        for number, alternative in enumerate(self.alternatives, 1):
            lines.append("")
            if len(self.alternatives) > 1:
                lines.append(f"alternative {number}: {self.assigned(alternative)}")
            else:
                lines.append(self.assigned(alternative))
            for obstacle in alternative.obstacles:
                lines += _wrapped(f"{obstacle.kind}: {obstacle.text}")
                lines += self._underlined(obstacle.span)
        if self.left_out:
            lines += ["", f"{self.left_out:,} more alternatives of the query were not looked at"]
        return "\n".join(lines)

    __str__ = text

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        if self.match is not None:
            whole = set(self.picked) == {event.row for event in self.match.values()}
            return "a match" if whole else "part of a match"
        number = len(self.obstacles)
        what = f"{number} obstacle{'' if number == 1 else 's'}"
        return f"no match: {what}" + (" in the nearest alternative" if len(self.alternatives) > 1 else "")

    def _event_lines(self) -> list[str]:
        rows = []
        for row, event in self.events().items():
            others = [
                f"{name}={shortened(str(value))}"
                for name, value in event.items()
                if name not in (self.schema.time, self.schema.type) and value is not None
            ]
            picked = "*" if row in self.picked else " "
            at = str(event[self.schema.time]).replace("T", " ", 1)
            rows.append(
                (f"{picked} {self.words.number(row)}", at, str(event[self.schema.type]), " ".join(others))
            )
        widths = [max(len(cells[place]) for cells in rows) for place in range(3)]
        return [
            "  ".join(cell.ljust(width) for cell, width in zip(cells, [*widths, 0], strict=True)).rstrip()
            for cells in rows
        ]

    def _match_lines(self, match: Mapping[str, Event]) -> list[str]:
        lines = [f"  {self.words.bound(name, event)}" for name, event in match.items()]
        for evidence in self.evidence:
            lines += _wrapped(f"{evidence.kind}: {evidence.told}")
            lines += self._underlined(evidence.span)
        return lines

    def assigned(self, alternative: Alternative) -> str:
        """The variable of each picked event, on one line."""
        number = self.words.number
        given = [
            f"{print_name(name)} = {number(event.row)}" for name, event in alternative.assignment.items()
        ]
        for name in alternative.missing:
            found = alternative.completion.get(name)
            shown = "missing" if found is None else f"{number(found.row)}, not picked"
            given.append(f"{print_name(name)} {'=' if found else 'is'} {shown}")
        return ", ".join(given)

    def _underlined(self, span: Span | None) -> list[str]:
        """The line of the query that an obstacle is about, with its place underlined."""
        if span is None:
            return []
        start = self.query.rfind("\n", 0, span.start) + 1
        end = self.query.find("\n", span.start)
        line = self.query[start : end if end >= 0 else len(self.query)]
        width = max(1, min(span.end, start + len(line)) - span.start)
        lead = len(line) - len(line.lstrip())
        return [f"    | {line[lead:]}", f"    | {' ' * (span.start - start - lead)}{'^' * width}"]

    # -- as HTML -------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.verdict)}</b></p>", self._events_html()]
        if self.match is not None:
            lines = [escape(self.words.bound(name, event)) for name, event in self.match.items()]
            lines += [self._reason_html(told.kind, told.told, told.span) for told in self.evidence]
            parts.append(f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>")
            return f'<div class="nestream-why">{"".join(parts)}</div>'
        for alternative in self.alternatives:
            items = "".join(
                f"<li>{self._reason_html(told.kind, told.text, told.span)}</li>"
                for told in alternative.obstacles
            )
            parts.append(f"<p>{escape(self.assigned(alternative))}</p><ul>{items}</ul>")
        if self.left_out:
            parts.append(f"<p>{self.left_out:,} more alternatives of the query were not looked at</p>")
        return f'<div class="nestream-why">{"".join(parts)}</div>'

    def _reason_html(self, kind: str, told: str, span: Span | None) -> str:
        text = f"<b>{escape(kind)}</b>: {escape(told)}"
        if span is None:
            return text
        around = " ".join(self.query[span.start : span.end].split())
        return f"{text}<br><code>{escape(around)}</code>"

    def _events_html(self) -> str:
        shown = self.events()
        columns = [
            name for name in self.table.column_names if any(e[name] is not None for e in shown.values())
        ]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("event", *columns))
        number = self.words.number
        body = "".join(
            _row_html(number(row), event, columns, row in self.picked) for row, event in shown.items()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _mentioned(obstacle: Obstacle) -> Iterator[int]:
    """The rows of an obstacle, and of what the negations inside it examined."""
    yield from obstacle.events
    for inner in obstacle.more.get("inner", ()):
        yield from inner["events"]


def _wrapped(text: str) -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _row_html(number: str, event: Mapping[str, Any], columns: Sequence[str], picked: bool) -> str:
    shown = f"<b>{number}</b>" if picked else number
    cells = ("" if event[name] is None else escape(shortened(str(event[name]))) for name in columns)
    return f"<tr><td>{shown}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
