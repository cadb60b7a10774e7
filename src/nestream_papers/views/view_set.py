"""The views of a block, made on first use and kept between batches."""

from __future__ import annotations

import numpy as np

from nestream.engine.event_buffer import Ints
from nestream.engine.program import Measure
from nestream_papers.engine.context import Evaluation
from nestream_papers.engine.program import Block, BlockProgram, Negation
from nestream_papers.views.counters import Counters, total
from nestream_papers.views.inner import Inner, inner_queries, is_steady, negated_query, spans_two_windows
from nestream_papers.views.view import View


class ViewSet:
    """The inner queries of a block at any depth, and their views."""

    def __init__(self, program: BlockProgram) -> None:
        assert program.views is not None
        self.kind = program.views
        self.memory = program.options.memory
        self.partition = program.options.partition
        self._ties = program.measure is Measure.EVENTS and not program.by_arrival
        self._nested: dict[int, list[Inner]] = {}
        self._negated: dict[int, Inner | None] = {}
        self._views: dict[int, View] = {}
        self._reach: tuple[Evaluation, Ints] | None = None

    def inner_queries(self, block: Block, root: Block) -> list[Inner]:
        """The nested expressions of a block."""
        if id(block) not in self._nested:
            self._nested[id(block)] = inner_queries(block, root, partition=self.partition)
        return self._nested[id(block)]

    def negated_query(self, negation: Negation, root: Block) -> Inner | None:
        """What is negated; None if it takes no view: a bound, the stack of a single leaf, a join."""
        if id(negation) not in self._negated:
            alone = negation.stair is not None or len(negation.block.leaves) == 1
            if alone or not negation.viewed or spans_two_windows(negation, ties=self._ties):
                self._negated[id(negation)] = None
            else:
                self._negated[id(negation)] = negated_query(negation, root, partition=self.partition)
        return self._negated[id(negation)]

    def view(self, inner: Inner, block: Block, *, first: bool) -> View:
        """The view of an inner query of a block; `first` says that it is the first to be queried."""
        if id(inner) not in self._views:
            most = self.memory // (8 * (len(inner.names) + 5))
            negated = inner in self._negated.values()
            steady = first and is_steady(block, inner)
            self._views[id(inner)] = View(
                inner, self.kind, most, facts=negated and inner.exact, steady=steady
            )
        return self._views[id(inner)]

    def purge(self, oldest: int) -> None:
        """Forget what begins before a row."""
        for view in self._views.values():
            view.purge(oldest)

    def attach(self, evaluation: Evaluation) -> None:
        """Move to another evaluation."""
        for view in self._views.values():
            view.attach(evaluation)

    def reach(self, evaluation: Evaluation) -> Ints:
        """For each row, the first position in a window that ends with it."""
        if self._reach is None or self._reach[0] is not evaluation:
            self._reach = evaluation, evaluation.store.reach(np.arange(len(evaluation.store)))
        return self._reach[1]

    @property
    def views(self) -> list[View]:
        """All the views that were made."""
        return list(self._views.values())

    def counters(self) -> Counters:
        """What all its views have done."""
        return total(view.counters for view in self._views.values())
