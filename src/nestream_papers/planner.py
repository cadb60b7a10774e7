"""The strategies of the papers as planners, and their other tools: rewrite, estimate and explain a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from nestream.engine.program import LeafSpec
from nestream.logical.nodes import Plan
from nestream.model.schema import Schema
from nestream_papers.engine.program import BlockProgram, Views
from nestream_papers.flat import flat_plan
from nestream_papers.optimize.cost import Objective
from nestream_papers.optimize.rows import estimated_rows as estimated_rows
from nestream_papers.options import Options
from nestream_papers.options import options_of as options_of
from nestream_papers.plan.compile import compile_plan
from nestream_papers.plan.groups import blocks_of_expressions
from nestream_papers.rewrite.explain import explain_rewriting, explain_rewriting_json
from nestream_papers.rewrite.normalise import normalise
from nestream_papers.sase.explain import explain_sase, explain_sase_json


def blocks(
    plan: Plan,
    schema: Schema | None,
    *,
    options: Options | Mapping[str, Any] | None,
    leaves: dict[LeafSpec, int] | None,
    events: pa.Table | None = None,
    whole: bool = False,
    nested: bool = False,
    views: Views | None = None,
) -> BlockProgram:
    """The blocks of a plan as it is written, whatever the events.

    Chains and joins, with negations as bounds where they can be.
    """
    return compile_plan(plan, schema, options_of(options), nested=nested, views=views, leaves=leaves)


nested = partial(blocks, nested=True)
"""Iterative nested execution."""
views_aggressive = partial(blocks, nested=True, views=Views.AGGRESSIVE)
views_passive = partial(blocks, nested=True, views=Views.PASSIVE)
views_balanced = partial(blocks, nested=True, views=Views.BALANCED)


def flat(
    plan: Plan,
    schema: Schema | None,
    *,
    options: Options | Mapping[str, Any] | None,
    leaves: dict[LeafSpec, int] | None,
    events: pa.Table | None = None,
    whole: bool = False,
) -> BlockProgram:
    """The plan rewritten to flat expressions, in groups that share their work."""
    chosen = options_of(options)
    objective = Objective.TIME if chosen.cost_in_time else Objective.ROWS
    found = flat_plan(plan, schema, events, whole=whole, objective=objective)
    groups = found.shared.plan.groups
    program = compile_plan(found.normal.plan, schema, chosen, groups=groups, leaves=leaves)
    expressions = blocks_of_expressions(found.normal.plan)
    return replace(program, sharing=replace(found.shared, blocks=expressions))


def switches() -> tuple[str, ...]:
    """The techniques that can be switched off by name."""
    return Options.names()


def normal_form(plan: Plan) -> Plan:
    """The plan as an OR of flat sequences, as far as possible."""
    return normalise(plan).plan


def explain_normal_form(plan: Plan, format: str) -> Any:
    """How a plan is rewritten, rule by rule, as text or plain data."""
    found = normalise(plan)
    return explain_rewriting_json(found) if format == "json" else explain_rewriting(found)


def explain_operators(plan: Plan, format: str, options: Options | Mapping[str, Any] | None) -> Any:
    """The plan in the operators of SASE's plans, as text or plain data."""
    explained = explain_sase_json if format == "json" else explain_sase
    return explained(plan, options_of(options))
