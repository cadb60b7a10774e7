"""The part of the composer that explains: plan, program and choice, as text or plain data."""

from __future__ import annotations

from typing import Any

from nestream.compose.analysis import measured
from nestream.compose.choosing import assumed_choice
from nestream.compose.flat import flat_plan
from nestream.compose.run import Run, compiled, known_strategy
from nestream.engine.program import Options, Switches
from nestream.logical.explain import explain, explain_json
from nestream.logical.nodes import Plan
from nestream.physical.explain import explain_program, explain_program_json
from nestream.physical.sase_explain import explain_sase, explain_sase_json
from nestream.rewrite.explain import explain_rewriting, explain_rewriting_json
from nestream.rewrite.normalise import normalise
from nestream.runtime.held import in_order
from nestream.runtime.local import LocalRun

FORMATS = ("text", "json")


def known_format(format: str) -> None:
    """Raise for a format that there is not."""
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}: use {' or '.join(FORMATS)}")


def explained(plan: Plan, format: str, options: Options, strategy: str) -> Any:
    """The plan and how the engine runs it; for flat runs also which expressions share their work."""
    known_strategy(strategy)
    flat = flat_plan(plan) if strategy == "flat" else None
    program = compiled(plan, None, strategy, options=options, flat=flat)
    if format == "json":
        shared = {"sharing": flat.shared.json()} if flat else {}
        return {**explain_json(plan), "engine": explain_program_json(program), **shared}
    parts = [explain(plan), explain_program(program), *([flat.shared.text()] if flat else [])]
    return "\n".join(parts)


def with_rewriting(shown: Any, plan: Plan, format: str, options: Options, *, assumed: bool) -> Any:
    """An explanation, with what `auto` is for assumed events if asked, and how the plan is rewritten."""
    rewritten = normalise(plan)
    chosen = None
    if assumed:
        chosen = assumed_choice(plan, compiled(plan, None, "bounds", options=options), options)
    if format == "json":
        choice = {"chosen": chosen.json()} if chosen else {}
        return {**shown, **choice, "rewriting": explain_rewriting_json(rewritten)}
    return "\n".join([shown, *([chosen.text()] if chosen else []), explain_rewriting(rewritten)])


def as_operators(plan: Plan, format: str, options: Options, dialect: str) -> Any:
    """The plan as the operators of a dialect of plans."""
    if dialect != "sase":
        raise ValueError(f"unknown dialect {dialect!r}: use 'sase', or leave it out")
    told = explain_sase_json if format == "json" else explain_sase
    return told(plan, options)


def analyzed(run: Run, format: str, options: Switches | None) -> Any:
    """The explanation, with what a run over the events found and how long each part of it took."""
    if run.strategy == "reference":
        raise ValueError("the reference evaluator has no plan to analyze: choose another strategy")
    chosen = run.chosen(options) if run.strategy == "auto" else None
    strategy = run.strategy if chosen is None else chosen.strategy
    flat = flat_plan(run.plan, run.schema, run.table, whole=True) if strategy == "flat" else None
    program = run.program(options, flat) if chosen is None else run.by(chosen, options, flat)
    local = LocalRun(run.plan.output, program, run.schema, run.kinds, run.unit)
    local.append(in_order(run.table, run.schema.time, run.unit))
    found = measured(local.program, local.matcher, run.table.num_rows, flat)
    if format == "json":
        choice = {"chosen": chosen.json()} if chosen else {}
        plans = {**explain_json(run.plan), "engine": explain_program_json(local.program)}
        return {**plans, **choice, **found.json()}
    parts = [explain(run.plan), explain_program(local.program), *([chosen.text()] if chosen else [])]
    return "\n".join([*parts, found.text()])
