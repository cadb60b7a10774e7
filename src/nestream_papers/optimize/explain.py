"""A shared plan as text and as data: its groups, the operator of each, estimates and measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nestream.engine.operator import Measured
from nestream_papers.optimize.cost import Cost, Model
from nestream_papers.optimize.operators import Group, Operator
from nestream_papers.optimize.plan_finder import SharedPlan
from nestream_papers.optimize.shape import Shape


@dataclass(frozen=True)
class Explained:
    """A shared plan with what it was made from, and the measurements of its groups."""

    shapes: Sequence[Shape]
    plan: SharedPlan
    model: Model
    measured: Mapping[int, Measured] | None = None
    """By the number of the group."""
    blocks: Sequence[Sequence[int]] = ()
    """The numbers of the blocks that each expression was compiled to."""

    def with_measured(self, blocks: Sequence[Measured]) -> Explained:
        """The same with the measurements of the blocks; the first block of a group runs all of it."""
        if not blocks:
            return self
        groups = {}
        for number, group in enumerate(self.plan.groups):
            own = [blocks[block] for member in group.members for block in self.blocks[member]]
            groups[number] = Measured(sum(one.matches for one in own), sum(one.seconds for one in own))
        return replace(self, measured=groups)

    def text(self) -> str:
        """Indented text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        plan, known = self.plan, self.model.statistics
        over = f"{known.events:,.0f} events" if known.counts else "events that are assumed"
        yield (
            f"Sharing: {_number(len(self.shapes), 'expression')} in {_number(len(plan.groups), 'group')}, "
            f"{_number(plan.tried, 'change')} tried"
        )
        yield (
            f"  estimated for {over}: {_cost(plan.cost)}; if each expression ran alone: {_cost(plan.alone)}"
        )
        for number, group in enumerate(plan.groups):
            yield f"  {self._names(group)}: {self._operator(group)}"
            yield f"    estimated: {self._estimated(group)}"
            if self.measured is not None and number in self.measured:
                found = self.measured[number]
                yield f"    measured: {_number(found.matches, 'match')}, {_time(found.seconds * 1e9)}"

    def _names(self, group: Group) -> str:
        return ", ".join(self.shapes[member].name for member in group.members)

    def _operator(self, group: Group) -> str:
        first = self.shapes[group.members[0]]
        steps = first.steps[group.starts[0] : group.starts[0] + group.length]
        over = ", ".join(step.label for step in steps)
        return f"{group.operator} ({over})"

    def _estimated(self, group: Group) -> str:
        return f"{_number(round(self._matches(group)), 'match')}, {_cost(group.cost)}"

    def _matches(self, group: Group) -> float:
        shapes = [self.shapes[member] for member in group.members]
        if group.operator is Operator.MARKING:  # each set of names emits a match once
            whole = self.model.rows(shapes[0], 0, len(shapes[0]), constrained=False)
            named: dict[tuple[str, ...], list[Shape]] = {}
            for shape in shapes:
                named.setdefault(shape.names, []).append(shape)
            return sum(whole * self.model.some(own, 0) for own in named.values())
        return sum(map(self.model.matches, shapes))

    def json(self) -> dict[str, Any]:
        """The same as plain data, with the statistics."""
        groups = []
        for number, group in enumerate(self.plan.groups):
            found = (self.measured or {}).get(number)
            groups.append(
                {
                    "expressions": [self.shapes[member].name for member in group.members],
                    "operator": group.operator.value,
                    "shared steps": group.length,
                    "estimated": {"matches": round(self._matches(group), 1), **_json(group.cost)},
                    "measured": None
                    if found is None
                    else {"matches": found.matches, "nanoseconds": round(found.seconds * 1e9)},
                }
            )
        return {
            "groups": groups,
            "estimated": _json(self.plan.cost),
            "estimated alone": _json(self.plan.alone),
            "search": {"tried": self.plan.tried, "stopped": self.plan.stopped},
            "statistics": self.model.statistics.described() if self.model.statistics.counts else None,
        }


def _number(count: int, of: str) -> str:
    plural = f"{of}es" if of.endswith("ch") else f"{of}s"
    return f"{count:,} {of if count == 1 else plural}"


def _cost(cost: Cost) -> str:
    return f"{cost.rows:,.0f} rows built, {_time(cost.nanoseconds)}"


def _json(cost: Cost) -> dict[str, float]:
    return {"rows": round(cost.rows, 1), "nanoseconds": round(cost.nanoseconds)}


def _time(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:,.2f} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:,.2f} s"
