"""The match of each first event of a chain that KEEP FIRST keeps.

docs/how-it-works/engine.md, "Chains", has the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nestream.engine.evaluation import Bindings, Evaluation
from nestream.engine.kernels import Rows
from nestream.engine.kernels.chain import first_matches
from nestream.engine.kernels.stack import taken
from nestream.engine.operators.forward_pass import ForwardPass
from nestream.engine.operators.operator import Asked

if TYPE_CHECKING:
    from nestream.engine.operators.chain import Chain


class FirstMatches(ForwardPass):
    """The steps of a chain with all their events, of which the first successors are taken.

    Whether a prefix reaches them does not matter: a first event is a prefix. By place, `lowest` and `end` are
    rows: the first that a predecessor may have, and the first that is too late.
    """

    def __init__(self, chain: Chain, evaluation: Evaluation) -> None:
        super().__init__(chain, evaluation, None, [])

    def _extended(
        self, rows: Rows, begin: Rows, firsts: Rows, bound: Rows, low: Rows
    ) -> tuple[Rows, Rows, Rows, Rows, Rows]:
        lowest = bound if len(bound) else np.full(len(rows), -1, np.int32)
        return rows, begin, rows, lowest, taken(low, firsts) if len(low) else firsts

    def found(self, asked: Asked) -> Bindings | None:
        """The matches, by their last events, then by their rows.

        None where the successors of an event are no range: negations on another attribute than the key can
        cause that, and so can those that are checked match by match.
        """
        if self.late:
            return None
        begins = np.stack([step.begin for step in self.steps])
        limits = map(np.int64, (asked.first, asked.end))
        found, is_right = first_matches(
            begins, self.ends, self.lowest, self.end, self.evaluation.reach, *limits
        )
        if not is_right:
            return None
        return Bindings(dict(zip(self.chain.names, found, strict=True)), found.shape[1], in_order=True)
