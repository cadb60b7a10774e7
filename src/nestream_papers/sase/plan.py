"""Assigns the parts of a query to the operators of SASE's plan, as the switches say.

An equivalence test is an equality on one attribute of all events of a sequence. It partitions the stacks,
filters in the scan beside another that does (Multi-PAIS), filters while sequences are constructed (dynamic
filtering), or selects among complete ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from nestream.engine.program import Equality
from nestream_papers.engine.program import Block
from nestream_papers.options import Options

Equivalence = Mapping[str, str]
"""An equivalence test: for each variable, the attribute that is equal in all of them."""

Size = Callable[[Equivalence], int]
"""How many values the attributes of an equivalence test have: more values are more selective."""

PAPER = Options(
    bounds=False,
    reach=False,
    ordering=False,
    narrowing=False,
    once=False,
    composite=False,
    multiple=False,
)
"""The paper's optimised plan (its figure 6): all of its techniques, and none of the engine's own."""

BASIC = Options(
    bounds=False,
    partition=False,
    reach=False,
    ordering=False,
    narrowing=False,
    once=False,
    stacks=False,
    composite=False,
    multiple=False,
    filtering=False,
    window_scan=False,
    window_construction=False,
    simple=False,
)
"""The paper's basic plan (its figure 1): sequences first, then every condition on complete ones."""


@dataclass(frozen=True)
class SequencePlan:
    """How a sequence is scanned, constructed and selected.

    `partition` are the equivalence tests that partition the stacks together; `multiple` those whose own
    stacks the scan intersects with them. `construction` and `selection` are the equalities tested there.
    """

    stacks: bool
    partition: tuple[Equivalence, ...]
    multiple: tuple[Equivalence, ...]
    construction: tuple[Equality, ...]
    selection: tuple[Equality, ...]
    window_scan: bool
    window_construction: bool


def is_planned(block: Block, options: Options) -> bool:
    """Whether a block runs by SASE's plan: it is a sequence, and a switch that matters to it is off."""
    if block.chain is None or len(block.chain) < 2 or block.levels is not None:
        return False
    whole = options.stacks and options.window_scan and options.window_construction and options.reach
    split = not options.composite and len(equivalences(block)) > 1
    tested = not (options.partition and options.filtering) and bool(block.equalities)
    return not whole or split or tested


def sequence_plan(block: Block, options: Options, size: Size = lambda test: 0) -> SequencePlan:
    """The plan of a sequence; the most selective equivalence test leads if they do not lead together."""
    assert block.chain is not None
    tests = sorted(equivalences(block), key=size, reverse=True)
    leading = 0
    if options.stacks and options.partition:
        leading = len(tests) if options.composite else min(1, len(tests))
    rest = tests[leading:]
    equalities = (*(pair for test in rest for pair in _pairs(test, block.chain)), *block.equalities)
    return SequencePlan(
        stacks=options.stacks,
        partition=tuple(tests[:leading]),
        multiple=tuple(rest) if leading and options.multiple else (),
        construction=equalities if options.filtering else (),
        selection=() if options.filtering else equalities,
        window_scan=options.window_scan,
        window_construction=options.window_construction,
    )


def attributes_of(tests: tuple[Equivalence, ...], variable: str) -> tuple[str, ...] | None:
    """The attributes of a variable in equivalence tests; None if there are no tests."""
    return tuple(test[variable] for test in tests) or None


def equivalences(block: Block) -> list[Equivalence]:
    """The equivalence tests that the key of a block implies."""
    if not block.key:
        return []
    count = len(next(iter(block.key.values())))
    return [{name: block.key[name][place] for name in block.key} for place in range(count)]


def _pairs(test: Equivalence, chain: tuple[str, ...]) -> list[Equality]:
    """The equalities of an equivalence test between neighbours."""
    return [Equality((left, test[left]), (right, test[right])) for left, right in pairwise(chain)]
