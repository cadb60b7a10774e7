"""Draws a timeline: a lane for each type, time from left to right, a line through the events of a match.

The events that the negations of a match examined are faded, in its colour. The members of a group are a row
of dots under a bracket. Below the axis, sentences say what was missing or out of order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from nestream.model.counting import counted
from nestream.show.drawing import COLOURS, cut, document, number, text_of
from nestream.show.moments import tick_text, ticks
from nestream.show.scale import Scale
from nestream.show.timeline import Timeline, shown_events

WIDTH, LANE, TOP, BOTTOM, RIGHT, LINE = 920.0, 38.0, 22.0, 34.0, 24.0, 17.0
_LABELLED = 6
"""Up to this many matches, variables and numbers are written beside the events, and sentences below."""
_CHARACTERS, _SENTENCES = 138, 12
"""The length of a line of a sentence, and the number of sentences."""
_APART = 30.0
"""The minimum distance between the numbers under two events."""


def timeline_svg(shown: Timeline) -> str:
    """The drawing of a timeline."""
    return _Drawing(shown).svg()


class _Drawing:
    def __init__(self, shown: Timeline) -> None:
        self.shown = shown
        self.left = 16.0 + 7.0 * max((min(len(lane), 22) for lane in shown.lanes), default=4)
        self.base = TOP + LANE * max(len(shown.lanes), 1)
        self.lane = {lane: TOP + LANE * (place + 0.5) for place, lane in enumerate(shown.lanes)}
        self.scale = Scale.of(shown, shown.matches, self.left + 10, WIDTH - RIGHT - 10)
        self.labelled = len(shown.matches) <= _LABELLED
        self.sentences = list(self._sentences())
        self.height = self.base + BOTTOM + LINE * len(self.sentences)

    def x(self, at: int) -> float:
        """The place of a time."""
        return self.scale.x(at)

    def y(self, event: Mapping[str, Any]) -> float:
        """The place of an event's lane."""
        return self.lane[event["lane"]]

    def svg(self) -> str:
        """Draw everything, from back to front."""
        parts = [*self._lanes(), *self._axis()]
        coloured = [(match, COLOURS[n % len(COLOURS)]) for n, match in enumerate(self.shown.matches)]
        for match, colour in coloured:
            parts += self._intervals(match, colour)
        parts += self._others()
        for match, colour in coloured:
            parts += self._looked_at(match, colour)
        for place, (match, colour) in enumerate(coloured):
            parts += self._match(match, colour, place)
        parts += [*self._numbers(), *self._told()]
        return document(WIDTH, self.height, "Timeline of matches", self._description(), parts)

    def _description(self) -> str:
        shown = self.shown
        told = [f"{shown.told_matches} over {', '.join(shown.lanes) or 'no lanes'}"]
        told += [shown.told_events] if shown.left_out["events"] else []
        if self.labelled:
            told += [sentence for match in shown.matches for sentence in match["told"]][:_SENTENCES]
        return "; ".join(told)

    def _lanes(self) -> Iterator[str]:
        for lane, y in self.lane.items():
            yield (
                f'<line class="rule" x1="{number(self.left)}" x2="{number(WIDTH - RIGHT)}"'
                f' y1="{number(y)}" y2="{number(y)}"/>'
            )
            shown = text_of(cut(lane, 22))
            yield f'<text x="{number(self.left - 10)}" y="{number(y + 4)}" text-anchor="end">{shown}</text>'

    def _axis(self) -> Iterator[str]:
        if self.shown.events or self.shown.matches:
            for at in ticks(self.scale.low, self.scale.high, self.shown.moments):
                x = number(self.x(at))
                told = text_of(tick_text(at, self.scale.low, self.scale.high, self.shown.moments))
                ends = f'y1="{number(TOP - 6)}" y2="{number(self.base)}"'
                yield f'<line class="rule" x1="{x}" x2="{x}" {ends}/>'
                place = f'x="{x}" y="{number(self.base + 16)}" text-anchor="middle"'
                yield f'<text class="quiet" {place}>{told}</text>'
        shown = self.shown
        rest = [shown.told_matches] if shown.left_out["matches"] or not shown.matches else []
        rest += [shown.told_events] if shown.left_out["events"] else []
        if rest:
            told = text_of(", ".join(rest))
            x, y = number(WIDTH - RIGHT), number(self.base + BOTTOM - 4)
            yield f'<text class="quiet" x="{x}" y="{y}" text-anchor="end">{told}</text>'

    def _intervals(self, match: Mapping[str, Any], colour: str) -> Iterator[str]:
        for interval in match["intervals"]:
            first, last = self.scale.ends(interval, self.shown.moments)
            if last <= first:
                continue
            for lane in interval["lanes"]:
                y = self.lane[lane] - LANE * 0.36
                told = text_of(interval["text"] or f"{interval['negation']}: must not occur here")
                yield (
                    f'<rect x="{number(first)}" y="{number(y)}" width="{number(last - first)}"'
                    f' height="{number(LANE * 0.72)}" rx="4" fill="{colour}" fill-opacity=".1"'
                    f' stroke="{colour}" stroke-opacity=".45" stroke-dasharray="4 3">'
                    f"<title>{told}</title></rect>"
                )

    # -- events --------------------------------------------------------------------------------------------

    def _others(self) -> Iterator[str]:
        """The events around the matches that are not part of them."""
        taken = {place for match in self.shown.matches for place in shown_events(match)}
        for event in self.shown.events:
            if event["id"] not in taken and self.scale.holds(event["at"]):
                x, y = number(self.x(event["at"])), number(self.y(event))
                yield (
                    f'<circle cx="{x}" cy="{y}" r="2" fill="currentColor" fill-opacity=".3">'
                    f"<title>{_told(event)}</title></circle>"
                )

    def _looked_at(self, match: Mapping[str, Any], colour: str) -> Iterator[str]:
        """The events that the negations of a match examined, faded."""
        for interval in match["intervals"]:
            for place in interval["events"]:
                event = self.shown.events[place]
                x, y = number(self.x(event["at"])), number(self.y(event))
                yield (
                    f'<circle class="looked" cx="{x}" cy="{y}" r="4.5" fill="{colour}" fill-opacity=".25"'
                    f' stroke="{colour}" stroke-opacity=".8" stroke-width="1.3">'
                    f"<title>{_told(event)}</title></circle>"
                )
            if interval["more"] and interval["lanes"]:
                _, last = self.scale.ends(interval, self.shown.moments)
                top = self.lane[interval["lanes"][0]] - LANE * 0.36
                yield _text(
                    last - 5, top + 10, f"and {interval['more']:,} more", 'class="quiet" text-anchor="end"'
                )

    def _match(self, match: Mapping[str, Any], colour: str, place: int) -> Iterator[str]:
        yield from self._groups(match, colour)
        named = {**match["hidden"], **match["variables"]}
        events = sorted(
            (self.shown.events[one] for one in set(named.values())), key=lambda event: event["at"]
        )
        if not events:  # RETURN computed values: only the span is known
            height = number(TOP - 10 + 3 * (place % 4))
            yield (
                f'<line x1="{number(self.x(match["from"]))}" x2="{number(self.x(match["to"]) + 1)}"'
                f' y1="{height}" y2="{height}" stroke="{colour}" stroke-width="3"/>'
            )
            return
        names = {number_: name for name, number_ in named.items()}
        starts = [None, *events[:-1]]
        path = " ".join(self._curve(*pair) for pair in zip(starts, events, strict=True))
        title = ", ".join(f"{names[event['id']]} = {event['label']}" for event in events)
        yield (
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round">'
            f"<title>{text_of(title)}</title></path>"
        )
        for event in events:
            x, y = self.x(event["at"]), self.y(event)
            # a ring is an event that the query does not return
            ring = f' fill-opacity=".35" stroke="{colour}" stroke-width="2"'
            look = ring if names[event["id"]] in match["hidden"] else ""
            yield (
                f'<circle cx="{number(x)}" cy="{number(y)}" r="5" fill="{colour}"{look}>'
                f"<title>{text_of(names[event['id']])} = {_told(event)}</title></circle>"
            )
            if self.labelled:
                yield _text(x, y - 9, cut(names[event["id"]], 12), 'text-anchor="middle" font-weight="600"')

    def _groups(self, match: Mapping[str, Any], colour: str) -> Iterator[str]:
        """The members of each group as a row of dots under a bracket, in the lanes of their types."""
        for variable, places in match["groups"].items():
            members = [self.shown.events[place] for place in places]
            count = match["counts"].get(variable.split(".")[0], {})
            for lane in dict.fromkeys(event["lane"] for event in members):
                own = [event for event in members if event["lane"] == lane]
                y = self.lane[lane]
                ends = [self.x(end(event["at"] for event in own)) for end in (min, max)]
                first, last = (number(place) for place in (ends[0] - 5, ends[1] + 5))
                told = text_of(f"{variable}: {count.get('text') or counted(len(members), 'event')}")
                path = f"M{first} {number(y - 6)} V{number(y - 10)} H{last} V{number(y - 6)}"
                yield (
                    f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5">'
                    f"<title>{told}</title></path>"
                )
                for event in own:
                    x = number(self.x(event["at"]))
                    yield (
                        f'<circle cx="{x}" cy="{number(y)}" r="3.5" fill="{colour}">'
                        f"<title>{text_of(variable)}: {_told(event)}</title></circle>"
                    )
                if self.labelled:
                    yield self._group_name(variable, count, ends, y)

    def _group_name(self, variable: str, count: Mapping[str, Any], ends: list[float], y: float) -> str:
        rest = f" and {count['more']:,} more" if count.get("more") else ""
        label = f"{cut(variable, 12)}{rest}"
        return _text(sum(ends) / 2, y - 13, label, 'text-anchor="middle" font-weight="600"')

    def _numbers(self) -> Iterator[str]:
        """The numbers of the events of matches, where there is room."""
        if not self.labelled:
            return
        last: dict[str, float] = {}
        taken = {place for match in self.shown.matches for place in shown_events(match)}
        for event in sorted((self.shown.events[place] for place in taken), key=lambda event: event["at"]):
            x = self.x(event["at"])
            if event["number"] is not None and x - last.get(event["lane"], -_APART) >= _APART:
                last[event["lane"]] = x
                yield _text(x, self.y(event) + 15, event["number"], 'class="number" text-anchor="middle"')

    def _curve(self, before: Mapping[str, Any] | None, event: Mapping[str, Any]) -> str:
        x, y = number(self.x(event["at"])), number(self.y(event))
        if before is None:
            return f"M{x} {y}"
        middle = number((self.x(before["at"]) + self.x(event["at"])) / 2)
        return f"C{middle} {number(self.y(before))} {middle} {y} {x} {y}"

    # -- sentences -----------------------------------------------------------------------------------------

    def _sentences(self) -> Iterator[tuple[str | None, str]]:
        """The lines below the axis, each with the colour of the match that begins there."""
        if not self.labelled:
            return
        told = [
            (COLOURS[place % len(COLOURS)], sentence)
            for place, match in enumerate(self.shown.matches)
            for sentence in match["told"]
        ]
        for colour, sentence in told[:_SENTENCES]:
            for place, line in enumerate(wrap(sentence, _CHARACTERS, break_on_hyphens=False)):
                yield (None if place else colour), line
        if len(told) > _SENTENCES:
            yield None, f"and {len(told) - _SENTENCES} more"
        for note in self.shown.notes:
            yield None, cut(note, _CHARACTERS)

    def _told(self) -> Iterator[str]:
        for place, (colour, line) in enumerate(self.sentences):
            y = self.base + BOTTOM + LINE * (place + 0.6)
            if colour is not None:
                yield f'<circle cx="20" cy="{number(y - 4)}" r="4" fill="{colour}"/>'
            yield _text(30, y, line, "")


def _text(x: float, y: float, said: object, look: str) -> str:
    return f'<text x="{number(x)}" y="{number(y)}"{" " + look if look else ""}>{text_of(said)}</text>'


def _told(event: Mapping[str, Any]) -> str:
    values = [f"{name}={value}" for name, value in event["attributes"].items() if value is not None]
    return text_of(" ".join([event["label"], *values[:12]]))
