"""The query generator that goes with the SASE stream: query text from the parameters of its Table 2."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nestream.data.columns import random_numbers, zipf_weights
from nestream.data.sase import DOMAINS, domain_sizes, type_names


def sase_query(
    length: int = 3,
    equivalence_tests: int = 1,
    inequalities: int = 0,
    simple: int = 0,
    negations: int = 0,
    window: int | str = 10_000,
    *,
    types: int = 20,
    theta: float = 0.0,
    attributes: Sequence[str] | None = None,
    domains: Sequence[int] = DOMAINS,
    negated_ends: bool = False,
    seed: int = 0,
) -> str:
    """A random query in the SASE dialect over different event types.

    The paper's L, EP, IP, SP, N and W are `length`, `equivalence_tests`, `inequalities` (between two positive
    events), `simple` (an attribute against a constant), `negations` and `window`. A number as the window
    counts events; text is used as it is ("600", "10 minutes"). `attributes` names what the tests may use,
    attr1, attr2, ... by default: equivalence tests take them in order, the others at random. With
    `negated_ends`, a negation may also be first or last.

    >>> print(sase_query(length=2, negations=1, attributes=["id"], seed=4))
    EVENT SEQ(S x1, !(T y1), J x2)
    WHERE [id]
    WITHIN 10000 EVENTS
    """
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")
    if min(equivalence_tests, inequalities, simple, negations) < 0:
        raise ValueError("the numbers of predicates and negations must not be negative")
    if length + negations > types:
        raise ValueError(f"{length} steps and {negations} negations need different types, there are {types}")
    if inequalities and length < 2:
        raise ValueError("an inequality needs two positive events, so a length of at least 2")
    if negations and length < 2 and not negated_ends:
        raise ValueError("a negation between two events needs a length of at least 2, or negated_ends")
    names = [f"attr{i + 1}" for i in range(len(domains))] if attributes is None else list(attributes)
    if equivalence_tests > len(names):
        raise ValueError(f"{equivalence_tests} equivalence tests need as many attributes, got {names}")
    random = random_numbers(seed)
    chosen = _different_types(random, length + negations, types, theta)
    components = [f"{name} x{i}" for i, name in enumerate(chosen[:length], start=1)]
    gaps = range(length + 1) if negated_ends else range(1, length)
    places = sorted((int(random.choice(gaps)) for _ in range(negations)), reverse=True)
    for number, place in zip(range(negations, 0, -1), places, strict=True):
        components.insert(place, f"!({chosen[length + number - 1]} y{number})")
    conjuncts = [f"[{name}]" for name in names[:equivalence_tests]]
    sizes = domain_sizes(len(names), domains)
    free = list(range(equivalence_tests, len(names))) or list(range(len(names)))
    for _ in range(inequalities):
        first = int(random.integers(1, length))
        name = names[free[int(random.integers(len(free)))]]
        conjuncts.append(f"x{first}.{name} {'<>'[int(random.integers(2))]} x{first + 1}.{name}")
    for _ in range(simple):
        pick = free[int(random.integers(len(free)))]
        constant = int(random.integers(1, sizes[pick] + 1))
        conjuncts.append(f"x{int(random.integers(1, length + 1))}.{names[pick]} < {constant}")
    lines = [f"EVENT SEQ({', '.join(components)})"]
    if conjuncts:
        lines.append("WHERE " + " ∧ ".join(conjuncts))
    lines.append(f"WITHIN {window} EVENTS" if isinstance(window, int) else f"WITHIN {window}")
    return "\n".join(lines)


def _different_types(random: np.random.Generator, count: int, types: int, theta: float) -> list[str]:
    """`count` different types, each drawn with its Zipf weight among the remaining ones."""
    names = list(type_names(types))
    weights = list(zipf_weights(types, theta))
    chosen = []
    for _ in range(count):
        at = float(random.random()) * sum(weights)
        pick = min(int(np.searchsorted(np.cumsum(weights), at, side="right")), len(names) - 1)
        chosen.append(names.pop(pick))
        weights.pop(pick)
    return chosen


def sase_selectivity(window: int, length: int, types: int, domain: int) -> float:
    """The expected matches per event of a query with one equivalence test over `domain` values.

    >>> round(sase_selectivity(window=10_000, length=3, types=20, domain=100), 2)
    0.21
    """
    return float(math.comb(window, length) / (types**length * domain ** (length - 1) * window))
