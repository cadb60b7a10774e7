"""The scripts of workers: entering an operating room, leaving it for a while, rounds on the ward.

o  seen in the operating room     e  entering it          s  sanitising at its station
b  seen in a break room           p  with a patient       w  washing hands        d  drying them
"""

from __future__ import annotations

from nestream.hospital.scripts import (
    BREAK,
    ENTERING,
    MILLISECOND,
    MINUTE,
    SECOND,
    Fit,
    repertoire,
    script,
)

TYPES = {
    "o": "Operating Room",
    "e": "Enter-Operating-Room",
    "s": "Sanitize-Area",
    "b": "Break Room",
    "p": "Patient Room",
    "w": "Washing",
    "d": "Drying",
}
KINDS = {
    "o": "operating",
    "e": "operating",
    "s": "sanitiser",
    "b": "break",
    "p": "patient",
    "w": "sanitiser",
    "d": "sanitiser",
}
"""The kind of room in which each step is done."""
STAY = {
    "o": (1 * SECOND, 3 * SECOND),
    "e": (0, 0),
    "s": (1 * SECOND, 3 * SECOND),
    "b": (3 * SECOND, 8 * SECOND),
    "p": (3 * SECOND, 8 * SECOND),
    "w": (3 * SECOND, 5 * SECOND),
    "d": (2 * SECOND, 4 * SECOND),
}
"""The shortest and longest time at a step, besides the walk to it."""

ENTRIES = repertoire(
    script("sanitised and entered", "s e o"),
    script("sanitised twice and entered", "s s2 e o"),
    script("sanitised a minute before", "s e o", fit=Fit("s", "e", MINUTE)),
    script("not sanitised", "e o", (ENTERING, "e")),
    script(
        "sanitised more than a minute before",
        "s e o",
        (ENTERING, "e"),
        fit=Fit("s", "e", MINUTE + MILLISECOND),
    ),
    script("sanitised after entering", "e s o", (ENTERING, "e")),
    script("a colleague sanitised", "s' e o", (ENTERING, "e")),
    script("washed and dried, not sanitised", "w d e o", (ENTERING, "e")),
)
"""From the ward into an operating room."""

TRIPS = repertoire(
    script("washed after a break", "o b w d s e o2"),
    script("washed after a patient", "o p w d s e o2"),
    script("washed after a break and a patient", "o b p w d s e o2"),
    script("dried too soon, then washed and dried", "o b d w d2 s e o2"),
    script("washed twice, dried once", "o p w w2 d s e o2"),
    script("washed beside a colleague who did not dry", "o b w w' d s e o2"),
    script("nowhere but at the station", "o s e o2"),
    script("unwashed, more than a minute away", "o b s e o2", fit=Fit("o", "o2", MINUTE + MILLISECOND)),
    script("unwashed, long away", "o p s e o2", fit=Fit("o", "o2", 3 * MINUTE)),
    script("not washed after a break", "o b s e o2", (BREAK, "o b o2")),
    script("not washed after a patient", "o p s e o2", (BREAK, "o p o2")),
    script("not washed, a minute away", "o b s e o2", (BREAK, "o b o2"), fit=Fit("o", "o2", MINUTE)),
    script("not dried", "o b w s e o2", (BREAK, "o b o2")),
    script("not washed but dried", "o p d s e o2", (BREAK, "o p o2")),
    script("dried before washing", "o p d w s e o2", (BREAK, "o p o2")),
    script("a colleague washed", "o b w' d' s e o2", (BREAK, "o b o2")),
    script("a colleague dried", "o b w d' s e o2", (BREAK, "o b o2")),
    script("washed before the break", "o w d b s e o2", (BREAK, "o b o2")),
    script("washed, then with a patient", "o b w d p s e o2", (BREAK, "o p o2")),
    script("a patient between washing and drying", "o b w p d s e o2", (BREAK, "o p o2")),
    script("not washed after a break and a patient", "o b p s e o2", (BREAK, "o b o2"), (BREAK, "o p o2")),
    script("washed, not sanitised", "o b w d e o2", (ENTERING, "e")),
    script("neither washed nor sanitised", "o p e o2", (BREAK, "o p o2"), (ENTERING, "e")),
)
"""Out of an operating room and back."""

LEAVES = repertoire(
    script("off to a patient", "o p w d"),
    script("off to a break", "o w d b"),
    script("off to two patients", "o p w d p2"),
)
"""Out of an operating room for longer."""

ROUNDS = repertoire(
    script("two patients", "p w d p2 w2 d2"),
    script("a break", "b w d"),
    script("a patient, unwashed, and a break", "p b"),
    script("sanitised and turned away", "s p"),
)
"""On the ward."""
