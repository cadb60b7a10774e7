"""The figures of the SASE paper: what the stacks hold, and what each operator lets through."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nestream
from nestream_papers.engine.context import Bindings
from nestream_papers.options import Options
from nestream_papers.sase import basic
from nestream_papers.sase.plan import BASIC, PAPER, is_planned
from nestream_papers.sase.run import SequenceRun
from tests.papers.tools import evaluation_over, program

ATTRIBUTES = ("attr1", "attr2", "attr4")
SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("type", pa.string()),
        *((n, pa.int64()) for n in ATTRIBUTES),
        ("attr3", pa.string()),
    ]
)
STREAM = "a1 c2 b3 a4 d5 b6 d7 c8 d9"
PARTITIONS = {"a1": 1, "c2": 1, "b3": 1, "a4": 2, "d5": 1, "b6": 2, "d7": 1, "c8": 2, "d9": 2}
Q3 = """
    EVENT SEQ(A x1, B x2, ! (C x3), D x4)
    WHERE [attr1, attr2] AND x1.attr3 = '1' AND x1.attr4 < x4.attr4
    WITHIN 6
"""


def table(**values: dict[str, int]) -> pa.Table:
    """Events by their labels, each with its attributes; the others are 1, and 2 for attr4 of a D."""
    rows = [
        {
            "ts": int(label[1:]),
            "type": label[0].upper(),
            "attr1": own.get("attr1", 1),
            "attr2": own.get("attr2", 1),
            "attr3": "1",
            "attr4": 2 if label[0] == "d" else 1,
        }
        for label, own in values.items()
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


FIGURE_1 = table(**{label: {"attr1": value} for label, value in PARTITIONS.items()})
FIGURE_5 = table(
    a1={"attr1": 1, "attr2": 1},
    a2={"attr1": 2, "attr2": 3},
    a3={"attr1": 1, "attr2": 3},
    b5={"attr1": 2, "attr2": 1},
    b6={"attr1": 1, "attr2": 3},
)


def run_of(text: str, events: pa.Table, options: Options, **switches: Any) -> SequenceRun:
    """The sequence of a query by SASE's plan."""
    evaluation = evaluation_over(text, events, **{**asdict(options), **switches})
    (block,) = evaluation.program.blocks
    assert is_planned(block, evaluation.program.options)
    return SequenceRun(evaluation, block, 1000, by_last=True)


def labels(run: SequenceRun, rows: Any) -> list[str]:
    store = run.evaluation.store
    names = run.evaluation.store.events.types
    return [f"{names[store.type[row]].lower()}{store.ts[row]}" for row in rows]


def stacks(run: SequenceRun) -> list[list[str]]:
    return [labels(run, state.stack.rows) for state in run.states]


def recent(run: SequenceRun, level: int) -> dict[str, str]:
    """The most recent instance in the previous stack of each instance of a state."""
    before, state = run.states[level - 1], run.states[level]
    return dict(
        zip(
            labels(run, state.stack.rows),
            labels(run, before.stack.rows[state.recent - 1]),
            strict=True,
        )
    )


def shown(run: SequenceRun, found: list[Bindings]) -> list[str]:
    """Sequences as text."""
    rows = [column for part in found for column in zip(*part.rows.values(), strict=True)]
    return sorted(" ".join(labels(run, row)) for row in rows)


def constructed(run: SequenceRun, first: int = 0, end: int = 1000) -> list[Bindings]:
    return list(run.construction.sequences(run.accepting(first, end)))


D9 = (8, 9)
"""The position of d9."""
THREE = ["a1 b3 d9", "a1 b6 d9", "a4 b6 d9"]
SEQUENCE = "EVENT SEQ(A x1, B x2, D x4) WITHIN UNBOUNDED"


def test_figure_2_the_runtime_stack_is_searched_from_the_accepting_event_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_of(SEQUENCE, FIGURE_1, BASIC)
    looked_at: list[int] = []
    found = basic._Found.__init__

    def noted(self: Any, search: Any, run: Any, cell: Any) -> None:
        looked_at.extend(cell.tolist())
        found(self, search, run, cell)

    monkeypatch.setattr(basic._Found, "__init__", noted)
    assert shown(run, constructed(run, *D9)) == THREE
    assert looked_at == list(range(8)), "all that came before d9 is looked at, whatever its type"


def test_figure_3_each_stack_has_its_instances_and_each_instance_the_most_recent_before_it() -> None:
    run = run_of(SEQUENCE, FIGURE_1, PAPER, partition=False)
    assert stacks(run) == [["a1", "a4"], ["b3", "b6"], ["d5", "d7", "d9"]]
    assert recent(run, 1) == {"b3": "a1", "b6": "a4"}
    assert recent(run, 2) == {"d5": "b3", "d7": "b6", "d9": "b6"}
    assert shown(run, constructed(run, *D9)) == THREE


def test_figure_4_stacks_are_partitioned_and_an_event_without_a_stack_before_it_is_dropped() -> None:
    text = "EVENT SEQ(A x1, B x2, D x4) WHERE [attr1] WITHIN UNBOUNDED"
    run = run_of(text, FIGURE_1, PAPER)
    assert stacks(run) == [["a1", "a4"], ["b3", "b6"], ["d5", "d7", "d9"]]
    assert recent(run, 1) == {"b3": "a1", "b6": "a4"}
    assert recent(run, 2) == {"d5": "b3", "d7": "b3", "d9": "b6"}
    assert shown(run, constructed(run, *D9)) == ["a4 b6 d9"]
    other = table(a1={"attr1": 1}, b2={"attr1": 2}, b3={"attr1": 1})
    assert stacks(run_of("EVENT SEQ(A x, B y) WHERE [attr1] WITHIN 9", other, PAPER)) == [["a1"], ["b3"]]


PAIR = "EVENT SEQ(A x1, B x2) WHERE [attr1, attr2] WITHIN 100"


def test_figure_5_multi_pais_drops_b5_and_makes_two_sequences_of_b6() -> None:
    run = run_of(PAIR, FIGURE_5, PAPER, multiple=True, filtering=False)
    assert [sorted(stack) for stack in stacks(run)] == [["a1", "a2", "a3"], ["b6"]]
    assert len(shown(run, constructed(run))) == 2, "the stacks of one attribute forget the other"
    assert shown(run, [run.selection(part) for part in constructed(run)]) == ["a3 b6"]


def test_figure_5_dynamic_filtering_keeps_b5_and_makes_one_sequence() -> None:
    run = run_of(PAIR, FIGURE_5, PAPER)
    assert [sorted(stack) for stack in stacks(run)] == [["a1", "a2", "a3"], ["b5", "b6"]]
    assert shown(run, constructed(run)) == ["a3 b6"]


def test_figure_5_by_selection_three_sequences_are_made() -> None:
    run = run_of(PAIR, FIGURE_5, PAPER, filtering=False)
    assert len(shown(run, constructed(run))) == 3
    assert shown(run, [run.selection(part) for part in constructed(run)]) == ["a3 b6"]


def test_figure_1_seven_sequences_three_after_selection_two_in_the_window_one_at_last() -> None:
    run = run_of(Q3, FIGURE_1, BASIC)
    made = constructed(run)
    assert len(shown(run, made)) == 7
    selected = [run.selection(part) for part in made]
    assert shown(run, selected) == ["a1 b3 d5", "a1 b3 d7", "a4 b6 d9"]
    within = [run.window(part) for part in selected]
    assert shown(run, within) == ["a1 b3 d5", "a4 b6 d9"]
    assert shown(run, [run.negation(part) for part in within]) == ["a1 b3 d5"]


def test_figure_6_only_two_sequences_are_made() -> None:
    run = run_of(Q3, FIGURE_1, PAPER)
    made = constructed(run)
    assert shown(run, made) == ["a1 b3 d5", "a4 b6 d9"]
    assert shown(run, [run.negation(run.selection(part)) for part in made]) == ["a1 b3 d5"]


@pytest.mark.parametrize("options", [BASIC, PAPER, Options()], ids=["basic", "optimised", "our own"])
def test_the_plans_of_q3_find_the_same_match(options: Options) -> None:
    matches = nestream.query(Q3).match(FIGURE_1, options=options)
    times = [[row[name]["ts"] for name in ("x1", "x2", "x4")] for row in matches.to_pylist()]
    assert times == [[1, 3, 5]]


# -- windows -----------------------------------------------------------------------------------------------

WINDOWED = "EVENT SEQ(A x1, B x2, D x4) WITHIN 4"
SPARSE = table(a1={}, b2={}, a7={}, b8={}, d9={}, b20={}, d21={})


def test_windows_in_the_scan_keep_events_out_of_the_stacks() -> None:
    run = run_of(WINDOWED, SPARSE, PAPER)
    assert stacks(run) == [["a1", "a7"], ["b2", "b8"], ["d9"]]
    everything = run_of(WINDOWED, SPARSE, PAPER, window_scan=False)
    assert stacks(everything) == [["a1", "a7"], ["b2", "b8", "b20"], ["d9", "d21"]]


def test_windows_in_the_scan_prune_a_stack_when_an_event_looks_into_it() -> None:
    run = run_of(WINDOWED, SPARSE, PAPER, window_construction=False)
    assert shown(run, constructed(run)) == ["a7 b8 d9"], "b8 pruned the As, d9 the Bs"
    late = table(a1={}, b2={}, a3={}, b4={}, d6={})
    run = run_of(WINDOWED, late, PAPER, window_construction=False)
    assert shown(run, constructed(run)) == ["a1 b4 d6", "a3 b4 d6"], "nothing looked at the As after b4"
    assert shown(run, [run.window(part) for part in constructed(run)]) == ["a3 b4 d6"]


def test_windows_in_the_construction_stop_it() -> None:
    run = run_of(WINDOWED, SPARSE, PAPER, window_scan=False)
    assert shown(run, constructed(run)) == ["a7 b8 d9"]


def test_without_windows_in_either_all_sequences_are_made_and_tested() -> None:
    run = run_of(WINDOWED, SPARSE, PAPER, window_scan=False, window_construction=False)
    made = constructed(run)
    assert len(shown(run, made)) == 8
    assert shown(run, [run.window(part) for part in made]) == ["a7 b8 d9"]


# -- which plan is taken -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "switches", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 5", {}, False),
        ("SEQ(A a, B b) WITHIN 5", {"stacks": False}, True),
        ("SEQ(A a, B b) WITHIN 5", {"reach": False}, True),
        ("SEQ(A a, B b) WITHIN 5", {"window_scan": False}, True),
        ("SEQ(A a, B b) WITHIN 5", {"composite": False, "filtering": False}, False),
        ("SEQ(A a, B b, a.id = b.id) WITHIN 5", {"composite": False}, False),
        ("SEQ(A a, B b, a.id = b.id, a.x = b.x) WITHIN 5", {"composite": False}, True),
        ("SEQ(A a, B b, a.id = b.id) WITHIN 5", {"partition": False}, True),
        ("SEQ(A a, B b) WITHIN 5", {"partition": False}, False),
        ("SEQ(A a, B b, C c, a.id = b.id) WITHIN 5", {"filtering": False}, True),
        ("AND(A a, B b) WITHIN 5", {"stacks": False}, False),
        ("SEQ(A a, AND(B b, C c)) WITHIN 5", {"stacks": False}, False),
        ("AND(A a) WITHIN 5", {"stacks": False}, False),
    ],
)
def test_a_sequence_is_run_by_the_plan_where_a_switch_that_matters_is_off(
    text: str, switches: dict[str, bool], expected: bool
) -> None:
    made = program(text, **switches)
    (block,) = made.blocks
    assert is_planned(block, made.options) is expected


def test_the_most_selective_equivalence_test_partitions_the_stacks() -> None:
    wide = [{"ts": n, "type": "AB"[n % 2], "attr1": n % 3, "attr2": n, "attr4": 0} for n in range(40)]
    run = run_of(PAIR, pa.Table.from_pylist(wide, SCHEMA), PAPER)
    assert run.plan.partition == ({"x1": "attr2", "x2": "attr2"},)
    assert {test.left[1] for test in run.plan.construction} == {"attr1"}


def test_every_negative_event_is_looked_at_without_an_index() -> None:
    text = "EVENT SEQ(A x, !(C y), D z) WHERE [attr1] WITHIN 100"
    events = table(**{f"{'acccd'[n % 5]}{n + 1}": {"attr1": n // 5} for n in range(50)})
    sizes = {}
    for index in (True, False):
        evaluation = evaluation_over(text, events, bounds=False, negation_index=index)
        (block,) = evaluation.program.blocks
        run = SequenceRun(evaluation, block, 1000, by_last=True)
        inner = run.new_join()
        inner.negation = block.negations[0]
        inner.block = block.negations[0].block
        rows = {name: np.array([row]) for name, row in (("x", 0), ("z", 4))}
        sizes[index] = int(inner.range("y", Bindings(rows, 1))[2][0])
    assert sizes == {True: 3, False: 30}


WAYS = {
    "selection": {"filtering": False},
    "Multi-PAIS": {"multiple": True, "filtering": False},
    "dynamic filtering": {},
    "both": {"multiple": True},
    "no partition": {"partition": False},
    "no stacks": {"stacks": False},
    "no stacks, selection": {"stacks": False, "filtering": False},
}


@pytest.mark.parametrize("way", WAYS)
def test_null_equals_nothing_in_an_equivalence_test(way: str) -> None:
    rows = [
        {"ts": ts, "type": kind, "attr1": one, "attr2": two}
        for ts, kind, one, two in (
            (1, "A", 1, None),
            (2, "A", None, 1),
            (3, "A", 1, 1),
            (4, "A", 2, 2),
            (5, "B", 1, None),
            (6, "B", None, 1),
            (7, "B", 1, 1),
        )
    ]
    events = pa.Table.from_pylist(rows, SCHEMA)
    run = run_of(PAIR, events, PAPER, **WAYS[way])
    assert shown(run, list(run.run(0, 7))) == ["a3 b7"]


MANY = pa.Table.from_pylist(
    [{"ts": n, "type": "ABAC"[n % 4], "attr1": n % 3, "attr2": n % 2, "attr4": n % 5} for n in range(60)],
    SCHEMA,
)
UNEQUAL = "EVENT SEQ(A x, B y, C z) WHERE [attr1] AND x.attr4 != z.attr4 WITHIN 40"


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return sorted(map(repr, nestream.query(UNEQUAL).match(MANY, strategy="reference").to_pylist()))


@pytest.mark.parametrize("way", WAYS)
def test_pieces_of_any_size_give_the_same(way: str, expected: list[str]) -> None:
    assert len(expected) > 20
    for memory in (1, 700, 2**30):
        options = Options(**{**asdict(PAPER), **WAYS[way], "memory": memory})
        found = nestream.query(UNEQUAL).match(MANY, options=options)
        assert sorted(map(repr, found.to_pylist())) == expected
