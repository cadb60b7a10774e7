"""The switches of single techniques of the papers' engine, and the memory that it may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from nestream.engine.program import MEMORY


@dataclass(frozen=True)
class Options:
    """Switches of single techniques, all of them on: what each is worth can be measured.

    - bounds: negations whose condition holds are bounds, not joins.
    - partition: the equivalence attribute leads the order of the stacks (PAIS).
    - reach: no dead ends; a prefix that cannot reach into the window is not extended.
    - ordering: joins start at the leaf and follow the order that promise the fewest rows.
    - narrowing: leaves are narrowed to the windows around the rarest leaf before anything is built.
    - once: a negation that is a join is looked at once for all matches that are alike to it.
    - push_in: predicates are tested as soon as their variables are bound, not on complete results.
    - shortcut: nested execution asks whether an outer value occurs inside before it looks at what is inside.
    - cost_in_time: the Plan-Finder groups flat expressions by time; off, by rows, as in its paper.

    Those of SASE's plans; the package `sase` runs a sequence for which one of them, or `reach`, is off:

    - stacks: sequences are constructed from active instance stacks (AIS), not from all that came in a window.
    - composite: several equivalence tests partition the stacks together; without, one does.
    - multiple: and the stacks of the others are intersected in the scan (Multi-PAIS).
    - filtering: equalities beside the partition are tested while sequences are constructed.
    - window_scan: stacks take, and keep, only what is in a window.
    - window_construction: construction stops where the window does.
    - simple: tests of single events are made when they arrive.
    - negation_index: negative events are looked up by time and key.
    """

    bounds: bool = True
    partition: bool = True
    reach: bool = True
    ordering: bool = True
    narrowing: bool = True
    once: bool = True
    push_in: bool = True
    shortcut: bool = True
    cost_in_time: bool = True
    stacks: bool = True
    composite: bool = True
    multiple: bool = True
    filtering: bool = True
    window_scan: bool = True
    window_construction: bool = True
    simple: bool = True
    negation_index: bool = True
    memory: int = MEMORY

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The switches, without what is a number."""
        return tuple(option.name for option in fields(cls) if option.type == "bool")


Switches: TypeAlias = Options | Mapping[str, Any]
"""Options, or by name those that are not as they are by default."""


def options_of(given: Switches | None) -> Options:
    """The options; raises for an unknown name, and lists the known ones."""
    if given is None or isinstance(given, Options):
        return given or Options()
    known = {option.name: option.type for option in fields(Options)}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"unknown option {name!r}: use one of {', '.join(known)}")
        wanted = bool if known[name] == "bool" else int
        if type(value) is not wanted:
            raise ValueError(f"the option {name} is {'True or False' if wanted is bool else 'a number'}")
        if wanted is int and value < 1:
            raise ValueError(f"the option {name} must be a number of at least 1, not {value!r}")
    return Options(**given)
