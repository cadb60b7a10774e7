"""Puts a program together whose blocks, and the negations of a block, are run in different ways.

The blocks come from programs of the same plan, so they have the same leaves and are decided by the same
events; only how matches are found differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from nestream.logical.nodes import Plan
from nestream.model.schema import Schema
from nestream.papers.engine.program import Block, LeafSpec, Options, Program, Views
from nestream.papers.plan.compile import compile_plan
from nestream.papers.plan.groups import marked


class How(StrEnum):
    """How the events of a block are put together."""

    OWN = "bounds"
    NESTED = "nested"
    VIEWS = "views-balanced"


@dataclass(frozen=True)
class Way:
    """How a block is run, and with views, which of its negations (by number) are joins all the same."""

    how: How = How.OWN
    joined: frozenset[int] = frozenset()


def compile_mixed(
    plan: Plan,
    schema: Schema | None,
    per_microsecond: int,
    by_arrival: bool,
    options: Options,
    ways: Sequence[Way],
    leaves: dict[LeafSpec, int] | None = None,
) -> Program:
    """The program of a plan with a way for each of its blocks; negations that can be are bounds."""
    leaves = {} if leaves is None else leaves
    found = {
        how: compile_plan(
            plan,
            schema,
            per_microsecond,
            by_arrival,
            options,
            nested=how is not How.OWN,
            views=Views.BALANCED if how is How.VIEWS else None,
            sparing=how is How.VIEWS,
            leaves=leaves,
        )
        for how in dict.fromkeys((How.OWN, *(way.how for way in ways)))
    }
    own = found[How.OWN]
    blocks = tuple(
        _with_joins(found[way.how].blocks[number], own.blocks[number], way.joined)
        for number, way in enumerate(ways)
    )
    views = Views.BALANCED if any(block.viewed for block in blocks) else None
    program = replace(own, leaves=tuple(leaves), blocks=blocks, views=views)
    return marked(program, plan) if any(block.witnesses for block in blocks) else program


def _with_joins(block: Block, own: Block, joined: frozenset[int]) -> Block:
    """The block with some of its negations as they are in the engine's own way."""
    pairs = zip(block.negations, own.negations, strict=True)
    chosen = (plain if number in joined else kept for number, (kept, plain) in enumerate(pairs))
    return replace(block, negations=tuple(chosen))
