"""Shapes and statistics for the tests, written as short texts: `A !X B (!Y,Z) C`."""

from collections.abc import Mapping
from random import Random

from nestream.model.time import Window, WindowKind
from nestream_papers.optimize.shape import Constraint, Shape, Step
from nestream_papers.optimize.statistics import Statistics

MIXED = (
    "MSFT !IPIX ORCL INTC",
    "MSFT !QQQ ORCL INTC",
    "MSFT !RIMM ORCL INTC",
    "RIMM DELL AMAT MSFT ORCL",
    "IPIX DELL AMAT MSFT ORCL",
    "CSCO !RIMM YHOO QQQ",
    "CSCO (!IPIX,RIMM) YHOO QQQ",
)
"""The mixed workload of section VI.F: E1 to E7."""


def shape(text: str, *, window: int = 100, owner: str = "", name: str = "E") -> Shape:
    """A sequence: `!X` is a negated event, `(!X,Y)` a latest Y with no X before it."""
    steps: list[Step] = []
    constraints: list[Constraint] = []
    for word in text.split():
        if word[0] not in "!(":
            steps.append(Step((word,)))
            continue
        inside = word.strip("()").split(",")
        absent = tuple(Step((kind[1:],)) for kind in inside if kind.startswith("!"))
        chain = tuple(Step((kind,)) for kind in inside if not kind.startswith("!"))
        gap = len(steps)
        constraints.append(Constraint(gap, word, absent, chain, gap - 1, gap))
    names = tuple(step.label for step in steps)
    size = Window(WindowKind.NUMBER, window)
    return Shape(name, tuple(steps), tuple(constraints), (), names, size, owner=owner)


def shapes(*texts: str, window: int = 100) -> list[Shape]:
    """Several sequences of one query."""
    return [shape(text, window=window, name=f"E{number}") for number, text in enumerate(texts, 1)]


def steady(shares: Mapping[str, float], events: int = 100_000) -> Statistics:
    """One event a unit of time, the types in these shares."""
    return Statistics(0.0, float(events), {kind: events * share for kind, share in shares.items()})


def random_set(random: Random, size: int, window: int = 20) -> list[Shape]:
    """Sequences that overlap here and there, with constraints here and there."""
    common = [random.choice("ABCDEF") for _ in range(6)]
    found = []
    for number in range(size):
        length = random.randint(2, 5)
        first = random.randint(0, 6 - length)
        kinds = common[first : first + length]
        if random.random() < 0.3:
            kinds[random.randrange(length)] = random.choice("ABCDEF")
        words = []
        for place, kind in enumerate(kinds):
            if place and random.random() < 0.35:
                words.append(random.choice(["!X", "!Y", "(!X,Y)", "(!Y,X,Z)"]))
            words.append(kind)
        found.append(shape(" ".join(words), window=window, name=f"E{number + 1}"))
    return found
