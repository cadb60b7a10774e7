"""Explains a query before it runs: plan, program and rewriting, as text or plain data."""

from __future__ import annotations

from typing import Any

from nestream.logical.explain import explain, explain_json
from nestream.logical.nodes import Plan, has_groups
from nestream.strategies import Options, program_of, tool

FORMATS = ("text", "json")


def known_format(format: str) -> None:
    """Raise for an unknown format."""
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}: use {' or '.join(FORMATS)}")


def explained(plan: Plan, format: str, options: Options | None, strategy: str) -> Any:
    """The plan, and how the engine runs it with a strategy."""
    if strategy == "reference":  # runs the plan itself; shows what it is compared with
        strategy = "native"
    program = program_of(plan, None, strategy, options=options)
    if format == "json":
        return {**explain_json(plan), **program.explain_json()}
    return "\n".join([explain(plan), program.explain()])


def with_rewriting(shown: Any, plan: Plan, format: str) -> Any:
    """An explanation with the steps that rewrite the plan to a normal form."""
    if has_groups(plan):
        rewriting: Any = "Rewriting\n  none: the rules of the papers do not cover groups"
        return {**shown, "rewriting": None} if format == "json" else f"{shown}\n{rewriting}"
    rewriting = tool("explain_normal_form", "the rewriting that verbose shows")(plan, format)
    return {**shown, "rewriting": rewriting} if format == "json" else f"{shown}\n{rewriting}"


def as_operators(plan: Plan, format: str, options: Options | None, dialect: str) -> Any:
    """The plan as the operators of a dialect."""
    if dialect != "sase":
        raise ValueError(f"unknown dialect {dialect!r}: use 'sase', or leave it out")
    if has_groups(plan):
        raise ValueError("SASE's operators have no groups\n  hint: explain the query without dialect")
    return tool("explain_operators", "a plan in SASE's operators")(plan, format, options)
