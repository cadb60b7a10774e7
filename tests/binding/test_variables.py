"""Target and free variables as NEEL+ defines them, and how what the query leaves unnamed is named."""

from __future__ import annotations

import pytest

import nestream
from nestream.logical.nodes import Component, Negation, WinSeq, free_variables, target_variables


def root(text: str) -> WinSeq:
    node = nestream.query(text).plan.root
    assert isinstance(node, WinSeq)
    return node


def both(component: Component) -> tuple[set[str], set[str]]:
    return set(target_variables(component)), set(free_variables(component))


def test_the_first_example_of_neel_plus_part_by_part() -> None:
    sequence = root("EXISTS c : SEQ((A a), !(B b : b.id = a.id), (C c)) WITHIN 9")
    _, negation, _ = sequence.components
    assert isinstance(negation, Negation)
    assert both(negation.body) == ({"b"}, {"a", "b"})
    assert both(negation) == (set(), {"a"})
    assert both(sequence) == ({"a", "c"}, {"a", "c"})


def test_the_first_example_returns_what_is_not_dropped() -> None:
    query = nestream.query("EXISTS c : SEQ((A a), !(B b : b.id = a.id), (C c)) WITHIN 9")
    assert query.plan.output.kept == ("a",)


def test_the_second_example_has_the_outer_variables_as_targets() -> None:
    query = nestream.query("SEQ((A a, !B b, !SEQ(C c, D d), E e)) WITHIN 9")
    assert query.target_variables == query.free_variables == {"a", "e"}


def test_the_third_example_is_rejected() -> None:
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query("SEQ((A a: a.id = b.id), !SEQ(B b, C c), D d) WITHIN 9")
    assert [found.code for found in raised.value.diagnostics] == ["negated-variable"]


def test_an_or_has_the_variables_of_all_branches() -> None:
    query = nestream.query("OR(A a, SEQ(B b, !C c, D d)) WITHIN 9")
    assert query.target_variables == {"a", "b", "d"}


def test_a_positive_part_that_mentions_an_outer_variable_has_it_free() -> None:
    sequence = root("SEQ(A a, SEQ(B b, C c, b.id = a.id)) WITHIN 9")
    assert both(sequence.components[1]) == ({"b", "c"}, {"a", "b", "c"})


def test_a_type_serves_as_variable_where_it_is_unambiguous() -> None:
    assert nestream.query("SEQ(A, B b) WITHIN 9").plan.variables == ("A", "b")


def test_ambiguous_components_are_numbered() -> None:
    assert nestream.query("SEQ(A, A, B) WITHIN 9").plan.variables == ("A_1", "A_2", "B")


def test_numbers_avoid_variables_of_the_query() -> None:
    assert nestream.query("SEQ(A, B A_1, A) WITHIN 9").plan.variables == ("A_2", "A_1", "A_3")


def test_a_component_of_several_types_is_named_by_all() -> None:
    assert nestream.query("SEQ(ANY(A, B), C) WITHIN 9").plan.variables == ("A_or_B", "C")
