"""Hospital events as a table: the first events of the ward that `nestream.hospital` simulates.

The scripts of the simulator define the episodes of workers and instruments, and the rules they break.
`Washing` occurs with both: of tools (`id`) and hands (`wID`).
"""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from nestream.data.columns import check_events, check_fraction
from nestream.hospital import FLOOR, simulate
from nestream.hospital.cycles import INSTRUMENT_TYPES

_TOOL = ("id", "ins-type", "room")
_WORKER = ("wID", "room")
TYPES = {
    "Recycle": _TOOL,
    "Washing": ("id", "ins-type", "wID", "room"),
    "Sharpening": _TOOL,
    "Disinfection": _TOOL,
    "Checking": _TOOL,
    "Operating": _TOOL,
    "Sanitize-Area": _WORKER,
    "Enter-Operating-Room": _WORKER,
    "Operating Room": _WORKER,
    "Break Room": _WORKER,
    "Patient Room": _WORKER,
    "Drying": _WORKER,
    "Hall": _WORKER,
}
COLUMNS = {
    "ts": "timestamp[ms]: time of the event",
    "type": "text: the step",
    "id": "int64: the instrument, NULL for events of workers",
    "ins-type": "text: surgery, dental or endoscopy, NULL for events of workers",
    "wID": "int64: the worker, NULL for events of instruments",
    "room": "text: where it happened",
}
_PLAIN = {"ts": pa.timestamp("ms"), "id": pa.int64(), "wID": pa.int64()}
_WORDS = {
    "type": tuple(TYPES),
    "ins-type": tuple(dict.fromkeys(INSTRUMENT_TYPES)),
    "room": tuple(room.name for room in FLOOR.rooms),
}


def hospital(
    events: int = 10_000,
    seed: int = 0,
    *,
    violations: float = 0.05,
    instruments: int = 60,
    workers: int = 12,
) -> pa.Table:
    """Generate instrument and hygiene events; `violations` is the fraction of episodes that break a rule.

    >>> hospital(3).column_names
    ['ts', 'type', 'id', 'ins-type', 'wID', 'room']
    """
    check_events(events)
    check_fraction("violations", violations)
    ward = simulate(seed, workers=workers, instruments=instruments, violations=violations)
    rows = [moment.event for moment in islice(ward, events)]
    return pa.table({name: _column(name, [row[name] for row in rows]) for name in COLUMNS})


def _column(name: str, values: list[object]) -> pa.Array:
    if name in _PLAIN:
        return pa.array(values, _PLAIN[name])
    numbers = {word: number for number, word in enumerate(_WORDS[name])}
    codes = pa.array([None if value is None else numbers[str(value)] for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(_WORDS[name], pa.string()))
