"""The synthetic stream of the SASE paper: T event types, A attributes, and an id to join on.

Integer columns take the narrowest width that holds their domain, so that twenty million events fit in
memory with ease.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from nestream.data.columns import (
    check_events,
    numbers,
    random_numbers,
    skewed,
    small_integer,
    table,
    timestamps,
    words,
)

START = "2026-01-05T00:00:00"
DOMAINS = (10, 50, 250, 1_000, 10_000)
LETTERS = "ABCDEFGHIJKLMNOPQRST"
COLUMNS = {
    "ts": "int64, or timestamp[ms] with clock='timestamp': strictly increasing",
    "type": "text: A to T, then T20, T21, ...",
    "id": "integer: uniform, 0 to id_domain-1",
    "attr1 .. attrA": "integer: uniform, 0 to the attribute's domain-1",
}


def type_names(types: int) -> tuple[str, ...]:
    """The names of the first `types` event types: twenty letters, then numbers.

    >>> type_names(22)[-3:]
    ('T', 'T20', 'T21')
    """
    if types < 1:
        raise ValueError(f"types must be at least 1, got {types}")
    return tuple(LETTERS[i] if i < len(LETTERS) else f"T{i}" for i in range(types))


def domain_sizes(attributes: int, domains: Sequence[int]) -> tuple[int, ...]:
    """One domain size for each attribute: the given ones, repeated as often as needed."""
    if attributes < 0:
        raise ValueError(f"attributes must not be negative, got {attributes}")
    if attributes and (not domains or min(domains) < 1):
        raise ValueError("domains must hold one size of at least 1 for each attribute")
    return tuple(domains[i % len(domains)] for i in range(attributes))


def sase(
    events: int = 10_000,
    seed: int = 0,
    *,
    types: int = 20,
    theta: float = 0.0,
    attributes: int = 5,
    domains: Sequence[int] = DOMAINS,
    id_domain: int = 1_000,
    step: int = 10,
    clock: Literal["integer", "timestamp"] = "integer",
) -> pa.Table:
    """Generate the stream; parameters T, theta1, A and V_i are `types`, `theta`, `attributes`, `domains`.

    `theta`: Zipf parameter of the types, 0 is uniform. `step`: mean time between two events, uniform on
    1 .. 2*step-1; milliseconds where `clock` is "timestamp".

    >>> sase(3, attributes=1).column_names
    ['ts', 'type', 'id', 'attr1']
    """
    check_events(events)
    if step < 1:
        raise ValueError(f"step must be at least 1, got {step}")
    if clock not in ("integer", "timestamp"):
        raise ValueError(f"clock must be 'integer' or 'timestamp', got {clock!r}")
    names = type_names(types)
    random = random_numbers(seed)
    steps = random.integers(1, 2 * step, events, dtype=small_integer(2 * step))
    time = np.cumsum(steps, dtype=np.int64)
    columns: dict[str, Any] = {
        "ts": numbers(time) if clock == "integer" else timestamps(START, time),
        "type": words(skewed(random, types, theta, events, small_integer(types)), names),
        "id": numbers(skewed(random, id_domain, 0, events, small_integer(id_domain))),
    }
    for number, domain in enumerate(domain_sizes(attributes, domains), start=1):
        columns[f"attr{number}"] = numbers(skewed(random, domain, 0, events, small_integer(domain)))
    return table(columns)
