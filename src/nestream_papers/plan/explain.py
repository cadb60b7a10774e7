"""Prints the engine's program as text and as data: its blocks, and how each negation runs and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nestream.engine.explain import EMITTED, filters_text, interval_text, key_text, term_text
from nestream.engine.operator import Measured
from nestream.model.text import print_expression, print_name
from nestream_papers.engine.chain import is_chain
from nestream_papers.engine.program import Block, BlockProgram, Group, Negation, SharedSteps, Sharing, Witness
from nestream_papers.sharing.marking import EMap


def explain_program(program: BlockProgram, measured: Sequence[Measured] = ()) -> str:
    """The program as indented text, and why its groups are shared, if a search found them."""
    shared = program.sharing and program.sharing.with_measured(measured)
    return "\n".join([*_lines(program, measured), *([] if shared is None else [shared.text()])])


def _lines(program: BlockProgram, measured: Sequence[Measured]) -> Iterator[str]:
    yield "Engine"
    for number, (block, decided) in enumerate(zip(program.blocks, program.decided, strict=True)):
        yield f"  {_block(block, program)}; {EMITTED[decided]}"
        yield from _constraints(block, program, 2)
        if measured and program.sharing is None:
            found = measured[number]
            yield f"    measured: {found.matches:,} found in {found.seconds * 1e3:,.2f} ms"
    for group in program.groups:
        yield f"  {_group(group)}"
    for steps in program.steps:
        yield f"  {_steps(steps)}"


def _block(block: Block, program: BlockProgram) -> str:
    names = ", ".join(map(print_name, block.leaves))
    filters = [
        text
        for name, leaf in block.leaves.items()
        for text in filters_text(name, program.leaves[leaf].filters)
    ]
    method = "Nested" if block.levels is not None else "Chain" if is_chain(block) else "Join"
    parts = [f"{method} ({names})"]
    if block.nested:
        inner = ", ".join(f"({', '.join(map(print_name, part.variables))})" for part in block.nested)
        parts.append(f"{inner} from {program.views} view{'s' if len(block.nested) > 1 else ''}")
    if block.key:
        parts.append(f"by key {key_text(block.key)}")
    if block.equalities:
        parts.append(
            "looking up " + ", ".join(f"{term_text(e.left)} = {term_text(e.right)}" for e in block.equalities)
        )
    if filters:
        parts.append("leaves filtered by " + ", ".join(filters))
    if block.predicates:
        parts.append("then " + ", ".join(map(print_expression, block.predicates)))
    return ", ".join(parts)


def _constraints(block: Block, program: BlockProgram, depth: int) -> Iterator[str]:
    for negation in block.negations:
        yield "  " * depth + _negation(negation, program)
        yield from _constraints(negation.block, program, depth + 1)
    for witness in block.witnesses:
        yield "  " * depth + _witness(witness, program)


def _group(group: Group) -> str:
    """Which blocks run together, counted from 1, and what they share."""
    blocks = ", ".join(str(member.block + 1) for member in group.members)
    steps = ", ".join(map(print_name, group.core.leaves))
    text = f"Shared by {blocks}: {group.operator} of ({steps})"
    if group.operator is Sharing.MARKING:
        columns = EMap.of_group(group).columns
        return f"{text}, {len(group.members)} expressions that differ in {len(columns)} constraints"
    return text


def _steps(steps: SharedSteps) -> str:
    """Which conjuncts share rows, each with the number of its block, counted from 1."""
    uses = [f"({', '.join(map(print_name, use.names))}) of {use.block + 1}" for use in steps.uses]
    return f"Shared by conjuncts: rows of {' and '.join(uses)}, built once"


def _witness(witness: Witness, program: BlockProgram) -> str:
    names = [print_name(step.variable) for step in witness.chain]
    if witness.absent is not None:
        names.insert(0, f"!{print_name(witness.absent.variable)}")
    terms = [
        f"{term_text((step.variable, own))} = {term_text(term)}"
        for step in witness.steps
        for own, term in zip(step.attributes, step.equal_to, strict=True)
    ]
    filters = [
        text
        for step in witness.steps
        for text in (
            *filters_text(step.variable, program.leaves[step.leaf].filters),
            *map(print_expression, step.predicates),
        )
    ]
    parts = [f"witness ({', '.join(names)}) {interval_text(witness.interval)}: the latest of each"]
    if terms:
        parts.append(f"looking up {', '.join(terms)}")
    if filters:
        parts.append(f"filtered by {', '.join(filters)}")
    return ", ".join(parts)


def _negation(negation: Negation, program: BlockProgram) -> str:
    names = ", ".join(map(print_name, negation.block.leaves))
    filters = [
        text
        for name, leaf in negation.block.leaves.items()
        for text in filters_text(name, program.leaves[leaf].filters)
    ]
    where = interval_text(negation.interval)
    filtered = f", leaves filtered by {', '.join(filters)}" if filters else ""
    if negation.stair is not None:
        by = f" by key {key_text(negation.key)}" if negation.key else ""
        return f"! ({names}) {where}: bound{by}{filtered}: {negation.reason}"
    if negation.viewed and len(negation.block.leaves) > 1:
        return f"! ({names}) {where}: {program.views} view{filtered}: {negation.reason}"
    if negation.block.levels is not None:
        return f"! ({names}) {where}: nested{filtered}: {negation.reason}"
    return f"! ({names}) {where}: lateral join{filtered}: {negation.reason}"


def _method(negation: Negation) -> str:
    if negation.stair is not None:
        return "bound"
    return "nested" if negation.block.levels is not None else "lateral join"


def explain_program_json(program: BlockProgram, measured: Sequence[Measured] = ()) -> dict[str, Any]:
    """The same as plain data."""
    shared = program.sharing and program.sharing.with_measured(measured)
    blocks = [
        {**_block_json(block), "decided": decided.value}
        for block, decided in zip(program.blocks, program.decided, strict=True)
    ]
    steps = [
        [{"block": use.block + 1, "variables": list(use.names)} for use in steps.uses]
        for steps in program.steps
    ]
    return {
        "engine": blocks,
        **({"shared by conjuncts": steps} if steps else {}),
        **({} if shared is None else {"sharing": shared.json()}),
    }


def _block_json(block: Block) -> dict[str, Any]:
    witnesses = [
        {
            "variables": [step.variable for step in witness.chain],
            "absent": witness.absent.variable if witness.absent else None,
            "interval": interval_text(witness.interval),
        }
        for witness in block.witnesses
    ]
    return {
        **({"witnesses": witnesses} if witnesses else {}),
        "method": "nested" if block.levels is not None else "chain" if is_chain(block) else "join",
        "variables": list(block.leaves),
        "key": {name: list(attributes) for name, attributes in block.key.items()} if block.key else None,
        "negations": [
            {
                "variables": list(negation.block.leaves),
                "interval": interval_text(negation.interval),
                "method": _method(negation),
                "reason": negation.reason,
                "inside": _block_json(negation.block)["negations"],
            }
            for negation in block.negations
        ],
    }
