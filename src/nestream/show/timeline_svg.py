"""Draws a timeline: a lane for each type, time from left to right, a line through the events of a match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nestream.show.drawing import COLOURS, cut, document, number, text_of
from nestream.show.moments import tick_text, ticks
from nestream.show.timeline import Timeline

WIDTH, LANE, TOP, BOTTOM, RIGHT = 920.0, 38.0, 22.0, 34.0, 24.0
_LABELLED = 6
"""Up to so many matches the variables are written beside the events."""


def timeline_svg(shown: Timeline) -> str:
    """The drawing of a timeline."""
    return _Drawing(shown).svg()


class _Drawing:
    def __init__(self, shown: Timeline) -> None:
        self.shown = shown
        self.left = 16.0 + 7.0 * max((min(len(lane), 22) for lane in shown.lanes), default=4)
        self.height = TOP + LANE * max(len(shown.lanes), 1) + BOTTOM
        self.lane = {lane: TOP + LANE * (place + 0.5) for place, lane in enumerate(shown.lanes)}
        at: list[int] = [event["at"] for event in shown.events]
        at += [match[end] for match in shown.matches for end in ("from", "to")]
        for match in shown.matches:
            for interval in match["intervals"]:
                ends = (shown.moments.number(interval[end]) for end in ("from", "to"))
                at += [end for end in ends if end is not None]
        self.low, self.high = (min(at), max(at)) if at else (0, 1)

    def x(self, at: int) -> float:
        """Where a time is."""
        room = WIDTH - self.left - RIGHT
        if self.high == self.low:
            return self.left + room / 2
        return self.left + 10 + (room - 20) * ((at - self.low) / (self.high - self.low))

    def y(self, event: Mapping[str, Any]) -> float:
        """Where the lane of an event is."""
        return self.lane[event["lane"]]

    def svg(self) -> str:
        """All of it, from the back to the front."""
        parts = [*self._lanes(), *self._axis()]
        for place, match in enumerate(self.shown.matches):
            parts += self._intervals(match, COLOURS[place % len(COLOURS)])
        parts += self._others()
        for place, match in enumerate(self.shown.matches):
            parts += self._match(match, COLOURS[place % len(COLOURS)], place)
        return document(WIDTH, self.height, "Timeline of matches", self._description(), parts)

    def _description(self) -> str:
        shown = self.shown
        told = [f"{shown.told_matches} over {', '.join(shown.lanes) or 'no lanes'}"]
        return "; ".join(told + ([shown.told_events] if shown.left_out["events"] else []))

    def _lanes(self) -> Iterator[str]:
        for lane, y in self.lane.items():
            yield (
                f'<line class="rule" x1="{number(self.left)}" x2="{number(WIDTH - RIGHT)}"'
                f' y1="{number(y)}" y2="{number(y)}"/>'
            )
            shown = text_of(cut(lane, 22))
            yield f'<text x="{number(self.left - 10)}" y="{number(y + 4)}" text-anchor="end">{shown}</text>'

    def _axis(self) -> Iterator[str]:
        base = self.height - BOTTOM
        if self.shown.events or self.shown.matches:
            for at in ticks(self.low, self.high, self.shown.moments):
                x = number(self.x(at))
                told = text_of(tick_text(at, self.low, self.high, self.shown.moments))
                yield f'<line class="rule" x1="{x}" x2="{x}" y1="{number(TOP - 6)}" y2="{number(base)}"/>'
                place = f'x="{x}" y="{number(base + 16)}" text-anchor="middle"'
                yield f'<text class="quiet" {place}>{told}</text>'
        shown = self.shown
        rest = [shown.told_matches] if shown.left_out["matches"] or not shown.matches else []
        rest += [shown.told_events] if shown.left_out["events"] else []
        if rest:
            told = text_of(", ".join(rest))
            x, y = number(WIDTH - RIGHT), number(self.height - 4)
            yield f'<text class="quiet" x="{x}" y="{y}" text-anchor="end">{told}</text>'

    def _intervals(self, match: Mapping[str, Any], colour: str) -> Iterator[str]:
        for interval in match["intervals"]:
            ends = [self.shown.moments.number(interval[end]) for end in ("from", "to")]
            first = self.left if ends[0] is None else self.x(ends[0])
            last = WIDTH - RIGHT if ends[1] is None else self.x(ends[1])
            if last <= first:
                continue
            for lane in interval["lanes"]:
                y = self.lane[lane] - LANE * 0.36
                told = text_of(f"{interval['negation']}: nothing like it may be here")
                yield (
                    f'<rect x="{number(first)}" y="{number(y)}" width="{number(last - first)}"'
                    f' height="{number(LANE * 0.72)}" rx="4" fill="{colour}" fill-opacity=".13"'
                    f' stroke="{colour}" stroke-opacity=".55" stroke-dasharray="4 3">'
                    f"<title>{told}</title></rect>"
                )

    def _others(self) -> Iterator[str]:
        taken = {place for match in self.shown.matches for place in match["events"]}
        for match in self.shown.matches:
            taken |= {place for places in match["groups"].values() for place in places}
        for event in self.shown.events:
            if event["id"] not in taken:
                x, y = number(self.x(event["at"])), number(self.y(event))
                yield (
                    f'<circle cx="{x}" cy="{y}" r="3.5" fill="currentColor" fill-opacity=".45">'
                    f"<title>{_told(event)}</title></circle>"
                )

    def _match(self, match: Mapping[str, Any], colour: str, place: int) -> Iterator[str]:
        events = [self.shown.events[number_] for number_ in match["events"]]
        yield from self._groups(match, colour)
        if not events:  # RETURN computed values: all that is known is the span
            height = number(TOP - 10 + 3 * (place % 4))
            yield (
                f'<line x1="{number(self.x(match["from"]))}" x2="{number(self.x(match["to"]) + 1)}"'
                f' y1="{height}" y2="{height}" stroke="{colour}" stroke-width="3"/>'
            )
            return
        names = {number_: name for name, number_ in match["variables"].items()}
        starts = [None, *events[:-1]]
        path = " ".join(self._curve(*pair) for pair in zip(starts, events, strict=True))
        title = ", ".join(f"{names[event['id']]} = {event['label']}" for event in events)
        yield (
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round">'
            f"<title>{text_of(title)}</title></path>"
        )
        for event in events:
            x, y = self.x(event["at"]), self.y(event)
            yield (
                f'<circle cx="{number(x)}" cy="{number(y)}" r="5" fill="{colour}">'
                f"<title>{text_of(names[event['id']])} = {_told(event)}</title></circle>"
            )
            if len(self.shown.matches) <= _LABELLED:
                shown = text_of(cut(names[event["id"]], 12))
                yield (
                    f'<text x="{number(x)}" y="{number(y - 9)}" text-anchor="middle" font-weight="600">'
                    f"{shown}</text>"
                )

    def _groups(self, match: Mapping[str, Any], colour: str) -> Iterator[str]:
        """The members of each group as dots under a bracket, in the lanes of their types."""
        for variable, places in match["groups"].items():
            members = [self.shown.events[place] for place in places]
            for lane in dict.fromkeys(event["lane"] for event in members):
                own = [event for event in members if event["lane"] == lane]
                y = self.lane[lane]
                first, last = (number(self.x(end(event["at"] for event in own))) for end in (min, max))
                top = number(y - 11)
                told = text_of(f"{variable}: {len(members)} events")
                yield (
                    f'<path d="M{first} {number(y - 7)} V{top} H{last} V{number(y - 7)}" fill="none"'
                    f' stroke="{colour}" stroke-width="1.5"><title>{told}</title></path>'
                )
                for event in own:
                    x = number(self.x(event["at"]))
                    yield (
                        f'<circle cx="{x}" cy="{number(y)}" r="3.5" fill="{colour}">'
                        f"<title>{text_of(variable)}: {_told(event)}</title></circle>"
                    )
                if len(self.shown.matches) <= _LABELLED:
                    middle = number((self.x(own[0]["at"]) + self.x(own[-1]["at"])) / 2)
                    yield (
                        f'<text x="{middle}" y="{number(y - 14)}" text-anchor="middle" font-weight="600">'
                        f"{text_of(cut(variable, 12))}</text>"
                    )

    def _curve(self, before: Mapping[str, Any] | None, event: Mapping[str, Any]) -> str:
        x, y = number(self.x(event["at"])), number(self.y(event))
        if before is None:
            return f"M{x} {y}"
        middle = number((self.x(before["at"]) + self.x(event["at"])) / 2)
        return f"C{middle} {number(self.y(before))} {middle} {y} {x} {y}"


def _told(event: Mapping[str, Any]) -> str:
    values = [f"{name}={value}" for name, value in event["attributes"].items() if value is not None]
    return text_of(" ".join([event["label"], *values[:12]]))
