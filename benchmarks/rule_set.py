"""A rule set over the SASE stream: many queries that share their beginnings and their ends.

Each rule is a keyed sequence of three or four events: a prefix from a small pool, sometimes with a single or
nested negation, and a last event from another pool with its own selective test.
"""

from __future__ import annotations

import numpy as np

from nestream.data.columns import random_numbers
from nestream.data.sase import DOMAINS, domain_sizes, type_names

PREFIXES = 20
LASTS = 10


def rule_set(
    rules: int = 1_000,
    *,
    window: int | str = 600_000,
    types: int = 20,
    prefixes: int = PREFIXES,
    lasts: int = LASTS,
    test: str = "attr5",
    seed: int = 0,
) -> dict[str, str]:
    """The rules by name, the same for the same numbers.

    `test` is the attribute of each rule's last event that is compared with a constant; the larger its domain,
    the rarer the matches.

    >>> print(rule_set(2)["rule1"])
    PATTERN SEQ(F e1, !SEQ(P n1, N n2, n1.id = n2.id = l.id), Q e2, D l, e1.id = e2.id = l.id, l.attr5 = 6279)
    WITHIN 600000
    """
    if rules < 1 or prefixes < 1 or lasts < 1:
        raise ValueError("rules, prefixes and lasts must be at least 1")
    names = type_names(types)
    if types < 8:
        raise ValueError(f"types must be at least 8, got {types}")
    number = int(test.removeprefix("attr"))
    domain = domain_sizes(number, DOMAINS)[number - 1]
    random = random_numbers(seed)
    beginnings = [_prefix(random, names, place) for place in range(prefixes)]
    ends = [str(name) for name in random.choice(names, min(lasts, types), replace=False)]
    width = len(str(rules - 1))
    return {
        f"rule{place:0{width}d}": _rule(
            beginnings[int(random.integers(prefixes))],
            ends[int(random.integers(len(ends)))],
            f"l.{test} = {int(random.integers(domain))}",
            window,
        )
        for place in range(rules)
    }


def _prefix(random: np.random.Generator, names: tuple[str, ...], place: int) -> tuple[str, str]:
    """The first components of a rule, and the comparison of their ids."""
    a, b, c, x, y = (str(name) for name in random.choice(names, 5, replace=False))
    match place % 4:
        case 0:
            return f"{a} e1, {b} e2", "e1.id = e2.id"
        case 1:
            return f"{a} e1, !({x} n1, n1.id = l.id), {b} e2", "e1.id = e2.id"
        case 2:
            nested = f"!SEQ({x} n1, {y} n2, n1.id = n2.id = l.id)"
            return f"{a} e1, {nested}, {b} e2", "e1.id = e2.id"
        case _:
            return f"{a} e1, {b} e2, {c} e3", "e1.id = e2.id = e3.id"


def _rule(prefix: tuple[str, str], last: str, test: str, window: int | str) -> str:
    components, ids = prefix
    return f"PATTERN SEQ({components}, {last} l, {ids} = l.id, {test})\nWITHIN {window}"
