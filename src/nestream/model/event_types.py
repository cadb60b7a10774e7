"""The event types of a variable: some names, or every type (`ANY x`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

ANY_TYPE = "\0any"
"""Stands for every type; no query text can name it."""


def fits(event_type: str, types: Collection[str]) -> bool:
    """Whether a variable of some types can bind an event of a type."""
    return event_type in types or ANY_TYPE in types


def overlap(first: Collection[str], second: Collection[str]) -> bool:
    """Whether one event can have a type of both."""
    return ANY_TYPE in first or ANY_TYPE in second or not set(first).isdisjoint(second)


def shared_types(first: Collection[str], second: Collection[str]) -> frozenset[str]:
    """The types that both have; those of one if the other has every type."""
    if ANY_TYPE in first:
        return frozenset(second)
    return frozenset(first if ANY_TYPE in second else set(first) & set(second))


def named_types(types: Iterable[str]) -> tuple[str, ...]:
    """The types with names, each once."""
    return tuple(name for name in dict.fromkeys(types) if name != ANY_TYPE)


def said_types(types: Collection[str], joint: str = " or ") -> str:
    """The types as text: `A or B`, or `ANY` for every type."""
    return "ANY" if ANY_TYPE in types else joint.join(types)
