"""The scripts of instruments: from recycling to the operation.

    r  recycled     w  washed       s  sharpened     d  disinfected, in the room of the sharpening
    c  checked      f  disinfected a last time, in the store        x  disinfected in the other workshop
    o  used

The check is made by hand, so the procedure ends with a last disinfection: r w s d c f o.
"""

from __future__ import annotations

from nestream.hospital.scripts import (
    ANOTHER_ROOM,
    HOUR,
    MILLISECOND,
    MINUTE,
    SURGICAL,
    TOUCHED,
    UNFINISHED,
    Fit,
    Script,
    repertoire,
    script,
)

TYPES = {
    "r": "Recycle",
    "w": "Washing",
    "s": "Sharpening",
    "d": "Disinfection",
    "c": "Checking",
    "f": "Disinfection",
    "x": "Disinfection",
    "o": "Operating",
}
SURGERY = "surgery"
INSTRUMENT_TYPES = (SURGERY,) * 5 + ("dental",) * 3 + ("endoscopy",) * 2
"""The type of an instrument by the last digit of its number."""

_OF_ORDER = (SURGICAL, UNFINISHED)
"""The rules about the order of sharpening, disinfection and checking; the first is for surgery.
"""
_ALL = (*_OF_ORDER, TOUCHED, ANOTHER_ROOM)


def _cycle(
    name: str, steps: str, rules: tuple[str, ...] = (), *matches: str, fit: Fit | None = None
) -> Script:
    """A script where every match breaks all of some rules."""
    return script(name, steps, *((rule, match) for rule in rules for match in matches), fit=fit)


def _lasting(milliseconds: int) -> Fit:
    return Fit("r", "o", milliseconds)


CYCLES = repertoire(
    _cycle("complete", "r w s d c f o"),
    _cycle("used twice", "r w s d c f o o2"),
    _cycle("complete after an incomplete one", "r w d s c w2 s2 d2 c2 f o"),
    _cycle("checked too soon, then again", "r w s c d c2 f o"),
    _cycle("disinfected again, before sharpening and after", "r w d s d2 c f o"),
    _cycle("not used", "r w s d c f"),
    _cycle("recycled and washed, not used", "r w"),
    _cycle("untreated, more than an hour", "r w o", fit=_lasting(HOUR + MILLISECOND)),
    _cycle("not sharpened", "r w d c f o", _ALL, "r w o"),
    _cycle("not disinfected before the check", "r w s c f o", (*_OF_ORDER, ANOTHER_ROOM), "r w o"),
    _cycle("not checked", "r w s d f o", _OF_ORDER, "r w o"),
    _cycle("checked after its use", "r w s d f o c", _OF_ORDER, "r w o"),
    _cycle("checked before it was disinfected", "r w s c d f o", _OF_ORDER, "r w o"),
    _cycle("disinfected before it was sharpened", "r w d s c f o", _OF_ORDER, "r w o"),
    _cycle("not disinfected after the check", "r w s d c o", (TOUCHED,), "r w o"),
    _cycle("disinfected in the other workshop", "r w s x c f o", (ANOTHER_ROOM,), "r w o"),
    _cycle("untreated", "r w o", _ALL, "r w o"),
    _cycle("untreated, an hour", "r w o", (*_OF_ORDER, TOUCHED), "r w o", fit=_lasting(HOUR)),
    _cycle("untreated, ten minutes", "r w o", _ALL, "r w o", fit=_lasting(10 * MINUTE)),
    _cycle(
        "untreated, more than ten minutes",
        "r w o",
        (*_OF_ORDER, TOUCHED),
        "r w o",
        fit=_lasting(10 * MINUTE + MILLISECOND),
    ),
    _cycle("washed again after all", "r w s d c f w2 o", _ALL, "r w2 o"),
    _cycle("washed twice and not checked", "r w w2 s d f o", _OF_ORDER, "r w o", "r w2 o"),
    _cycle("recycled twice and not sharpened", "r r2 w d c f o", _ALL, "r w o", "r2 w o"),
    _cycle("used, washed and used again", "r w s d c f o w2 o2", _ALL, "r w2 o2"),
)
