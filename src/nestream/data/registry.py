"""The generators by name, for the command line and for everything that takes the name of a data set."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from nestream.data import coldchain, hospital, retail, sase, stock


@dataclass(frozen=True)
class Generator:
    """A data set that can be generated: its description, its columns, and how to generate it."""

    name: str
    description: str
    columns: Mapping[str, str]
    """Column name to its type and meaning."""
    types: Mapping[str, tuple[str, ...]]
    """Event type to the attributes it has; the others are NULL."""
    function: Callable[..., pa.Table]
    sample: Mapping[str, Any] | None = None
    """The parameters of the bundled sample, if there is one."""
    defaults: Mapping[str, Any] = field(init=False)
    """Default values of the parameters, including `events` and `seed`."""

    def __post_init__(self) -> None:
        parameters = inspect.signature(self.function).parameters
        object.__setattr__(self, "defaults", {name: p.default for name, p in parameters.items()})

    def __call__(self, **parameters: Any) -> pa.Table:
        """Generate with the given parameters; an unknown one is an error that lists the known ones."""
        for name in parameters:
            if name not in self.defaults:
                raise ValueError(
                    f"{self.name} has no parameter {name!r}{did_you_mean(name, self.defaults)}; "
                    f"it takes {', '.join(self.defaults)}"
                )
        return self.function(**parameters)


GENERATORS: dict[str, Generator] = {
    generator.name: generator
    for generator in (
        Generator(
            "stock",
            "stock trades, the ticker is the event type",
            stock.COLUMNS,
            stock.TYPES,
            stock.stock,
            sample={"events": 400, "seed": 2, "amounts": 40, "accounts": 10},
        ),
        Generator(
            "hospital",
            "cycles of tagged instruments and hand hygiene of workers",
            hospital.COLUMNS,
            hospital.TYPES,
            hospital.hospital,
            sample={"events": 300, "seed": 104, "violations": 0.3, "instruments": 60, "workers": 2},
        ),
        Generator(
            "retail",
            "readings of tagged products at shelves, counters and exits",
            retail.COLUMNS,
            retail.TYPES,
            retail.retail,
            sample={"events": 300, "seed": 3, "rate": 2.0, "stolen": 0.04, "misplaced": 0.04},
        ),
        Generator(
            "sase",
            "synthetic stream with a chosen number of types, attributes and values",
            sase.COLUMNS,
            dict.fromkeys(sase.type_names(20), ("id", "attr1", "attr2", "attr3", "attr4", "attr5")),
            sase.sase,
        ),
        Generator(
            "coldchain",
            "temperature of medical shipments at every stop",
            coldchain.COLUMNS,
            coldchain.TYPES,
            coldchain.coldchain,
            sample={"events": 200, "seed": 5, "unsafe": 0.1},
        ),
    )
}


def find(name: str) -> Generator:
    """The generator of that name; raises a ValueError that lists the names."""
    if name not in GENERATORS:
        raise ValueError(
            f"no data set is called {name!r}{did_you_mean(name, GENERATORS)}; "
            f"the data sets are {', '.join(GENERATORS)}"
        )
    return GENERATORS[name]


def generate(name: str, events: int | None = None, seed: int = 0, **parameters: Any) -> pa.Table:
    """Generate a data set by name: a table ordered by `ts`, the same for the same parameters.

    >>> generate("stock", events=5, seed=1).num_rows
    5
    """
    if events is not None:
        parameters["events"] = events
    return find(name)(seed=seed, **parameters)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is most like an unknown one, as a question; empty if none is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
