"""Time zones by name."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nestream.model.schema import EventError

_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.IGNORECASE)


def zone_named(name: str) -> tzinfo:
    """The zone of an IANA name or an offset such as `+05:30`; raises an `EventError` if there is none."""
    found = _OFFSET.fullmatch(name)
    if found is not None:
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo("UTC" if name == "Z" else name)
    except (ZoneInfoNotFoundError, ValueError):
        raise EventError(
            f"the time zone {name!r} is unknown\n"
            "  hint: name it as in Europe/Berlin or +02:00, or write the time with its zone"
        ) from None
