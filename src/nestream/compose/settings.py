"""The part of the composer that reads settings: how the methods of queries and sets read events and run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict

import pyarrow as pa

from nestream.model.columns import attributes_by_type
from nestream.model.schema import Order, Schema
from nestream.strategies import Options, known_options, known_strategy


class How(TypedDict, total=False):
    """The settings as keyword arguments."""

    time: str
    type: str
    types: Mapping[str, Iterable[str]] | None
    order: str
    strategy: str
    options: Options | None


@dataclass(frozen=True)
class Settings:
    """How events are read and a query is run: the settings of `match`, checked."""

    time: str = "ts"
    type: str = "type"
    types: Mapping[str, Iterable[str]] | None = None
    order: str = "time"
    strategy: str = "auto"
    options: Options | None = None

    def __post_init__(self) -> None:
        Order.named(self.order)
        known_strategy(self.strategy)
        known_options(self.options)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """The settings that were given by name; raises for a name that is none."""
        known = cls.names()
        unknown = [name for name in given if name not in known]
        if unknown:
            raise TypeError(f"unknown argument {unknown[0]!r}: use one of {', '.join(known)}")
        return cls(**given)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(field.name for field in fields(cls))

    def schema(self, columns: pa.Schema, events: Any = None) -> Schema:
        """What events of these columns look like; a mapping of events by type says which types have which."""
        types = self.types or attributes_by_type(events)
        return Schema.of(columns, self.time, self.type, types, self.order)

    def without_reference(self, why: str) -> None:
        """Raise where the reference evaluator is asked for and cannot run."""
        if self.strategy == "reference":
            raise ValueError(f"the reference evaluator {why}")


DEFAULTS = Settings()


def known_threads(threads: int | None) -> int:
    """The number of threads that is asked for, one for each core that this process may use by default."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads!r}")
    return threads
