"""Shapes of expressions: what is the same in two of them, and what is not."""

import pytest

import nestream
from nestream.logical.nodes import branches
from nestream_papers.optimize.describe import shape_of, shapes_of
from nestream_papers.optimize.shape import Shape


def described(text: str) -> Shape:
    plan = nestream.query(text).plan
    return shape_of(plan, plan.root, "E1")


def test_variables_do_not_matter_for_what_is_shared() -> None:
    one = described("SEQ(A a, !X x, B b, C c, a.n < b.n, b.n > 3) WITHIN 9")
    other = described("SEQ(A k, !X y, B l, D d, l.n > 3, k.n < l.n) WITHIN 9")
    assert one.part(0, 2) == other.part(0, 2)
    assert one.part(0, 3) != other.part(0, 3)


@pytest.mark.parametrize(
    "other",
    [
        "SEQ(A a, B b, C c) WITHIN 8",
        "SEQ(A a, !X x, B b, C c) WITHIN 9",
        "SEQ(A a, B b, C c, a.n > 1) WITHIN 9",
        "SEQ(A a, B b, C c, a.n > b.n) WITHIN 9",
        "SEQ(ANY(A, Z) a, B b, C c) WITHIN 9",
        "SEQ(A a, B b, C c) WHERE [id] WITHIN 9",
    ],
)
def test_what_is_said_of_the_steps_matters(other: str) -> None:
    plain = described("SEQ(A a, B b, C c) WITHIN 9")
    assert plain.part(0, 2) != described(other).part(0, 2)


def test_a_key_is_found_through_a_chain_of_equalities() -> None:
    keyed = described("SEQ(A a, B b, C c, c.id = a.id, b.ref = a.id) WITHIN 9")
    assert keyed.key == (("id", "ref", "id"),)
    assert keyed.is_chain


def test_an_equality_beside_the_key_makes_it_no_chain() -> None:
    joined = described("SEQ(A a, B b, C c, a.id = b.id) WITHIN 9")
    assert (joined.key, joined.is_chain, joined.prefixes) == ((), False, {})


def test_an_expression_that_is_no_sequence_shares_nothing() -> None:
    both = described("AND(A a, B b, a.n < b.n) WITHIN 9")
    assert (len(both), both.ordered, both.marked) == (2, False, None)
    assert not both.middles


def test_constraints_know_their_gap_and_what_they_are_joined_with() -> None:
    text = "SEQ(!W w, A a, !(X x, x.id = a.id), B b, !(Y y, y.n > a.n), C c, !Z z) WITHIN 9"
    found = {c.text.lstrip("!")[0]: c for c in described(text).constraints}
    assert [(c.gap, c.first, c.last, c.key) for c in found.values()] == [
        (0, -1, 0, None),
        (1, 0, 1, "id"),
        (2, 0, 2, None),
        (3, 2, 3, None),
    ]
    assert [c.text[1] for c in described(text).between] == ["X"]


def test_a_constraint_on_the_same_gap_of_other_variables_is_the_same() -> None:
    texts = [
        described(f"SEQ({first}A a, !(X x, x.n > a.n), B b) WITHIN 9").constraints[0].text
        for first in ("", "K k, ")
    ]
    assert texts[0] == texts[1]


def test_branches_are_the_expressions_of_a_plan() -> None:
    plan = nestream.query("OR(SEQ(A a, B b), SEQ(C c, D d), E e) WITHIN 9").plan
    assert [shape.names for shape in shapes_of(plan, branches(plan))] == [("a", "b"), ("c", "d"), ("e",)]
