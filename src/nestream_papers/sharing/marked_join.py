"""Bit-marking in the general join: facts are determined as soon as their variables are bound."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nestream_papers.engine.context import Bindings, Ranges, needed
from nestream_papers.engine.join import Join
from nestream_papers.engine.program import Constraint, Witness
from nestream_papers.sharing.marking import EMap, Marked, marked, mask_of


@dataclass
class MarkedJoin(Join):
    """Finds the matches of a group's blocks from their common part, distinguished by marks."""

    emap: EMap = field(default_factory=lambda: EMap((), (0,)))

    def filtered(self, bindings: Bindings, name: str, ranges: Ranges) -> Bindings:
        """The partial matches that some expression may still accept, once `name` is bound."""
        if not isinstance(bindings, Marked):
            facts = np.zeros(bindings.count, np.uint64)
            bindings = Marked(bindings.rows, bindings.count, bindings.outer, facts)
        found = super().filtered(bindings, name, ranges)
        assert isinstance(found, Marked)
        bound = set(found.rows)
        decidable = [n for n, part in enumerate(self.emap.columns) if self._needs(part) <= bound]
        known = mask_of(n for n in decidable if name not in self._needs(self.emap.columns[n]))
        for column in decidable:
            constraint = self.emap.columns[column]
            if name in self._needs(constraint) and found.count:
                found.facts = marked(found.facts, self.satisfies(constraint, found), column)
                known |= mask_of([column])
                held = self.emap.alive(found.facts, known)
                if held is not None and not held.all():
                    found = found.only(held)
        return found

    def _needs(self, constraint: Constraint) -> frozenset[str]:
        if isinstance(constraint, Witness):
            return constraint.needs(self.root)
        return needed(constraint, self.root)
