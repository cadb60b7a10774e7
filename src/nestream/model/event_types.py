"""The event types that a variable stands for: some names, or every type there is (`ANY x`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

ANY_TYPE = "\0any"
"""Stands among types for every type there is; no query text can name it."""


def fits(event_type: str, types: Collection[str]) -> bool:
    """Whether an event of a type can play a variable of some types."""
    return event_type in types or ANY_TYPE in types


def overlap(first: Collection[str], second: Collection[str]) -> bool:
    """Whether one event can be of both."""
    return ANY_TYPE in first or ANY_TYPE in second or not set(first).isdisjoint(second)


def shared_types(first: Collection[str], second: Collection[str]) -> frozenset[str]:
    """The types that both have; those of the one where the other has every type."""
    if ANY_TYPE in first:
        return frozenset(second)
    return frozenset(first if ANY_TYPE in second else set(first) & set(second))


def named_types(types: Iterable[str]) -> tuple[str, ...]:
    """The types that have names, each once."""
    return tuple(name for name in dict.fromkeys(types) if name != ANY_TYPE)


def said_types(types: Collection[str], joint: str = " or ") -> str:
    """The types to be read: `A or B`, `ANY` for every type."""
    return "ANY" if ANY_TYPE in types else joint.join(types)
