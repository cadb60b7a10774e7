"""Prints a timeline as text: each match's lanes, its events, and what its negations and groups examined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from nestream.show.drawing import cut
from nestream.show.moments import Moments, tick_text, ticks
from nestream.show.scale import Scale
from nestream.show.timeline import Timeline

_LANE, _SHADE, _LOOKED = "─", "░", "○"
_WIDEST_LANE = 22


def timeline_text(shown: Timeline, width: int = 100) -> str:
    """The timeline as lines of at most that many characters, where lines can be broken."""
    parts = [_match(shown, match, number, width) for number, match in enumerate(shown.matches, 1)]
    rest = [shown.told_matches] if shown.left_out["matches"] or not shown.matches else []
    return "\n\n".join(["\n".join(part) for part in parts] + ["\n".join([*rest, *shown.notes])]).rstrip()


def _match(shown: Timeline, match: Mapping[str, Any], number: int, width: int) -> list[str]:
    """One match: its lanes, its events, and a sentence for each negation and group."""
    names = _names(match)
    looked = {place for interval in match["intervals"] for place in interval["events"]}
    own = sorted({*names, *looked}, key=lambda place: (shown.events[place]["at"], place))
    span = f"{match['start']} to {match['end']}".replace("T", " ")
    title = f"match {number}" + (f" of {match['query']}" if match["query"] else "")
    lines = [f"{title}, {span}", ""]
    lines += _lanes(shown, match, names, looked, width)
    lines += ["", *_listed(shown, names, own)]
    for told in match["told"]:
        lines += wrap(told, width - 2, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
    return lines


def _names(match: Mapping[str, Any]) -> dict[int, str]:
    """The names of the events of a match; a member has the name of its group."""
    names = {place: name for name, places in match["groups"].items() for place in places}
    names |= {place: name for name, place in match["hidden"].items()}
    return names | {place: name for name, place in match["variables"].items()}


def _lanes(
    shown: Timeline, match: Mapping[str, Any], names: Mapping[int, str], looked: set[int], width: int
) -> Iterator[str]:
    left = min(max((len(lane) for lane in shown.lanes), default=4), _WIDEST_LANE)
    scale = Scale.of(shown, [match], 0, max(width - left - 4, 20) - 1)
    for lane in shown.lanes:
        cells = [_LANE] * (int(scale.right) + 1)
        for interval in match["intervals"]:
            if lane in interval["lanes"]:
                first, last = scale.ends(interval, shown.moments)
                for place in range(round(first), round(last) + 1):
                    cells[place] = _SHADE
        here = [event for event in shown.events if event["lane"] == lane and scale.holds(event["at"])]
        for event in sorted(here, key=lambda event: event["id"] in names):  # those of the match on top
            if event["id"] in names or event["id"] in looked:
                cells[round(scale.x(event["at"]))] = names.get(event["id"], _LOOKED)[0]
        yield f"  {cut(lane, left).ljust(left)}  {''.join(cells)}"
    yield f"  {' ' * left}  {_axis(scale, shown.moments)}"


def _axis(scale: Scale, moments: Moments) -> str:
    """The times under the lanes, as many as fit."""
    line = ""
    for at in ticks(scale.low, scale.high, moments, 4):
        text, place = tick_text(at, scale.low, scale.high, moments), round(scale.x(at))
        if place >= len(line) + (2 if line else 0) and place + len(text) <= scale.right + 1:
            line = line.ljust(place) + text
    return line


def _listed(shown: Timeline, names: Mapping[int, str], own: list[int]) -> Iterator[str]:
    """The events of a match and those that its negations examined, one per line."""
    rows = []
    for place in own:
        event = shown.events[place]
        number = "" if event["number"] is None else f"#{event['number']}"
        values = [f"{name}={value}" for name, value in event["attributes"].items() if value is not None]
        at = str(event["ts"]).replace("T", " ", 1)
        rows.append((names.get(place, _LOOKED), number, at, event["lane"], cut(" ".join(values), 60)))
    widths = [max((len(cells[place]) for cells in rows), default=0) for place in range(4)]
    for cells in rows:
        shown_cells = (cell.ljust(width) for cell, width in zip(cells, [*widths, 0], strict=True))
        yield "  " + "  ".join(shown_cells).rstrip()
