"""Conjuncts and leaf components that have steps in common take the rows of these, which are built once."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nestream.query import query
from nestream_papers.engine.program import BlockProgram
from nestream_papers.sharing.conjuncts import SharingJoin
from nestream_papers.sharing.prefix import PreCache
from tests.papers.sharing.unions import _branch, compiled, dense_history, local, rows
from tests.papers.tools import at_work, events

several = settings(max_examples=30, deadline=None)

EXAMPLE_10 = """
    AND(SEQ(Recycle r, Washing w, Sharpening s, Disinfection d, Checking c),
        SEQ(Operating o, Washing w2, Sharpening s2, Disinfection d2, Checking c2))
    WITHIN 20
"""
STEPS = [
    "Recycle",
    "Operating",
    *2 * ["Washing"],
    *2 * ["Sharpening"],
    *2 * ["Disinfection"],
    *2 * ["Checking"],
]


def of_example_10() -> pa.Table:
    """Two rows of the common steps that can be told apart: c16 and c17 are checked."""
    return pa.table({"ts": [1, 2, 3, 4, 6, 7, 9, 10, 16, 17], "type": STEPS})


def random_conjunction(random: Random) -> tuple[str, pa.Table, str]:
    """Sequences with steps in common: of an AND, of one inside a SEQ, or of the ANDs of an OR."""
    core = random.choices("AB", k=2)
    gap = random.choice(("", "", "!D {0}"))
    keyed, compared = random.random() < 0.3, random.random() < 0.3
    parts = []
    for number in range(2):
        before, after = (random.choices("ABC", k=random.choice((0, 0, 1))) for _ in range(2))
        between = ["" for _ in before], ["" if random.random() < 0.8 else "!E {0}" for _ in after]
        gaps = [*between[0], gap if random.random() < 0.8 else "!(D {0}, {0}.x > 1)", *between[1]]
        parts.append(_branch(random, number, [*before, *core, *after], gaps, len(before), compared, keyed))
    branches = ", ".join(parts)
    text = random.choice(
        (
            f"AND({branches})",
            f"AND({branches}, v00.id = v10.id)",
            f"AND({branches}, B y, y.x > 0)",
            f"SEQ(A z, AND({branches}), C y)",
            f"SEQ(AND({branches}), !D n, B y)",
            f"OR(AND({branches}), AND(SEQ(A p, B q, C r), SEQ(A p2, B q2)))",
        )
    )
    window = random.choice(("9", "14", "16 EVENTS"))
    order = random.choice(("time", "time", "arrival"))
    return f"{text} WITHIN {window}", dense_history(random, random.randrange(12, 21)), order


def shared(text: str, table: pa.Table, order: str = "time") -> BlockProgram:
    """The program of a query as it is written, with what its conjuncts share."""
    return compiled(query(text), table, order, [])


@several
@given(st.integers(0, 2**32))
def test_conjuncts_that_share_rows_give_the_matches_of_the_reference(seed: int) -> None:
    text, table, order = random_conjunction(Random(seed))
    chosen, program = query(text), shared(text, table, order)
    assert program.steps
    run = local(chosen, table, program)
    found = pa.concat_tables([run.wanted.empty_table(), *run.over(table)])
    assert rows(found) == rows(chosen.match(table, order=order, strategy="reference"))


@several
@given(st.integers(0, 2**32))
def test_conjuncts_that_share_rows_give_the_same_in_any_batches(seed: int) -> None:
    random = Random(seed)
    text, table, order = random_conjunction(random)
    chosen = query(text)
    times = table.column("ts").to_pylist()
    run = local(chosen, table, shared(text, table, order))
    parts, done = [run.wanted.empty_table()], 0
    while done < len(times):
        size = random.choice((1, 2, 5))
        run.append(table.slice(done, size))
        done += size
        parts += run.advance(times[min(done, len(times)) - 1])
    parts += run.finish()
    assert rows(pa.concat_tables(parts)) == rows(chosen.match(table, order=order, strategy="reference"))


def test_example_10_the_suffix_of_both_conjuncts_is_constructed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    taken: list[int] = []
    add, bound = PreCache._add, SharingJoin.bound

    def adding(self: PreCache, *given: object) -> bool:
        before = len(self)
        room = add(self, *given)  # type: ignore[arg-type]
        built.append(len(self) - before)
        return room

    def binding(self: SharingJoin, bindings: object, name: str, *rest: object) -> object:
        taken.append(name in ("c", "c2"))
        return bound(self, bindings, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PreCache, "_add", adding)
    monkeypatch.setattr(SharingJoin, "bound", binding)
    chosen, table = query(EXAMPLE_10), of_example_10()
    run = local(chosen, table, shared(EXAMPLE_10, table))
    found = pa.concat_tables(run.over(table))
    assert rows(found) == rows(chosen.match(table, strategy="reference"))
    assert found.num_rows == 2**4  # the two rows that a match has are without a common event
    assert sum(built) == 2**4
    assert sum(taken) >= 2


def test_example_10_explain_says_what_is_shared() -> None:
    shown = query(EXAMPLE_10).explain(strategy="flat")
    assert "Shared by conjuncts: rows of (w, s, d, c) of 1 and (w2, s2, d2, c2) of 1, built once" in shown
    data = query(EXAMPLE_10).explain(format="json", strategy="flat")
    assert data["shared by conjuncts"] == [
        [
            {"block": 1, "variables": ["w", "s", "d", "c"]},
            {"block": 1, "variables": ["w2", "s2", "d2", "c2"]},
        ]
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("AND(SEQ(A a, B b, C c), SEQ(A a2, B b2, D d))", [("a", "b"), ("a2", "b2")]),
        ("AND(SEQ(D d, A a, B b, C c), SEQ(E e, A a2, B b2, D d2))", [("a", "b"), ("a2", "b2")]),
        ("SEQ(E e, AND(SEQ(A a, B b), SEQ(A a2, B b2)), D d)", [("a", "b"), ("a2", "b2")]),
        ("OR(AND(SEQ(A a, B b), D d), AND(SEQ(A a2, B b2), E e))", [("a", "b"), ("a2", "b2")]),
    ],
    ids=["prefixes", "middles", "leaf components", "of several disjuncts"],
)
def test_the_longest_common_steps_are_shared(text: str, names: list[tuple[str, ...]]) -> None:
    (steps,) = shared(f"{text} WITHIN 9", events("a1")).steps
    assert [use.names for use in steps.uses] == names


def test_what_all_conjuncts_say_of_their_common_steps_is_tested_once() -> None:
    text = (
        "AND(SEQ(A a, !C n, B b, a.id = b.id, a.x < b.x),"
        " SEQ(D d, A a2, !C n2, B b2, a2.id = b2.id, a2.x < b2.x, d.x < b2.x)) WITHIN 9"
    )
    (steps,) = shared(text, events("a1")).steps
    assert steps.core.key == {"a": ("id",), "b": ("id",)}
    assert (len(steps.core.predicates), len(steps.core.negations)) == (1, 1)
    assert [len(use.tested) for use in steps.uses] == [2, 2]


def test_steps_that_are_too_many_to_keep_are_joined_event_by_event() -> None:
    text = "AND(SEQ(A a, B b, C c), SEQ(A a2, B b2, D d)) WITHIN 100"
    history = events(" ".join([*(f"a{n}" for n in range(7)), *(f"b{n}" for n in range(10, 17)), "c20 d21"]))
    run = local(query(text), history, shared(text, history))
    at_work(run.matcher).limit = run.matcher.limit = 4
    found = sum(part.num_rows for part in run.over(history))
    assert found == np.square(7 * 6)
    assert [len(cache) for cache in at_work(run.matcher).kept_steps.values()] == [0]
