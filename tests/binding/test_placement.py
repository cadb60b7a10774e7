"""Where predicates stand in the plan: the innermost expression that binds what they need, seen in explain."""

from __future__ import annotations

import json

import pytest

import nestream


def explain(text: str) -> list[str]:
    """The logical plan, without how the engine runs it."""
    lines: list[str] = nestream.query(text).explain().splitlines()
    return lines[: lines.index("Engine")]


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, SEQ(B b, C c, b.id = c.id), D d) WITHIN 9",
        "SEQ(A a, SEQ(B b, C c), D d, b.id = c.id) WITHIN 9",
        "SEQ((A a : b.id = c.id), SEQ(B b, C c), D d) WITHIN 9",
        "SEQ(A a, SEQ(B b, C c), D d) WHERE b.id = c.id WITHIN 9",
    ],
)
def test_where_a_predicate_is_written_does_not_change_the_plan(text: str) -> None:
    assert explain(text) == [
        "Match [a, b, c, d]",
        "  window: 9",
        "  WinSeq",
        "    A a",
        "    WinSeq [simple: b.id = c.id]",
        "      B b",
        "      C c",
        "    D d",
    ]


def test_a_predicate_on_an_outer_and_an_inner_event_is_correlated_and_stands_inside() -> None:
    assert "    ! WinSeq [correlated: b.id = a.id]" in explain(
        "SEQ(A a, !SEQ(B b, C c, b.id = a.id), D d) WITHIN 9"
    )


def test_a_predicate_on_two_siblings_stands_around_both() -> None:
    lines = explain("SEQ(SEQ(A a, B b), SEQ(C c, D d), a.id = d.id) WITHIN 9")
    assert lines[2] == "  WinSeq [simple: a.id = d.id]"


def test_a_predicate_of_an_or_stands_with_its_branch() -> None:
    assert explain("SEQ(A a, OR(B b, C c, b.id = a.id)) WITHIN 9")[4:] == [
        "    WinOr",
        "      B b [correlated: b.id = a.id]",
        "      C c",
    ]


def test_a_predicate_never_moves_into_a_negation_it_was_not_written_with() -> None:
    lines = explain("SEQ(A a, !(B b, a.id = 1), C c, a.id = 2) WITHIN 9")
    assert lines[2:] == [
        "  WinSeq [simple: a.id = 2]",
        "    A a",
        "    ! B b [correlated: a.id = 1]",
        "    C c",
    ]


def test_conjunctions_are_taken_apart() -> None:
    lines = explain("SEQ(A a, SEQ(B b, C c), a.id = 1 AND b.id = 2 AND c.id = a.id) WITHIN 9")
    assert lines[2] == "  WinSeq [simple: a.id = 1]"
    assert lines[4] == "    WinSeq [simple: b.id = 2; correlated: c.id = a.id]"


def test_a_disjunction_stays_whole() -> None:
    lines = explain("SEQ(A a, SEQ(B b, C c), a.id = 1 OR b.id = 2) WITHIN 9")
    assert lines[4] == "    WinSeq [correlated: a.id = 1 OR b.id = 2]"


def test_an_equivalence_test_is_written_out_as_comparisons_with_one_event() -> None:
    assert explain("EVENT SEQ(A x, !(B y), C z) WHERE [id] WITHIN 9")[2:] == [
        "  WinSeq [simple: x.id = z.id]",
        "    A x",
        "    ! B y [correlated: x.id = y.id]",
        "    C z",
    ]


def test_a_disjunction_over_a_negation_becomes_a_union() -> None:
    assert explain("EVENT SEQ(A x, !(B y), C z) WHERE y.n = 1 OR y.n = 2 WITHIN 9")[2:] == [
        "  WinOr",
        "    WinSeq",
        "      A x",
        "      ! B y [simple: y.n = 1]",
        "      C z",
        "    WinSeq",
        "      A x",
        "      ! B y [simple: y.n = 2]",
        "      C z",
    ]


def test_explain_shows_the_output_the_window_and_the_limit() -> None:
    lines = explain("EVENT SEQ(A x, B y) WITHIN 2 hours RETURN y, x.id AS `the id` LIMIT 5")
    assert lines[:3] == ["Match [y, x.id AS `the id`]", "  window: 2 hours, exclusive", "  limit: 5"]


def test_explain_as_json_is_stable() -> None:
    text = "EXISTS c : SEQ(A a, !(B b, b.id = a.id), C c, a.id > 1) WITHIN 5 EVENTS RETURN a LIMIT 3"
    query = nestream.query(text)
    found = query.explain(format="json")
    assert json.dumps(found) == json.dumps(nestream.query(text).explain(format="json"))
    assert [block["variables"] for block in found.pop("engine")] == [["a", "c"]]
    assert found == {
        "output": {"columns": [{"name": "a", "variable": "a"}], "distinct": True},
        "window": {"kind": "events", "size": 5, "text": "5 EVENTS", "exclusive": False},
        "limit": 3,
        "root": {
            "node": "WinSeq",
            "predicates": [{"text": "a.id > 1", "kind": "simple"}],
            "components": [
                {"node": "Leaf", "variable": "a", "types": ["A"], "predicates": []},
                {
                    "node": "Negation",
                    "body": {
                        "node": "Leaf",
                        "variable": "b",
                        "types": ["B"],
                        "predicates": [{"text": "b.id = a.id", "kind": "correlated"}],
                    },
                },
                {"node": "Leaf", "variable": "c", "types": ["C"], "predicates": []},
            ],
        },
    }


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="text or json"):
        nestream.query("A a").explain(format="yaml")
