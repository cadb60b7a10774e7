"""The words of the language with a sentence on each, for completion, hover and lexers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nestream.model.aggregates import AGGREGATES
from nestream.model.functions import FUNCTIONS


@dataclass(frozen=True)
class Word:
    """A keyword: what it does, an example, and the terminals of the grammar that stand for it.

    A soft word is a keyword only in its place; elsewhere it is a name like any other.
    """

    name: str
    text: str
    example: str
    soft: bool = False
    terminal: str = ""

    @property
    def accepted_as(self) -> str:
        """The terminal of the grammar."""
        return self.terminal or self.name


@dataclass(frozen=True)
class Called:
    """What a query can call: a function of the registry or an aggregate over a group."""

    name: str
    signature: str
    text: str
    example: str = ""
    aggregate: bool = False


KEYWORDS: Final = {
    word.name: word
    for word in (
        Word("PATTERN", "Begins a query. You can leave it out.", "PATTERN SEQ(A a, B b) WITHIN 1 hour"),
        Word("EVENT", "Begins a query in the SASE dialect.", "EVENT SEQ(A a, B b) WHERE [id] WITHIN 1 hour"),
        Word("WHERE", "Conditions on the whole match.", "WHERE a.id = b.id AND b.price > 10"),
        Word(
            "WITHIN",
            "The window: the longest time, or number of events, from the first event of a match to the last.",
            "WITHIN 1 hour",
        ),
        Word("RETURN", "What a match shows: variables and named values.", "RETURN a, b.price AS price"),
        Word("LIMIT", "Returns any so many matches.", "LIMIT 10"),
        Word("SEQ", "All components, one after the other in time.", "SEQ(A a, !B b, C c)"),
        Word("AND", "All components, in any order; or both of two conditions.", "AND(A a, B b)"),
        Word("OR", "One of the components; or one of two conditions.", "OR(A a, SEQ(B b, C c))"),
        Word("NOT", "Nothing that matches may occur here; or the contrary of a condition.", "NOT Washing w"),
        Word("ANY", "An event of one of several types, or of any type.", "ANY(Email, Call) x"),
        Word("EXISTS", "Requires variables without showing them.", "EXISTS b : SEQ(A a, B b)"),
        Word("IN", "Whether a value is one of a list.", "a.x IN (1, 2)"),
        Word("BETWEEN", "Whether a value lies in a range, both ends included.", "a.x BETWEEN 5 AND 7"),
        Word("IS", "Tests for NULL.", "a.x IS NOT NULL"),
        Word("NULL", "No value.", "a.x IS NULL"),
        Word("TRUE", "The truth value.", "a.paid = TRUE"),
        Word("FALSE", "The truth value.", "a.paid = FALSE"),
        Word("AS", "Names a value of RETURN.", "RETURN o.id AS tool"),
        Word("NEXT", "The first event that could serve in this place.", "SEQ(Login l, NEXT Click c)", True),
        Word("DIRECTLY", "No event in between.", "SEQ(Login l, DIRECTLY Logout o)", True),
        Word(
            "KEEP",
            "Keeps some of the matches: FIRST, LAST, LONGEST, SHORTEST or DISJOINT ones.",
            "KEEP FIRST PER a.user EVERY 1 hour",
            True,
        ),
        Word("FIRST", "Keeps the match that ends first.", "KEEP FIRST PER a.user", True, "KEPT"),
        Word("LAST", "Keeps the match that ends last.", "KEEP LAST PER a.user", True, "KEPT"),
        Word("LONGEST", "Keeps the longest match.", "KEEP LONGEST PER a.user", True, "KEPT"),
        Word("SHORTEST", "Keeps the shortest match.", "KEEP SHORTEST PER a.user", True, "KEPT"),
        Word("DISJOINT", "Keeps matches that do not overlap.", "KEEP DISJOINT PER a.user", True, "KEPT"),
        Word("PER", "Keeps matches for each of these values.", "KEEP FIRST PER a.user", True),
        Word("EVERY", "Keeps the next match only after this time.", "KEEP FIRST EVERY 1 hour", True),
        Word("INTO", "Makes each match an event of this type.", "RETURN o.id AS id INTO Violation", True),
        Word("LIKE", "Compares a text with a pattern of `%` and `_`.", "a.name LIKE 'n%'", True),
        Word("MATCHES", "Searches a text for a regular expression.", "a.name MATCHES '^n'", True),
        Word("CASE", "A value that depends on conditions.", "CASE WHEN a.x > 9 THEN 'high' END", True),
        Word("WHEN", "A condition of CASE.", "CASE WHEN a.x > 9 THEN 'high' END", True),
        Word("THEN", "The value where the condition holds.", "CASE WHEN a.x > 9 THEN 'high' END", True),
        Word("ELSE", "The value where no condition holds.", "CASE WHEN a.x > 9 THEN 1 ELSE 0 END", True),
        Word("END", "Ends CASE.", "CASE WHEN a.x > 9 THEN 'high' END", True, "CASE_END"),
        Word("DISTINCT", "Counts different values.", "COUNT(DISTINCT f.ip)", True),
        Word("UNBOUNDED", "No window. The query keeps every event.", "WITHIN UNBOUNDED", True, "NAME"),
        Word("EVENTS", "A window of so many events.", "WITHIN 100 EVENTS", True, "NAME"),
        Word("INTERVAL", "A duration as SQL writes it.", "WITHIN INTERVAL '1' HOUR", True, "NAME"),
        Word("TIMESTAMP", "A point in time.", "TIMESTAMP '2026-01-05 07:00:00'", True, "NAME"),
        Word("DATE", "Midnight of a day.", "DATE '2026-01-05'", True, "NAME"),
    )
}
"""The keywords by name. Those of the terminal NAME are names to the grammar."""

UNITS: Final = ("us", "ms", "s", "minutes", "hours", "days", "weeks")
"""The units of time, as the printer writes them."""

_PREVIOUS: Final = Called(
    "PREV",
    "PREV(group.attribute[, first])",
    "the value of the member before, in an aggregate",
    "EVERY(b.x > PREV(b.x, a.x))",
    aggregate=True,
)


def called() -> dict[str, Called]:
    """Everything that a query can call, by its name in lower case: your own functions too."""
    found = {
        name: Called(name, known.signature, known.text, known.example)
        for name, known in FUNCTIONS.items()
        if name.isidentifier() and not known.is_word and not known.is_implicit
    }
    for name, aggregate in AGGREGATES.items():
        shown = name.upper()
        taken = "condition" if name == "every" else "group.attribute"
        taken = "group | [DISTINCT] group.attribute" if name == "count" else taken
        found[name] = Called(shown, f"{shown}({taken})", aggregate.text, aggregate=True)
    found["prev"] = _PREVIOUS
    return found
