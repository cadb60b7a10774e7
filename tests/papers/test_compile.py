"""From plan to program: which negations are bounds and why, their edges, when a match is decided."""

from __future__ import annotations

import pytest

from nestream.engine.program import Decided, Edge
from nestream.query import query
from nestream_papers.engine.program import Negation
from nestream_papers.options import Options
from nestream_papers.plan.compile import edges
from tests.papers.tools import only_negation, program

BOUNDS = {
    "SEQ(A a, !B b, C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !(B b, b.x > 3), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !(B b, b.id = a.id), C c, a.id = c.id) WITHIN 9": "its condition holds",
    "SEQ(A a, !(B b, b.id = a.id), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !SEQ(B b, D d), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !SEQ(B b, D d, b.id = d.id), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !AND(B b, D d), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !SEQ(B b, !E e, D d), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !SEQ(B b, !SEQ(E e, !F f, G g), D d), C c) WITHIN 9": "its condition holds",
    "SEQ(A a, !B b) WITHIN 9": "its condition holds",
    "AND(A a, !B b) WITHIN 9": "its condition holds",
}
JOINS = {
    "SEQ(A a, !(B b, b.x > a.x), C c) WITHIN 9": "a predicate relates its events by more than key equality",
    "SEQ(A a, !SEQ(B b, D d, b.x < d.x), C c) WITHIN 9": (
        "a predicate relates its events by more than key equality"
    ),
    "SEQ(A a, !SEQ(B b, D d, b.id = a.id), C c) WITHIN 9": (
        "its equalities do not form one key over all its events"
    ),
    "SEQ(A a, !AND(B b, B d), C c) WITHIN 9": (
        "an event could play two of its variables, or one of the match's"
    ),
    "SEQ(A a, !SEQ(B b, !E e), C c) WITHIN 9": (
        "a negation inside it looks up to the limits of the outer interval"
    ),
    "SEQ(A a, !SEQ(B b, !(E e, e.x > b.x), D d), C c) WITHIN 9": "a negation inside it is not a bound",
    "SEQ(A a, !AND(SEQ(B b, !E e, D d), F f), C c) WITHIN 9": (
        "it has a negation inside that is not between two events of a sequence"
    ),
    "SEQ(A a, !SEQ(B b, !(E e, e.x = a.x), D d, b.id = d.id = a.id), C c) WITHIN 9": (
        "a negation inside it has another key"
    ),
}


@pytest.mark.parametrize("text", BOUNDS)
def test_a_negation_is_a_bound_where_its_condition_holds(text: str) -> None:
    negation = only_negation(program(text))
    assert negation.stair is not None
    assert negation.reason == BOUNDS[text]
    assert "bound" in query(text).explain(options=Options())


@pytest.mark.parametrize("text", JOINS)
def test_elsewhere_it_is_a_join_for_a_reason_that_is_told(text: str) -> None:
    negation = only_negation(program(text))
    assert negation.stair is None
    assert negation.reason == JOINS[text]
    assert f"lateral join: {JOINS[text]}" in query(text).explain(options=Options())


@pytest.mark.parametrize("text", BOUNDS)
def test_with_bounds_switched_off_every_negation_is_a_join(text: str) -> None:
    negation = only_negation(program(text, bounds=False))
    assert (negation.stair, negation.reason) == (None, "bounds are switched off")


def negations(text: str) -> list[Negation]:
    (block,) = program(text).blocks
    return list(block.negations)


@pytest.mark.parametrize(
    ("text", "after", "before"),
    [
        ("SEQ(A a, !B b, C c) WITHIN 9", ("a",), ("c",)),
        ("SEQ(!B b, C c) WITHIN 9", Edge.WINDOW_START, ("c",)),
        ("SEQ(A a, !B b) WITHIN 9", ("a",), Edge.WINDOW_END),
        ("AND(A a, !B b) WITHIN 9", Edge.WINDOW_START, Edge.MATCH_END),
        ("SEQ(AND(A a, D d), !B b, C c) WITHIN 9", ("a", "d"), ("c",)),
        ("SEQ(A a, AND(C c, !B b), D d) WITHIN 9", ("a",), ("d",)),
        ("SEQ(A a, AND(C c, !B b)) WITHIN 9", ("a",), Edge.WINDOW_END),
        ("SEQ(A a, SEQ(C c, !B b), D d) WITHIN 9", ("c",), ("d",)),
        ("AND(SEQ(!B b, C c), D d) WITHIN 9", Edge.WINDOW_START, ("c",)),
        ("AND(SEQ(C c, !B b), D d) WITHIN 9", ("c",), Edge.MATCH_END),
    ],
)
def test_the_interval_of_a_negation_reaches_to_its_neighbours_or_an_edge(
    text: str, after: object, before: object
) -> None:
    (negation,) = negations(text)
    assert (negation.interval.after, negation.interval.before) == (after, before)


def test_the_edges_of_a_block_are_found_at_any_depth() -> None:
    (block,) = program("SEQ(A a, !SEQ(B b, !C c)) WITHIN 9").blocks
    assert edges(block) == {Edge.WINDOW_END}
    (block,) = program("SEQ(A a, !SEQ(!C c, B b), D d) WITHIN 9").blocks
    assert edges(block) == set()


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ("SEQ(A a, !B b, C c) WITHIN 9", Decided.LAST),
        ("SEQ(!B b, C c) WITHIN 9", Decided.LAST),
        ("AND(A a, C c) WITHIN 9", Decided.LAST),
        ("SEQ(A a, !B b) WITHIN 9", Decided.WINDOW),
        ("SEQ(A a, AND(C c, !B b)) WITHIN 9", Decided.WINDOW),
        ("AND(A a, !B b) WITHIN 9", Decided.CLOSED),
        ("AND(A a, SEQ(C c, !B b)) WITHIN 9", Decided.CLOSED),
    ],
)
def test_a_match_is_decided_by_the_furthest_edge_it_looks_up_to(text: str, decided: Decided) -> None:
    assert program(text).decided == (decided,)


def test_every_branch_of_an_or_is_a_block_with_its_own_decision() -> None:
    made = program("OR(A a, SEQ(B b, !C c), AND(D d, !E e)) WITHIN 9")
    assert made.decided == (Decided.LAST, Decided.WINDOW, Decided.CLOSED)
    assert [tuple(block.leaves) for block in made.blocks] == [("a",), ("b",), ("d",)]


def test_single_event_predicates_go_into_the_leaves_and_equal_leaves_are_one() -> None:
    made = program("SEQ((A a : a.x > 1), (A b : b.x > 1), A c) WITHIN 9")
    (block,) = made.blocks
    assert block.leaves == {"a": 0, "b": 0, "c": 1}
    assert block.predicates == ()


@pytest.mark.parametrize(
    ("text", "key", "rest"),
    [
        ("SEQ(A a, B b, a.id = b.id) WITHIN 9", {"a": ("id",), "b": ("id",)}, 0),
        ("SEQ(A a, B b, a.id = b.x) WITHIN 9", {"a": ("id",), "b": ("x",)}, 0),
        ("SEQ(A a, B b, a.id = b.id, a.x = b.x) WITHIN 9", {"a": ("id", "x"), "b": ("id", "x")}, 0),
        ("SEQ(A a, B b, C c, a.id = b.id) WITHIN 9", None, 1),
        ("SEQ(A a, B b, C c, a.id = b.id = c.id, a.x = b.x) WITHIN 9", dict.fromkeys("abc", ("id",)), 1),
    ],
)
def test_the_key_is_what_is_equal_in_all_variables_and_the_rest_is_looked_up(
    text: str, key: object, rest: int
) -> None:
    (block,) = program(text).blocks
    assert (block.key, len(block.equalities)) == (key, rest)
    (block,) = program(text, partition=False).blocks
    assert block.key is None


def test_the_engine_section_of_explain_is_stable() -> None:
    text = """
        SEQ(A a, !SEQ(B b, !E e, C c, b.id = c.id = a.id), (D d : d.x > 1), !(F f, f.x > d.x), a.id = d.id)
        WITHIN 9
    """
    assert query(text).explain(options=Options()).partition("Engine\n")[2].splitlines() == [
        "  Chain (a, d), by key id, leaves filtered by d.x > 1; "
        "a match is emitted when the window of its first event has passed",
        "    ! (b, c) after a before d: bound by key id: its condition holds",
        "      ! (e) after b before c: bound: its condition holds",
        "    ! (f) after d to the window's end: lateral join: "
        "a predicate relates its events by more than key equality",
    ]
    (engine,) = query(text).explain("json", options=Options())["engine"]
    assert engine["method"] == "chain"
    assert engine["decided"] == "when the window of its first event has passed"
    assert [negation["method"] for negation in engine["negations"]] == ["bound", "lateral join"]
    assert [inner["method"] for inner in engine["negations"][0]["inside"]] == ["bound"]
