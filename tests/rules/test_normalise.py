"""Normal forms of random plans: the same query, one form in whatever order, within the limit."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nestream.logical.nodes import (
    Component,
    Leaf,
    Negation,
    Plan,
    Proj,
    WinAnd,
    WinOr,
    WinSeq,
    Witness,
    is_constraint,
    target_variables,
    walk,
)
from nestream.logical.text import disjuncts_text
from nestream.query import query
from nestream_papers.rewrite.forms import (
    Conjunctive,
    Disjunctive,
    Nested,
    NestedAndSeq,
    disjuncts,
    expressions,
    form_of,
)
from nestream_papers.rewrite.normalise import Redex, normalise
from nestream_papers.rewrite.parts import children
from nestream_papers.rewrite.rule import Place, Rule
from nestream_papers.rewrite.rules import RULES
from tests.generators.choices import DrawnChoices
from tests.generators.histories import random_history, types_of
from tests.generators.queries import GENERAL, any_query, make_query
from tests.property.meaning import matches_of

EXAMPLES = int(os.environ.get("REWRITE_EXAMPLES", "150"))
many = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


NEGATED = replace(
    GENERAL,
    most_positive=3,
    nested=15,
    nested_negation=85,
    negation=60,
    any_of_types=5,
    inner=((5, "SEQ"), (5, "AND"), (2, "OR")),
    roots=((7, "SEQ"), (3, "AND")),
    exists=2,
    sase=10,
    limit=0,
    returns=5,
)
"""Negations of SEQ, AND and OR, and negations inside them."""


@st.composite
def queries(draw: st.DrawFn) -> str:
    choices = DrawnChoices(draw)
    return make_query(choices, NEGATED) if draw(st.booleans()) else any_query(choices)


def plan_of(text: str) -> Plan:
    return query(f"{text} WITHIN 10" if "WITHIN" not in text else text).plan


# -- whole plans -------------------------------------------------------------------------------------------


@many
@given(queries(), st.integers(0, 2**32 - 1))
def test_a_plan_and_its_normal_form_have_the_same_matches_after_every_step(text: str, seed: int) -> None:
    plan = query(text).plan
    chance = random.Random(seed)
    normalised = normalise(plan, chance.choice((3, 64)))
    table = random_history(chance, types=types_of(text))
    order = chance.choice(("time", "arrival"))
    expected = matches_of(plan, table, order)
    for step in normalised.steps:
        assert matches_of(step.plan, table, order) == expected, step.rule
    assert matches_of(normalised.plan, table, order) == expected


@many
@given(queries(), st.integers(0, 2**32 - 1))
def test_the_rules_lead_to_one_form_in_any_order(text: str, seed: int) -> None:
    plan = query(text).plan
    chance = random.Random(seed)
    limit = chance.choice((3, 24))
    expected = normalise(plan, limit)
    found = normalise(plan, limit, choose=chance.choice)
    assert disjuncts_text(found.plan.root) == disjuncts_text(expected.plan.root)
    assert found.plan == expected.plan
    assert found.kept == expected.kept
    assert type(found.form) is type(expected.form)


@many
@given(queries())
def test_rewriting_ends_within_the_limit_where_nothing_is_left_to_rewrite(text: str) -> None:
    plan = query(text).plan
    normalised = normalise(plan, 12)
    assert len(disjuncts(normalised.plan.root)) <= max(12, len(disjuncts(plan.root)))
    again = normalise(normalised.plan, 12)
    if not any("disjuncts" in kept.reason for kept in normalised.kept):
        assert not again.steps
        assert again.kept == normalised.kept


@many
@given(queries())
def test_a_normal_form_binds_what_the_query_binds_and_has_constraints_only_on_gaps(text: str) -> None:
    plan = query(text).plan
    normalised = normalise(plan)
    assert target_variables(normalised.plan.root) == target_variables(plan.root)
    for part in walk(normalised.plan.root):
        if isinstance(part, WinSeq | WinAnd):
            held = [inner for inner in part.components if is_constraint(inner)]
            assert all(isinstance(inner, Negation | Witness) for inner in held)
    nested = isinstance(normalised.form, Nested)
    assert nested == bool(normalised.kept)
    assert all(kept.reason != "a rule is left out" for kept in normalised.kept)
    for disjunct in disjuncts(normalised.plan.root):
        witnessed = any(isinstance(part, Witness) for part in walk(disjunct))
        assert isinstance(disjunct, Proj) == witnessed


# -- forms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "form", "count"),
    [
        ("A a", Disjunctive, 1),
        ("SEQ(A a, !B b, C c)", Disjunctive, 1),
        ("OR(A a, SEQ(B b, C c))", Disjunctive, 2),
        ("AND(A a, SEQ(B b, !C c, D d))", Conjunctive, 2),
        ("AND(A a, !B b)", NestedAndSeq, 1),
        ("SEQ(A a, AND(B b, C c))", NestedAndSeq, 1),
        ("OR(SEQ(A a, AND(B b, C c)), D d)", NestedAndSeq, 2),
        ("OR(AND(A a, B b), C c)", NestedAndSeq, 2),
        ("SEQ(A a, SEQ(B b, C c))", Nested, 1),
        ("AND(A a, AND(B b, C c))", Nested, 1),
        ("SEQ(A a, OR(B b, C c))", Nested, 1),
        ("SEQ(A a, !SEQ(B b, C c))", Nested, 1),
    ],
)
def test_a_form_is_recognised(text: str, form: type, count: int) -> None:
    found = form_of(plan_of(text).root)
    assert type(found) is form
    assert len(expressions(found)) == count


def test_a_witness_is_part_of_a_sequence_and_a_proj_is_around_it() -> None:
    normalised = normalise(plan_of("SEQ(A a, !SEQ(B b, C c), D d)"))
    assert isinstance(normalised.form, Disjunctive)
    first, second = expressions(normalised.form)
    assert isinstance(first, WinSeq)
    assert second == Proj(("a", "d"), WinSeq((first.components[0], witness("b", "c"), first.components[2])))


def witness(absent: str, *chain: str) -> Witness:
    return Witness(tuple(Leaf(name, (name.upper(),)) for name in chain), Leaf(absent, (absent.upper(),)))


# -- limit -------------------------------------------------------------------------------------------------


def test_beyond_the_limit_the_widest_negation_keeps_its_form() -> None:
    plan = plan_of("SEQ(A a, !SEQ(B b, C c, D d), E e, !SEQ(A a2, B b2), C c2)")
    assert len(disjuncts(normalise(plan, 6).plan.root)) == 6
    normalised = normalise(plan, 5)
    assert len(disjuncts(normalised.plan.root)) == 2
    assert [(kept.part, kept.reason) for kept in normalised.kept] == [
        ("!SEQ(B b, C c, D d)", "its 3 alternatives would make more than 5 disjuncts")
    ]


def test_a_query_of_many_ors_is_not_multiplied_out() -> None:
    ors = ", ".join(f"OR(A a{n}, B b{n}, SEQ(C c{n}, D d{n}))" for n in range(9))
    normalised = normalise(plan_of(f"SEQ({ors})"))
    assert 1 < len(disjuncts(normalised.plan.root)) <= 64
    assert {kept.reason for kept in normalised.kept} == {
        "its 3 alternatives would make more than 64 disjuncts"
    }


def test_a_negation_of_many_ors_is_not_multiplied_out() -> None:
    ors = ", ".join(f"OR(A a{n}, B b{n}, C c{n})" for n in range(8))
    normalised = normalise(plan_of(f"SEQ(D d, !SEQ({ors}), E e)"))
    assert not normalised.steps
    (kept,) = normalised.kept
    assert kept.reason == "its more than 64 alternatives would make more than 64 disjuncts"


def test_a_root_or_may_have_more_branches_than_the_limit() -> None:
    plan = plan_of(f"OR({', '.join(f'SEQ(A a{n}, OR(B b{n}, C c{n}))' for n in range(5))})")
    assert len(disjuncts(normalise(plan, 3).plan.root)) == 5


# -- how it is applied -------------------------------------------------------------------------------------


def test_a_rule_that_breaks_a_plan_is_named() -> None:
    def broken(component: Component, place: Place) -> Component | None:
        inner = children(component)
        return WinSeq(inner[1:]) if isinstance(component, WinSeq) and len(inner) > 1 else None

    with pytest.raises(
        AssertionError, match="after the rule “forget the first”: the output keeps a variable"
    ):
        normalise(plan_of("SEQ(A a, B b)"), rules=[Rule("forget the first", "none", broken)])


def test_steps_name_each_rule_once_in_a_row_and_every_plan_differs() -> None:
    plan = plan_of("SEQ(A a, !SEQ(OR(B b, C c), D d), OR(A a2, SEQ(C c2, D d2)), SEQ(E e, !B b2))")
    steps = normalise(plan).steps
    assert all(left.rule != right.rule and left.plan != right.plan for left, right in pairwise(steps))


def test_a_place_to_rewrite_is_chosen_by_the_caller() -> None:
    seen: list[int] = []

    def last(found: object) -> Redex:
        assert isinstance(found, list)
        seen.append(len(found))
        chosen = found[-1]
        assert isinstance(chosen, Redex)
        return chosen

    plan = plan_of("SEQ(SEQ(A a, B b), OR(C c, D d))")
    assert normalise(plan, choose=last).plan == normalise(plan).plan
    assert seen[0] == 2


def test_a_rule_can_be_left_out() -> None:
    some = [rule for rule in RULES if "distribute" not in rule.name]
    normalised = normalise(plan_of("SEQ(A a, OR(B b, C c))"), rules=some)
    assert not normalised.steps
    assert [kept.reason for kept in normalised.kept] == ["a rule is left out"]
    assert isinstance(normalised.plan.root, WinSeq)
    assert isinstance(normalised.plan.root.components[1], WinOr)
