"""A store with tagged products: readings at shelves, checkout counters and exits.

Every product is read on its own shelf once or twice. Most are then paid and leave, some stay. Planted
are products that leave unpaid (`stolen`), that end on another shelf (`misplaced`), and, so that a query
has something to tell apart, products that are carried to another shelf and paid. The whole path of a
product takes less than an hour.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nestream.data.columns import (
    MINUTE,
    check_events,
    check_fraction,
    earliest,
    numbers,
    random_numbers,
    table,
    timestamps,
    words,
)

START = "2026-01-05T09:00:00"
_PRODUCT = ("id", "category", "manufacturer_id")
TYPES = {
    "SHELF-READING": (*_PRODUCT, "shelf_id"),
    "COUNTER-READING": _PRODUCT,
    "EXIT-READING": _PRODUCT,
}
COLUMNS = {
    "ts": "timestamp[ms]: time of the reading",
    "type": "text: SHELF-READING, COUNTER-READING or EXIT-READING",
    "id": "int64: the product's tag",
    "category": "text: food, clothing, toys or electronics",
    "manufacturer_id": "int64: 1 to 20",
    "shelf_id": "int64: the shelf of a SHELF-READING, NULL for the other types",
}
_CATEGORIES = ("food", "clothing", "toys", "electronics")
_SHELVES = 8  # of each category
_STEPS = np.array([0, 0, 0, 1, 2])  # own shelf, own shelf again, another shelf, counter, exit


def retail(
    events: int = 10_000,
    seed: int = 0,
    *,
    rate: float = 30.0,
    stolen: float = 0.01,
    misplaced: float = 0.01,
    manufacturers: int = 20,
) -> pa.Table:
    """Generate readings of a store at about `rate` events per minute.

    `stolen`, `misplaced`: fractions of the products.

    >>> retail(3).column_names
    ['ts', 'type', 'id', 'category', 'manufacturer_id', 'shelf_id']
    """
    check_events(events)
    check_fraction("stolen + misplaced", stolen + misplaced)
    if rate <= 0:
        raise ValueError(f"rate must be positive, got {rate}")
    random = random_numbers(seed)
    products = events // 2 + 1  # every product is read at least twice
    span = max(1, int(events / rate * MINUTE))
    fate = random.random(products)
    is_stolen = fate < stolen
    is_misplaced = ~is_stolen & (fate < stolen + misplaced)
    other = random.random(products)
    normal = ~is_stolen & ~is_misplaced
    is_carried = normal & (other < 0.02)
    is_sold = normal & ~is_carried & (other < 0.8)
    present = np.column_stack(
        (
            np.ones(products, bool),
            (random.random(products) < 0.5) | (normal & ~is_carried & ~is_sold),
            is_misplaced | is_carried,
            is_sold | is_carried,
            is_sold | is_carried | is_stolen,
        )
    )
    start = np.sort(random.integers(0, max(1, int(span * products * 3.2 / max(1, events))), products))
    gaps = random.integers(MINUTE, 10 * MINUTE, (products, 5))
    gaps[:, 0] = 0
    time = start[:, None] + np.cumsum(gaps, axis=1)
    category = random.integers(0, len(_CATEGORIES), products)
    home = category * _SHELVES + random.integers(0, _SHELVES, products)
    elsewhere = (home + random.integers(1, len(_CATEGORIES) * _SHELVES, products)) % (
        len(_CATEGORIES) * _SHELVES
    )
    shelf = np.tile(1 + home[:, None], (1, 5))
    shelf[:, 2] = 1 + elsewhere
    maker = random.integers(1, manufacturers + 1, products)
    row, step = np.nonzero(present)
    order = earliest(time[row, step], events)
    row, step = row[order], step[order]
    kind = _STEPS[step]
    return table(
        {
            "ts": timestamps(START, time[row, step]),
            "type": words(kind, tuple(TYPES)),
            "id": numbers(row + 1),
            "category": words(category[row], _CATEGORIES),
            "manufacturer_id": numbers(maker[row]),
            "shelf_id": numbers(shelf[row, step], present=kind == 0),
        }
    )
