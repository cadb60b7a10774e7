"""Plain loops that count the violations the generators plant, independent of any query engine."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

Row = dict[str, Any]


def of_type(rows: list[Row], *types: str) -> list[Row]:
    return [row for row in rows if row["type"] in types]


def grouped(rows: list[Row], key: str) -> list[list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row[key] is not None:
            groups[row[key]].append(row)
    return list(groups.values())


def between(rows: list[Row], after: Row, before: Row) -> list[Row]:
    return [row for row in rows if after["ts"] < row["ts"] < before["ts"]]


def in_order(rows: list[Row], *types: str) -> bool:
    """Whether events of these types occur one after the other."""
    wanted = list(types)
    for row in sorted(rows, key=lambda row: row["ts"]):
        if wanted and row["type"] == wanted[0]:
            wanted.pop(0)
    return not wanted


def contaminated_instruments(rows: list[Row]) -> int:
    """Recycled and washed surgery tools in use within an hour, not sharpened, disinfected and checked."""
    found = 0
    for tool in grouped(rows, "id"):
        for used in of_type(tool, "Operating"):
            for recycled in of_type(tool, "Recycle"):
                for washed in of_type(between(tool, recycled, used), "Washing"):
                    proper = in_order(between(tool, washed, used), "Sharpening", "Disinfection", "Checking")
                    near = used["ts"] - recycled["ts"] <= timedelta(hours=1)
                    found += near and not proper and used["ins-type"] == "surgery"
    return found


def unsanitized_entries(rows: list[Row]) -> int:
    """Workers that enter an operating room without sanitizing in the minute before."""
    found = 0
    for worker in grouped(rows, "wID"):
        for entry in of_type(worker, "Enter-Operating-Room"):
            found += not any(
                timedelta(0) < entry["ts"] - row["ts"] <= timedelta(minutes=1)
                for row in of_type(worker, "Sanitize-Area")
            )
    return found


def unwashed_returns(rows: list[Row]) -> int:
    """Workers that come back to an operating room within a minute with unwashed hands."""
    found = 0
    for worker in grouped(rows, "wID"):
        for left in of_type(worker, "Operating Room"):
            for back in of_type(worker, "Operating Room"):
                if not timedelta(0) < back["ts"] - left["ts"] <= timedelta(minutes=1):
                    continue
                for away in of_type(between(worker, left, back), "Break Room", "Patient Room"):
                    found += not in_order(between(worker, away, back), "Washing", "Drying")
    return found


def shoplifted(rows: list[Row]) -> int:
    """Pairs of shelf and exit reading of a product without a counter reading between them."""
    found = 0
    for product in grouped(rows, "id"):
        for shelf in of_type(product, "SHELF-READING"):
            for leaving in of_type(product, "EXIT-READING"):
                paid = of_type(between(product, shelf, leaving), "COUNTER-READING")
                found += shelf["ts"] < leaving["ts"] and not paid
    return found


def misplaced(rows: list[Row]) -> int:
    """Pairs of readings on two shelves that neither the counter nor the first shelf follows in an hour."""
    found = 0
    for product in grouped(rows, "id"):
        shelves = of_type(product, "SHELF-READING")
        for first in shelves:
            for second in shelves:
                if first["ts"] >= second["ts"] or first["shelf_id"] == second["shelf_id"]:
                    continue
                found += not any(
                    row["ts"] > second["ts"]
                    and row["ts"] - first["ts"] < timedelta(hours=1)
                    and (row["type"] == "COUNTER-READING" or row["shelf_id"] == first["shelf_id"])
                    for row in of_type(product, "COUNTER-READING", "SHELF-READING")
                )
    return found
