"""Shows how a plan was rewritten: the plan after each rule, the form reached, what stays nested.

The expressions are written as in the ICDE 2011 paper, one disjunct per line. The plan in its last form
follows, one node per line, where a witness says `latest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nestream.logical.explain import explain, explain_json
from nestream.logical.text import disjuncts_text, expression_text
from nestream_papers.rewrite.forms import Conjunctive, expressions
from nestream_papers.rewrite.normalise import Normalised


def explain_rewriting(normalised: Normalised) -> str:
    """The rewriting as indented text."""
    return "\n".join(_lines(normalised))


def _lines(normalised: Normalised) -> Iterator[str]:
    yield "Rewriting"
    if not normalised.steps:
        yield "  no rule applies"
    for step in normalised.steps:
        yield f"  {step.rule}"
        yield from _disjoined(disjuncts_text(step.plan.root))
    word = "AND" if isinstance(normalised.form, Conjunctive) else "OR"
    yield f"Form: {normalised.form.name}"
    for number, expression in enumerate(expressions(normalised.form), 1):
        joined = f" {word} " if number > 1 else " "
        yield f"  {joined.strip():>{len(word)}} E{number}: {expression_text(expression)}"
    if normalised.kept:
        yield "Stays nested"
    for kept in normalised.kept:
        yield f"  {kept.part}"
        yield f"    {kept.reason}"
    if normalised.steps:
        yield "Rewritten plan"
        yield from (f"  {line}" for line in explain(normalised.plan).splitlines())


def _disjoined(texts: list[str]) -> Iterator[str]:
    if len(texts) == 1:
        yield f"    {texts[0]}"
        return
    for number, text in enumerate(texts):
        yield f"    {'OR' if number else '  '} {text}"


def explain_rewriting_json(normalised: Normalised) -> dict[str, Any]:
    """The rewriting as plain data."""
    return {
        "steps": [
            {"rule": step.rule, "expressions": disjuncts_text(step.plan.root)} for step in normalised.steps
        ],
        "form": normalised.form.name,
        "expressions": [expression_text(expression) for expression in expressions(normalised.form)],
        "kept": [{"part": kept.part, "reason": kept.reason} for kept in normalised.kept],
        "root": explain_json(normalised.plan)["root"],
    }
