"""Cold-chain transport: shipments of medical goods with the temperature measured at every stop.

A shipment leaves a distribution center, passes a hospital, a nursing home, both or neither, and ends at
a drug store within five hours. Cooled goods stay between 2.0 and 4.9 degrees; of the planted unsafe
shipments the cooling fails on the way and every later stop measures 8.0 degrees or more.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nestream.data.columns import (
    HOUR,
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

START = "2026-01-05T05:00:00"
TYPES = dict.fromkeys(("Distribution-Center", "Hospital", "NursingHome", "DrugStore"), ("id", "temperature"))
COLUMNS = {
    "ts": "timestamp[ms]: time of arrival at the stop",
    "type": "text: Distribution-Center, Hospital, NursingHome or DrugStore",
    "id": "int64: the shipment",
    "temperature": "float64: degrees Celsius",
}


def coldchain(
    events: int = 10_000,
    seed: int = 0,
    *,
    rate: float = 40.0,
    unsafe: float = 0.03,
) -> pa.Table:
    """Generate stops of shipments at about `rate` events per hour; `unsafe` is the fraction that warms up.

    >>> coldchain(3).column_names
    ['ts', 'type', 'id', 'temperature']
    """
    check_events(events)
    check_fraction("unsafe", unsafe)
    if rate <= 0:
        raise ValueError(f"rate must be positive, got {rate}")
    random = random_numbers(seed)
    shipments = events // 2 + 1  # every shipment has at least two stops
    start = np.sort(random.integers(0, max(1, int(shipments * 2.9 / rate * HOUR)), shipments))
    route = random.random(shipments)
    visits = np.column_stack(
        (
            np.ones(shipments, bool),
            (route < 0.5) | (route > 0.9),  # hospital
            (route > 0.45) & (route < 0.9),  # nursing home
            np.ones(shipments, bool),
        )
    )
    gaps = random.integers(20 * MINUTE, 90 * MINUTE, (shipments, 4))
    gaps[:, 0] = 0
    time = start[:, None] + np.cumsum(gaps, axis=1)
    fails_at = np.where(random.random(shipments) < unsafe, random.integers(1, 4, shipments), 4)
    warm = np.arange(4)[None, :] >= fails_at[:, None]
    cold = random.integers(20, 50, (shipments, 4))
    tenths = np.where(warm, random.integers(80, 150, (shipments, 4)), cold)
    row, stop = np.nonzero(visits)
    order = earliest(time[row, stop], events)
    row, stop = row[order], stop[order]
    return table(
        {
            "ts": timestamps(START, time[row, stop]),
            "type": words(stop, tuple(TYPES)),
            "id": numbers(row + 1),
            "temperature": numbers(tenths[row, stop] / 10),
        }
    )
