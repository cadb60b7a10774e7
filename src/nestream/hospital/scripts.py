"""Scripts: the steps of one episode of a worker or an instrument, and the rules it breaks.

A step is a letter for what is done, then digits if it is repeated, then `'` if a colleague does it: `o b w'
d' s e o2`. What a script breaks is written by hand, never computed by matching: a rule and the steps of the
match, in the order of the rule's variables. Only time is left open: a match counts if its steps lie within
the window of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

MILLISECOND = 1
SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

ENTERING = "hygiene-before-entering"
BREAK = "break-without-washing"
SURGICAL = "contaminated-surgical-instrument"
UNFINISHED = "unfinished-instrument"
TOUCHED = "touched-after-disinfection"
ANOTHER_ROOM = "sharpened-in-another-room"
WINDOWS = {
    ENTERING: MINUTE,
    BREAK: MINUTE,
    SURGICAL: HOUR,
    UNFINISHED: HOUR,
    TOUCHED: HOUR,
    ANOTHER_ROOM: 10 * MINUTE,
}
"""The longest span of a match of each rule."""


@dataclass(frozen=True)
class Breach:
    """A match that a script is expected to have."""

    rule: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Fit:
    """The time between two steps, if a script depends on it."""

    first: str
    last: str
    milliseconds: int


@dataclass(frozen=True)
class Script:
    """One episode: what is done, in which order, and what that breaks."""

    name: str
    steps: tuple[str, ...]
    breaches: tuple[Breach, ...] = ()
    fit: Fit | None = None

    def __post_init__(self) -> None:
        named = {step for breach in self.breaches for step in breach.steps}
        if self.fit is not None:
            named |= {self.fit.first, self.fit.last}
        if len(set(self.steps)) < len(self.steps) or not named <= set(self.steps):
            raise ValueError(f"the script {self.name!r} names a step twice, or one that it does not have")

    @property
    def with_colleague(self) -> bool:
        """Whether a colleague does some step."""
        return any(step.endswith("'") for step in self.steps)


def script(name: str, steps: str, *breaches: tuple[str, str], fit: Fit | None = None) -> Script:
    """A script in short form: `script("not dried", "o b w s e o2", (BREAK, "o b o2"))`."""
    broken = tuple(Breach(rule, tuple(match.split())) for rule, match in breaches)
    return Script(name, tuple(steps.split()), broken, fit)


@dataclass(frozen=True)
class Repertoire:
    """Scripts for one situation; those that break a rule are separate from the others."""

    honest: tuple[Script, ...]
    violating: tuple[Script, ...]

    def choose(self, random: Random, violations: float) -> Script:
        """Choose a script; one that breaks a rule as often as wanted, if there is one."""
        if self.violating and random.random() < violations:
            return random.choice(self.violating)
        return random.choice(self.honest)

    @property
    def scripts(self) -> tuple[Script, ...]:
        """All of them."""
        return self.honest + self.violating


def repertoire(*scripts: Script) -> Repertoire:
    """A repertoire of scripts."""
    return Repertoire(
        tuple(one for one in scripts if not one.breaches), tuple(one for one in scripts if one.breaches)
    )


@dataclass(frozen=True)
class Planted:
    """A match that must be found: the rule, and the numbers of its events."""

    query: str
    events: tuple[int, ...]
    what: str
    """The name of the script."""
    who: str
    """The worker or the instrument."""

    def as_json(self) -> dict[str, object]:
        """A line of the ground truth."""
        return {"query": self.query, "events": list(self.events), "what": self.what, "who": self.who}


def fitted(times: list[int], steps: Sequence[str], fit: Fit) -> list[int]:
    """Times with the span that a script requires; the steps between keep their proportions.

    >>> fitted([0, 10, 30, 40], ["o", "b", "o2", "x"], Fit("o", "o2", 60))
    [0, 20, 60, 70]
    """
    first, last = steps.index(fit.first), steps.index(fit.last)
    start, span = times[first], times[last] - times[first]
    between = [start + (time - start) * fit.milliseconds // span for time in times[first:last]]
    after = [time + fit.milliseconds - span for time in times[last:]]
    return [*times[:first], *between, *after]
