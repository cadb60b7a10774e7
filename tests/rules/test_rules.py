"""Every rule by its fixtures: what it makes of a plan, and that both sides have the same matches."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import random

import pytest

from nestream.logical.invariants import check_plan
from nestream.logical.nodes import Negation, Plan, WinOr, WinSeq, Witness
from nestream.logical.text import expression_text
from nestream.model.expression import Attribute, Comparison, Literal
from nestream.query import query
from nestream_papers.rewrite import rules
from nestream_papers.rewrite.normalise import everywhere, normalise, redexes
from nestream_papers.rewrite.rule import Place, Refused, Rule
from nestream_papers.rewrite.rules.distribute_over_sequence import DISTRIBUTE_OVER_SEQUENCE
from nestream_papers.rewrite.rules.flatten_disjunction import FLATTEN_DISJUNCTION
from nestream_papers.rewrite.rules.negation_over_disjunction import NEGATION_OVER_DISJUNCTION
from nestream_papers.rewrite.rules.predicates_of_disjunction import PREDICATES_OF_DISJUNCTION
from tests.generators.histories import TYPES, random_history, types_of
from tests.property.meaning import complete, matches_of
from tests.rules.fixtures_of import BY_FILE, Fixture, fixtures

FIXTURES = fixtures()
WINDOWS = ("12", "4", "6 EVENTS", "UNBOUNDED")
HISTORIES = 32


def place_of(plan: Plan) -> Place:
    return Place(order={name: rank for rank, name in enumerate(plan.variables)})


def applied(rule: Rule, plan: Plan) -> Plan:
    """The plan with the rule applied wherever it applies."""
    root = everywhere(rule, plan.root, place_of(plan))
    assert not isinstance(root, Negation | Witness)
    return check_plan(Plan(**{**vars(plan), "root": root}), rule.name)


def before(fixture: Fixture, window: str) -> Plan:
    plan = complete(query(f"{fixture.before} WITHIN {window}").plan)
    for rule in fixture.first:
        plan = applied(rule, plan)
    return plan


@pytest.mark.parametrize("fixture", [f for f in FIXTURES if f.after is not None], ids=str)
def test_a_rule_makes_of_a_plan_what_its_fixture_shows(fixture: Fixture) -> None:
    assert expression_text(applied(fixture.rule, before(fixture, "8")).root) == fixture.after


@pytest.mark.parametrize("fixture", [f for f in FIXTURES if f.refused is not None], ids=str)
def test_a_rule_refuses_where_its_law_does_not_hold(fixture: Fixture) -> None:
    plan = before(fixture, "8")
    assert not list(redexes([fixture.rule], plan.root, place_of(plan)))
    assert [kept.reason for kept in normalise(plan).kept] == [fixture.refused]


@pytest.mark.parametrize("fixture", [f for f in FIXTURES if f.after is not None], ids=str)
def test_both_sides_of_a_rule_have_the_same_matches(fixture: Fixture) -> None:
    chance = random.Random(fixture.before)
    types = types_of(fixture.before)
    found = 0
    for number in range(20 * HISTORIES):
        if number >= HISTORIES and found:
            break
        plan = before(fixture, WINDOWS[number % len(WINDOWS)])
        table = random_history(chance, 13, types if number % 2 else TYPES)
        order = "arrival" if number % 5 == 4 else "time"
        written = matches_of(complete(query(f"{fixture.before} WITHIN {plan.window}").plan), table, order)
        assert matches_of(plan, table, order) == written
        assert matches_of(applied(fixture.rule, plan), table, order) == written
        found += len(written)
    assert found, "no history has a match, so nothing was compared"


@pytest.mark.parametrize("name", sorted(BY_FILE))
def test_every_rule_has_fixtures(name: str) -> None:
    own = [fixture for fixture in FIXTURES if fixture.rule is BY_FILE[name]]
    assert len([fixture for fixture in own if fixture.after]) >= 2
    assert len({rule.name for rule in BY_FILE.values()}) == len(BY_FILE)


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(rules.__path__)])
def test_the_example_of_a_rule_is_right(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"nestream_papers.rewrite.rules.{module}"))
    assert found.failed == 0
    assert found.attempted or module not in BY_FILE


def test_what_is_about_one_branch_of_an_or_stays_with_it() -> None:
    """No text gives such a plan; a rule must not break it either."""
    plan = query("SEQ(A a, OR(B b, C c), D d) WITHIN 8").plan
    about_b = Comparison(">", (Attribute("b", "x"), Literal(1)))
    assert isinstance(plan.root, WinSeq)
    sequence = WinSeq(plan.root.components, (about_b,))
    refused = DISTRIBUTE_OVER_SEQUENCE.apply(sequence, Place())
    assert refused == Refused("something outside the OR mentions `b`, which one of its branches binds")
    assert isinstance(refused, Refused)
    kept = normalise(Plan(**{**vars(plan), "root": sequence})).kept
    assert [item.reason for item in kept] == [refused.reason]
    inner = sequence.components[1]
    assert isinstance(inner, WinOr)
    either = WinOr(inner.components, (about_b,))
    for rule, component in (
        (PREDICATES_OF_DISJUNCTION, either),
        (NEGATION_OVER_DISJUNCTION, Negation(either)),
        (FLATTEN_DISJUNCTION, WinOr((either, inner.components[0]))),
    ):
        assert rule.apply(component, Place()) == Refused("`b.x > 1` is about one branch of an OR")
