"""The floor plan: its rooms, the doors between them, and walking times.

Lengths are in metres. A room has a door to every hall along its walls, and an operating room is entered
through the sanitiser station before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import hypot
from typing import Any

PACE = 1.7
"""Walking speed, in metres per second."""
LEAST_WALL = 1.0
"""The length of wall that two rooms must share to have a door in it."""
STATES = {"clean": "clean hands", "due": "hygiene due", "violation": "in violation"}
"""The names of a worker's states on the plan."""
KINDS = ("operating", "patient", "break", "sanitiser", "sterile", "hall")


@dataclass(frozen=True)
class Room:
    """A rectangle with a unique name on the plan; x and y are its upper left corner."""

    name: str
    kind: str
    x: float
    y: float
    w: float
    h: float

    @property
    def centre(self) -> tuple[float, float]:
        """Where people stand."""
        return self.x + self.w / 2, self.y + self.h / 2


@dataclass(frozen=True)
class Floor:
    """Rooms, and the ways between them."""

    title: str
    width: float
    height: float
    rooms: Sequence[Room]
    _ways: dict[str, dict[str, tuple[float, tuple[str, ...]]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def named(self) -> Mapping[str, Room]:
        """The rooms by name."""
        return {room.name: room for room in self.rooms}

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """The names of the rooms of a kind."""
        return tuple(room.name for room in self.rooms if room.kind == kind)

    def near(self, place: str, kind: str) -> tuple[str, ...]:
        """The names of the rooms of a kind, nearest first."""
        return tuple(sorted(self.of_kind(kind), key=lambda name: (self.seconds(place, name), name)))

    def seconds(self, start: str, end: str) -> float:
        """How long it takes to walk from room to room."""
        return self._way(start, end)[0] / PACE

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """The rooms on the way, including both ends."""
        return self._way(start, end)[1]

    @cached_property
    def doors(self) -> Mapping[str, Mapping[str, float]]:
        """The rooms next to each room, with the metres from centre to centre through the door."""
        found: dict[str, dict[str, float]] = {room.name: {} for room in self.rooms}
        for one in self.rooms:
            for other in self.rooms:
                door = _door(one, other) if one is not other and _open(one, other) else None
                if door is not None:
                    metres = sum(hypot(door[0] - x, door[1] - y) for x, y in (one.centre, other.centre))
                    found[one.name][other.name] = metres
        return found

    def as_json(self) -> dict[str, Any]:
        """The plan as the console reads it."""
        rooms = [asdict(room) for room in self.rooms]
        size = {"width": self.width, "height": self.height}
        return {"title": self.title, **size, "states": dict(STATES), "rooms": rooms}

    def _way(self, start: str, end: str) -> tuple[float, tuple[str, ...]]:
        if start not in self._ways:
            self._ways[start] = self._ways_from(start)
        return self._ways[start][end]

    def _ways_from(self, start: str) -> dict[str, tuple[float, tuple[str, ...]]]:
        """The shortest way to every room, by Dijkstra's algorithm."""
        found: dict[str, tuple[float, tuple[str, ...]]] = {}
        ahead: list[tuple[float, tuple[str, ...]]] = [(0.0, (start,))]
        while ahead:
            metres, path = heapq.heappop(ahead)
            if path[-1] in found:
                continue
            found[path[-1]] = metres, path
            for neighbour, step in self.doors[path[-1]].items():
                heapq.heappush(ahead, (metres + step, (*path, neighbour)))
        return found


def _open(one: Room, other: Room) -> bool:
    """Whether there is a door if two rooms of these kinds share a wall."""
    kinds = {one.kind, other.kind}
    if "operating" in kinds:
        return "sanitiser" in kinds
    return "hall" in kinds


def _door(one: Room, other: Room) -> tuple[float, float] | None:
    """The middle of the wall that two rooms share."""
    left, right = max(one.x, other.x), min(one.x + one.w, other.x + other.w)
    top, bottom = max(one.y, other.y), min(one.y + one.h, other.y + other.h)
    if (left == right and bottom - top >= LEAST_WALL) or (top == bottom and right - left >= LEAST_WALL):
        return (left + right) / 2, (top + bottom) / 2
    return None


FLOOR = Floor(
    "Surgical ward",
    60,
    30,
    (
        *(Room(f"OR-{n}", "operating", 12 * (n - 1), 0, 12, 10) for n in range(1, 5)),
        *(Room(f"Sanitiser-{n}", "sanitiser", 12 * (n - 1), 10, 12, 3) for n in range(1, 5)),
        Room("Sterile-1", "sterile", 48, 0, 6, 13),
        Room("Sterile-2", "sterile", 54, 0, 6, 13),
        Room("Hall-West", "hall", 0, 13, 20, 6),
        Room("Hall-Middle", "hall", 20, 13, 20, 6),
        Room("Hall-East", "hall", 40, 13, 20, 6),
        Room("Patient-1", "patient", 0, 19, 8, 11),
        Room("Break-1", "break", 8, 19, 8, 11),
        Room("Patient-2", "patient", 16, 19, 8, 11),
        Room("Patient-3", "patient", 24, 19, 8, 11),
        Room("Break-2", "break", 32, 19, 8, 11),
        Room("Patient-4", "patient", 40, 19, 8, 11),
        Room("Store", "sterile", 48, 19, 12, 11),
    ),
)
WORKSHOPS = ("Sterile-1", "Sterile-2")
"""Where instruments are washed, sharpened, disinfected and checked."""
STORE = "Store"
"""Where they are disinfected a last time, and handed out."""
