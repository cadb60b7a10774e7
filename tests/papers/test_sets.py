"""What the programs of a query set share in the papers' engine."""

from __future__ import annotations

import pyarrow as pa

import nestream
from nestream.model.schema import Schema
from nestream.runtime.query_set import SetRun
from nestream_papers.engine.chain import Chain
from nestream_papers.execution import evaluation_of
from nestream_papers.options import Options
from tests.papers.tools import in_blocks
from tests.sets.test_queries import EVENTS, TEXTS


def test_what_queries_share_is_built_once() -> None:
    schema = Schema.of(pa.Table.from_pylist(EVENTS).schema, "ts", "type")
    renamed = TEXTS["negated"].replace(" a,", " first,").replace("a.id", "first.id")
    run = nestream.queries([TEXTS["negated"], renamed]).run(schema, options=Options())
    assert isinstance(run, SetRun)
    run.append(pa.Table.from_pylist(EVENTS))
    run.store.seal()
    cache = run.matchers.cache()
    programs = [in_blocks(member.program) for member in run.runs]
    first, second = (evaluation_of(program, cache) for program in programs)
    negations = [program.blocks[0].negations[0] for program in programs]
    assert first.staircases.of(negations[0]) is second.staircases.of(negations[1])
    leaf = programs[0].blocks[0].leaves["b"]
    assert first.stack(leaf, ("id",)) is second.stack(leaf, ("id",))


def test_the_steps_that_sequences_begin_with_are_made_once() -> None:
    schema = Schema.of(pa.Table.from_pylist(EVENTS).schema, "ts", "type")
    texts = [
        "SEQ(A a, !(D d, d.id = a.id), B b, C c, a.id = b.id = c.id) WITHIN 9",
        "SEQ(A x, !(D y, y.id = x.id), B z, D w, x.id = z.id = w.id) WITHIN 9",
        "SEQ(A a, B b, C c, a.id = b.id = c.id) WITHIN 9",
    ]
    run = nestream.queries(texts).run(schema, options=Options())
    assert isinstance(run, SetRun)
    run.append(pa.Table.from_pylist(EVENTS))
    run.store.seal()
    cache = run.matchers.cache()
    programs = [in_blocks(member.program) for member in run.runs]
    chains = [Chain(evaluation_of(program, cache), program.blocks[0], 1_000) for program in programs]
    assert [first is second for first, second in zip(chains[0].steps, chains[1].steps, strict=True)] == [
        True,
        True,
        False,
    ]
    assert [first is third for first, third in zip(chains[0].steps, chains[2].steps, strict=True)] == [
        True,
        False,
        False,
    ]
