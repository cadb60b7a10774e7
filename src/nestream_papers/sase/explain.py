"""A plan as SASE's operators: transformation, negation, window, selection, sequence construction and scan.

It shows three plans of a query, each from its output down to the stream: the paper's basic one, its optimised
one, and the one that runs, where the engine goes further. What is pushed into an operator is shown with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from nestream.engine.explain import filters_text, interval_text, term_text
from nestream.engine.program import Decided, Edge, Equality, Measure
from nestream.logical.nodes import Plan
from nestream.model.event_types import ANY_TYPE
from nestream.model.output import ValueColumn
from nestream.model.text import print_expression, print_name
from nestream.physical.equality import key_of
from nestream_papers.engine.chain import is_chain
from nestream_papers.engine.program import Block, BlockProgram, Negation
from nestream_papers.options import Options
from nestream_papers.plan.compile import compile_plan
from nestream_papers.plan.explain import _witness
from nestream_papers.sase.plan import (
    BASIC,
    PAPER,
    Equivalence,
    SequencePlan,
    equivalences,
    is_planned,
    sequence_plan,
)

TITLES = {"basic": "Basic plan", "optimised": "Optimised plan", "run": "Plan that is run"}


@dataclass(frozen=True)
class Operator:
    """An operator with what it does; the first of a plan is its output."""

    symbol: str
    name: str
    does: tuple[str, ...]


def sase_plans(plan: Plan, options: Options | None = None) -> dict[str, list[list[Operator]]]:
    """The plans by name, each with the operators of every block; `run` only if it differs."""
    chosen = {"basic": BASIC, "optimised": PAPER, "run": options or Options()}
    found = {name: _plans(plan, switches) for name, switches in chosen.items()}
    if found["run"] in (found["basic"], found["optimised"]):
        del found["run"]
    return found


def explain_sase(plan: Plan, options: Options | None = None) -> str:
    """The plans as text, one operator per line."""
    lines: list[str] = []
    for name, blocks in sase_plans(plan, options).items():
        lines.append(TITLES[name])
        for number, operators in enumerate(blocks):
            lines += [f"  branch {number + 1}"] if len(blocks) > 1 else []
            depth = "    " if len(blocks) > 1 else "  "
            lines += [f"{depth}{o.symbol:<4}{o.name:<15}{'; '.join(o.does)}".rstrip() for o in operators]
    return "\n".join(lines)


def explain_sase_json(plan: Plan, options: Options | None = None) -> dict[str, Any]:
    """The plans as plain data."""
    return {
        name: [
            [{"operator": o.symbol, "name": o.name, "does": list(o.does)} for o in operators]
            for operators in blocks
        ]
        for name, blocks in sase_plans(plan, options).items()
    }


def _plans(plan: Plan, options: Options) -> list[list[Operator]]:
    program = compile_plan(plan, None, options=options)
    return [
        list(_Told(plan, program, block, decided).operators())
        for block, decided in zip(program.blocks, program.decided, strict=True)
    ]


class _Told:
    """One block, described as operators."""

    def __init__(self, plan: Plan, program: BlockProgram, block: Block, decided: Decided) -> None:
        self.plan = plan
        self.program = program
        self.options = program.options
        self.block = block
        self.decided = decided
        self.bounds = [n for n in block.negations if self.own and self._between_neighbours(n)]

    @property
    def own(self) -> bool:
        """Whether the engine runs the sequence its own way."""
        return is_chain(self.block) and not is_planned(self.block, self.options)

    def operators(self) -> Iterator[Operator]:
        """From the output to the stream; operators with nothing to do are left out."""
        yield Operator("TF", "transformation", tuple(self._shown()))
        negated = [*map(self._negation, (n for n in self.block.negations if n not in self.bounds))]
        negated += [_witness(witness, self.program) for witness in self.block.witnesses]
        if negated:
            yield Operator("NG", "negation", tuple(negated))
        if not self.own and not is_planned(self.block, self.options):
            yield Operator("⋈", "join", (self._steps(), *self._joined(), *self._window()))
            return
        sequence = sequence_plan(self.block, self.options)
        if not self.own and not sequence.window_construction and self._window():
            yield Operator("WD", "window", tuple(self._window()))
        selected = self._tests(sequence.selection)
        alone = len(self.block.leaves) == 1
        selected += map(print_expression, self.block.predicates if alone or not self.own else ())
        if selected:
            yield Operator("σ", "selection", tuple(selected))
        if not alone:
            yield Operator("SC←", "construction", tuple(self._construction(sequence)))
        yield Operator("SS→", "scan", tuple(self._scan(sequence)))

    # -- sequence scan and construction --------------------------------------------------------------------

    def _scan(self, sequence: SequencePlan) -> Iterator[str]:
        yield self._steps()
        if len(self.block.leaves) == 1:
            pass  # nothing to construct sequences from
        elif not sequence.stacks:
            yield "one runtime stack"
        elif not sequence.partition:
            yield "active instance stacks"
        else:
            together = ", ".join(map(_test, sequence.partition))
            yield f"stacks partitioned by {together}"
        for test in sequence.multiple:
            yield f"intersected with stacks by {_test(test)}"
        for name, leaf in self.block.leaves.items():
            yield from filters_text(name, self.program.leaves[leaf].filters)
        if sequence.window_scan and not self.own:
            yield from self._window()

    def _construction(self, sequence: SequencePlan) -> Iterator[str]:
        if self.own:
            yield "from the stacks, without dead ends"
        elif sequence.stacks:
            yield "from the stacks"
        else:
            yield "back through all events"
        yield from self._tests(sequence.construction)
        if self.own:
            yield from map(print_expression, self.block.predicates)
            yield from map(self._negation, self.bounds)
        if sequence.window_construction:
            yield from self._window()

    def _between_neighbours(self, negation: Negation) -> bool:
        """Whether a bound shortens the ranges of a step, which must know its key."""
        interval, link = negation.interval, negation.link
        pairs = [((left,), (right,)) for left, right in pairwise(self.block.chain or ())]
        if negation.stair is None or (interval.after, interval.before) not in pairs:
            return False
        keyed = link is not None and self.block.key is not None and self.block.key.get(link[0]) == link[1]
        return link is None or keyed or (link[0],) == interval.before

    # -- texts ---------------------------------------------------------------------------------------------

    def _shown(self) -> Iterator[str]:
        for column in self.plan.output.columns:
            if isinstance(column, ValueColumn):
                yield f"{print_expression(column.expression)} AS {print_name(column.name)}"
            elif column.name in self.block.leaves:
                yield print_name(column.name)

    def _steps(self) -> str:
        return f"({', '.join(_events(self.block, self.program))})"

    def _joined(self) -> Iterator[str]:
        yield from map(_test, equivalences(self.block))
        yield from self._tests(self.block.equalities)
        for name, leaf in self.block.leaves.items():
            yield from filters_text(name, self.program.leaves[leaf].filters)
        yield from map(print_expression, self.block.predicates)

    def _tests(self, equalities: Sequence[Equality]) -> list[str]:
        """Equalities as equivalence tests where possible, otherwise as they are."""
        names = list(self.block.leaves)
        key, rest = key_of(list(equalities), names)
        count = len(key[names[0]]) if key else 0
        tests = [{name: key[name][place] for name in names} for place in range(count)] if key else []
        return [*map(_test, tests), *(f"{term_text(e.left)} = {term_text(e.right)}" for e in rest)]

    def _window(self) -> list[str]:
        if self.program.measure is Measure.NONE or len(self.block.leaves) < 2:
            return []
        if self.program.measure is Measure.EVENTS or self.block.chain is None:
            return [f"within {self.plan.window}"]
        first, last = (print_name(self.block.chain[place]) for place in (0, -1))
        return [f"{last}.ts - {first}.ts {'<' if self.plan.exclusive else '<='} {self.plan.window}"]

    def _negation(self, negation: Negation) -> str:
        block = negation.block
        parts = [f"!{_expression(block, self.program)} {interval_text(negation.interval)}"]
        parts += [f"{term_text(e.left)} = {term_text(e.right)}" for e in block.equalities]
        for name, leaf in block.leaves.items():
            parts += filters_text(name, self.program.leaves[leaf].filters)
        parts += map(print_expression, block.predicates)
        if negation.stair is not None:
            how = "as a bound"
        else:
            how = "by index" if self.options.negation_index else "by scanning"
        if negation.interval.before is Edge.WINDOW_END:
            how += f", postponed by {self.plan.window}"
        return f"{', '.join(parts)}: {how}"


def _test(test: Equivalence) -> str:
    """`[id]`, or the terms if the attributes have different names."""
    spelled = set(test.values())
    if len(spelled) == 1:
        return f"[{print_name(spelled.pop())}]"
    return " = ".join(term_text(term) for term in test.items())


def _events(block: Block, program: BlockProgram) -> list[str]:
    return [f"{_types(program.leaves[leaf].types)} {print_name(n)}" for n, leaf in block.leaves.items()]


def _types(types: Sequence[str]) -> str:
    if ANY_TYPE in types:
        return "ANY"
    names = ", ".join(map(print_name, types))
    return names if len(types) == 1 else f"ANY({names})"


def _expression(block: Block, program: BlockProgram) -> str:
    """A negated expression: its events, and what is negated inside it."""
    inside = [f"!{_expression(negation.block, program)}" for negation in block.negations]
    events = [*_events(block, program), *inside]
    if len(events) == 1:
        return events[0]
    return f"{'SEQ' if block.chain is not None else 'AND'}({', '.join(events)})"
