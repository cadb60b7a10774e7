"""Runs a program of blocks: an operator runs all blocks of its group, and each other block runs alone."""

from __future__ import annotations

from nestream.engine.operator import EvaluationCache, Execution
from nestream.engine.program import Decided
from nestream.engine.windowed_events import WindowedEvents
from nestream_papers.engine.context import Evaluation, Shared
from nestream_papers.engine.program import BlockProgram, SharedSteps, Sharing, Use
from nestream_papers.engine.runs import BlockRun, OwnRun
from nestream_papers.sase.plan import is_planned
from nestream_papers.sase.run import SequenceRun
from nestream_papers.sharing.conjuncts import SharingJoinRun
from nestream_papers.sharing.marked_run import InGroup, MarkingRun
from nestream_papers.sharing.middle import MiddleRun
from nestream_papers.sharing.prefix import PreCache, PrefixRun
from nestream_papers.sharing.suffix import SuffixRun
from nestream_papers.views.counters import Counters
from nestream_papers.views.run import ViewRun
from nestream_papers.views.view_set import ViewSet


class BlockExecution(Execution):
    """The running blocks of a program, with the prefixes and views that they keep between batches."""

    def __init__(self, program: BlockProgram, limit: int) -> None:
        self.program = program
        self.limit = limit
        self.caches: dict[int, PreCache] = {}
        """What each group keeps, by its number."""
        self.kept_steps: dict[int, PreCache] = {}
        """The rows of each set of steps that conjuncts share, by number."""
        self.view_sets = {
            number: ViewSet(program) for number, block in enumerate(program.blocks) if block.viewed
        }
        """The views of each block that has some."""

    def operators(self, cache: EvaluationCache, *, at_once: bool, first: int = 0) -> list[BlockRun]:
        """A run for each block; that of the first block of a group runs the whole group."""
        program, evaluation = self.program, evaluation_of(self.program, cache)
        leaders = {group.members[0].block: number for number, group in enumerate(program.groups)}
        led = {member.block for group in program.groups for member in group.members[1:]}
        runs: list[BlockRun] = []
        for number, (block, decided) in enumerate(zip(program.blocks, program.decided, strict=True)):
            by_last = at_once or decided is not Decided.WINDOW
            if block.viewed:
                runs.append(ViewRun(evaluation, block, self.limit, self.view_sets[number], by_last=by_last))
            elif number in leaders:
                runs.append(self._group_run(evaluation, leaders[number], by_last=by_last))
            elif number in led:
                runs.append(InGroup(evaluation, block, self.limit, by_last=by_last))
            elif steps := self._steps_of(number):
                runs.append(SharingJoinRun(evaluation, block, self.limit, steps, by_last=by_last))
            elif is_planned(block, program.options):
                runs.append(SequenceRun(evaluation, block, self.limit, by_last=by_last))
            else:
                runs.append(OwnRun(evaluation, block, self.limit, by_last=by_last))
            runs[-1].alone = block
        return runs

    def _steps_of(self, number: int) -> list[tuple[SharedSteps, list[Use], PreCache]]:
        """The shared steps of a block that runs alone, if it has any, and what is kept of them."""
        found = []
        for place, steps in enumerate(self.program.steps):
            if uses := [use for use in steps.uses if use.block == number]:
                found.append((steps, uses, self.kept_steps.setdefault(place, PreCache(steps.core))))
        return found

    def _group_run(self, evaluation: Evaluation, number: int, *, by_last: bool) -> BlockRun:
        group, blocks = self.program.groups[number], self.program.blocks
        match group.operator:
            case Sharing.MARKING:
                return MarkingRun(evaluation, group, self.limit, by_last=by_last)
            case Sharing.SUFFIX:
                return SuffixRun(evaluation, group, blocks, self.limit, by_last=by_last)
            case Sharing.PREFIX | Sharing.MIDDLE:
                cache = self.caches.setdefault(number, PreCache(group.core))
                run = PrefixRun if group.operator is Sharing.PREFIX else MiddleRun
                return run(evaluation, group, blocks, self.limit, cache, by_last=by_last)

    def counters(self) -> list[tuple[tuple[str, ...], Counters]]:
        """What each view did, with the variables of its inner query."""
        views = (view for view_set in self.view_sets.values() for view in view_set.views)
        return [(view.inner.names, view.counters) for view in views]


def evaluation_of(program: BlockProgram, cache: EvaluationCache) -> Evaluation:
    """The evaluation of a program; those of the same window share it, and all share stacks and keys."""
    shared = cache.once(Shared, lambda: Shared(cache.events, cache.key_classes))

    def new_evaluation() -> Evaluation:
        found = Evaluation(WindowedEvents(cache.events, program), shared)
        found.prefixes = {} if cache.several else None
        return found

    window = (Evaluation, program.measure, program.window, program.exclusive)
    return cache.once(window, new_evaluation).for_program(program)
