"""Witnesses, ORs of constraints and Proj, which only rewritten plans have, by the reference evaluator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nestream.logical.explain import explain, explain_json
from nestream.logical.invariants import PlanInvariantError, check_plan
from nestream.logical.nodes import (
    Component,
    Leaf,
    Negation,
    Node,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    free_variables,
    leaves,
    positive,
    target_variables,
)
from nestream.logical.text import expression_text
from nestream.model.expression import Attribute, Comparison
from nestream.query import query
from nestream.reference import Order, evaluate
from tests.corpus.notation import read_history
from tests.property.meaning import events_of

A, B, C, D, E = (Leaf(name.lower(), (name,)) for name in "ABCDE")


def plan_of(root: Node, window: str = "10") -> Plan:
    """A plan with that root, and the window and output of a query over the same types."""
    plan = query(f"SEQ(A a, !B b, !C c, !D d, E e) WITHIN {window}").plan
    return check_plan(replace(plan, root=root), "the test")


def matches(root: Node, events: str, order: Order = Order.TIME, window: str = "10") -> list[tuple[int, ...]]:
    found = evaluate(plan_of(root, window), events_of(read_history(events, {}).table()), order)
    return [tuple(match.events[name].ts for name in ("a", "e") if name in match.events) for match in found]


def between(*constraints: Component) -> WinSeq:
    return WinSeq((A, *constraints, E))


CHAIN = Witness((C, D), B)


@pytest.mark.parametrize(
    ("events", "holds"),
    [
        ("a1 e9", False),
        ("a1 d5 e9", False),
        ("a1 c4 d5 e9", True),
        ("a1 b3 c4 d5 e9", False),
        ("a1 c4 b4 d5 e9", True),  # at the same time is not before
        ("a1 d2 b3 c4 d5 e9", False),  # the latest D decides
        ("a1 b3 c4 d5 c6 d7 e9", False),
        ("a1 c3 d4 b5 c6 d7 e9", False),
        ("a1 c3 b4 d5 e9", True),
        ("b0 a1 c4 d5 e9", True),  # outside of the gap
        ("c0 a1 d5 e9", False),
        ("a1 c4 d5 d9 e9", True),
        ("a1 c5 d5 e9", False),
    ],
)
def test_a_witness_is_the_latest_chain_of_its_gap_with_nothing_absent_before_it(
    events: str, holds: bool
) -> None:
    assert matches(between(CHAIN), events) == ([(1, 9)] if holds else [])


def test_a_witness_without_anything_absent_is_a_chain_that_occurs() -> None:
    assert matches(between(Witness((C, D))), "a1 b2 c3 d4 c5 e9") == [(1, 9)]
    assert matches(between(Witness((C, D))), "a1 d4 c5 e9") == []


def test_arrival_orders_a_witness_where_it_orders_the_match() -> None:
    assert matches(between(CHAIN), "a1 c5 d5 e9", Order.ARRIVAL) == [(1, 9)]
    assert matches(between(CHAIN), "a1 b5 c5 d5 e9", Order.ARRIVAL) == []


def test_predicates_of_a_witness_may_mention_the_match() -> None:
    same = replace(C, predicates=(Comparison("=", (Attribute("c", "id"), Attribute("a", "id"))),))
    assert matches(between(Witness((same,))), "a1(id=1) c2(id=2) e9(id=1)") == []
    assert matches(between(Witness((same,))), "a1(id=1) c2(id=1) e9(id=1)") == [(1, 9)]


def test_an_event_of_the_match_is_no_witness_of_it() -> None:
    another = Leaf("c", ("A",))
    assert matches(WinAnd((A, E, Witness((another,)))), "a1 e2") == []
    assert matches(WinAnd((A, E, Witness((another,)))), "a1 a2 e2") == [(1, 2), (2, 2)]


def test_a_leading_and_a_trailing_witness_look_as_far_as_a_negation_would() -> None:
    assert matches(WinSeq((Witness((C,)), A, E)), "c0 a4 e9", window="9") == [(4, 9)]
    assert matches(WinSeq((Witness((C,)), A, E)), "c0 a4 e9", window="8") == []
    assert matches(WinSeq((A, E, Witness((C,)))), "a4 e9 c12", window="8") == [(4, 9)]
    assert matches(WinSeq((A, E, Witness((C,)))), "a4 e9 c13", window="8") == []


def test_an_or_of_constraints_holds_if_one_does_and_an_and_if_all_do() -> None:
    either = between(WinOr((Negation(D), CHAIN)))
    assert matches(either, "a1 b2 e9") == [(1, 9)]
    assert matches(either, "a1 c2 d3 e9") == [(1, 9)]
    assert matches(either, "a1 d3 e9") == []
    both = between(WinOr((Negation(D), WinAnd((Witness((C,)), Negation(B))))))
    assert matches(both, "a1 c2 d3 e9") == [(1, 9)]
    assert matches(both, "a1 b2 c2 d3 e9") == []
    assert positive(both) == (A, E)


def test_a_proj_has_the_matches_of_its_body() -> None:
    root = WinOr((Proj(("a", "e"), between(CHAIN)), between(Negation(D))))
    assert matches(root, "a1 c4 d5 e9") == matches(between(CHAIN), "a1 c4 d5 e9")
    assert target_variables(root) == free_variables(root) == {"a", "e"}
    assert [leaf.variable for leaf in leaves(between(CHAIN))] == ["a", "b", "c", "d", "e"]


def test_a_branch_in_a_proj_is_a_root() -> None:
    root = Proj(("a", "e"), WinAnd((A, E, Witness((C,)))))
    assert matches(root, "a1 e2 c3") == []  # a root AND ends with its last event
    assert matches(Proj(("a", "e"), WinSeq((A, E, Witness((C,))))), "a1 e2 c3") == [(1, 2)]


@pytest.mark.parametrize(
    ("root", "problem"),
    [
        (between(Witness(())), "a witness without an event"),
        (between(Witness((B,), B)), "names a variable twice"),
        (WinOr((A, Negation(B))), "binds events and a constraint"),
        (WinSeq((Negation(B),)), "without a positive component"),
        (WinAnd((Negation(B), Witness((C,)))), "a constraint as the root"),
        (WinSeq((A, Proj(("e",), E))), "neither the root nor a branch"),
        (Proj(("a",), WinSeq((A, E))), "does not name the variables"),
        (
            between(
                Witness(
                    (C, replace(D, predicates=(Comparison("=", (Attribute("d", "x"), Attribute("c", "x"))),)))
                )
            ),
            r"mentions \['c'\]",
        ),
    ],
)
def test_a_plan_that_no_rewriting_may_produce_is_found(root: Node, problem: str) -> None:
    with pytest.raises(PlanInvariantError, match=problem):
        plan_of(root)


def test_a_rewritten_plan_is_explained() -> None:
    plan = plan_of(WinOr((between(Negation(D)), Proj(("a", "e"), between(CHAIN)))))
    assert explain(plan).splitlines()[2:] == [
        "  WinOr",
        "    WinSeq",
        "      A a",
        "      ! D d",
        "      E e",
        "    Proj [a, e]",
        "      WinSeq",
        "        A a",
        "        ! B b, latest C c, latest D d",
        "        E e",
    ]
    proj = explain_json(plan)["root"]["components"][1]
    assert (proj["node"], proj["variables"]) == ("Proj", ["a", "e"])
    witness = proj["body"]["components"][1]
    assert (witness["node"], witness["absent"]["variable"]) == ("Witness", "b")
    assert [leaf["variable"] for leaf in witness["chain"]] == ["c", "d"]
    assert expression_text(Proj(("a", "e"), between(CHAIN))) == "Proj[a, e] SEQ(A a, !B b, C c, D d, E e)"
    either = between(WinOr((Negation(D), CHAIN)))
    assert expression_text(either) == "SEQ(A a, OR(!D d, (!B b, C c, D d)), E e)"
