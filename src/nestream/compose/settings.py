"""The settings of the methods of queries and sets: how events are read and how a query runs."""

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
        """The settings from keyword arguments; raises for an unknown name."""
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
        """The schema of events with these columns; a mapping by type declares the attributes of types."""
        types = self.types or attributes_by_type(events)
        return Schema.of(columns, self.time, self.type, types, self.order)

    def without_reference(self, why: str) -> None:
        """Raise if the reference evaluator is chosen and cannot run."""
        if self.strategy == "reference":
            raise ValueError(f"the reference evaluator {why}")


DEFAULTS = Settings()


def known_threads(threads: int | None) -> int:
    """The number of threads; by default one for each core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads!r}")
    return threads
