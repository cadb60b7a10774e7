"""The one layout of a query."""

from __future__ import annotations

import pytest

from nestream.language.parser import parse
from nestream.language.printer import print_query, saved_spelling
from nestream.model.text import print_expression, print_name
from nestream.model.time import Duration

LAYOUTS = [
    ("a", "PATTERN a"),
    ("seq( A a,B b )within 1 hour", "PATTERN SEQ(A a, B b)\nWITHIN 1 hour"),
    (
        "EVENT SEQ(X x, !(Y y), Z z) WHERE [id] ∧ x.a ≠ z.a WITHIN 12 hours",
        "EVENT SEQ(X x, !Y y, Z z)\nWHERE [id] AND x.a != z.a\nWITHIN 12 hours",
    ),
    (
        "SEQ((A a, a.x = 1, a.y), !(B b : b.x = a.x), NOT SEQ(C c)) RETURN a, a.x AS y LIMIT 3",
        "PATTERN SEQ((A a : a.x = 1, a.y), !(B b, b.x = a.x), !SEQ(C c))\nRETURN a, a.x AS y\nLIMIT 3",
    ),
    ("A a OR B b AND C c", "PATTERN OR(A a, AND(B b, C c))"),
    ("∃x,y. SEQ(X x, Y y)", "PATTERN EXISTS x, y : SEQ(X x, Y y)"),
    ("ANY(A,B) x WITHIN 90 min", "PATTERN ANY(A, B) x\nWITHIN 90 minutes"),
    ("`a b` `or`", "PATTERN `a b` `or`"),
    ("`plain` `x-1`", "PATTERN plain x-1"),
    ("A a WHERE x = 'it''s \"so\"'", 'PATTERN A a\nWHERE x = "it\'s ""so"""'),
    (
        "A a WHERE t > TIMESTAMP '2026-01-01T12:00Z' AND u > DATE '2026-01-01' AND v < 1.50 hours",
        'PATTERN A a\nWHERE t > TIMESTAMP "2026-01-01 12:00:00+00:00"\n'
        '  AND u > TIMESTAMP "2026-01-01 00:00:00"\n  AND v < 90 minutes',
    ),
    ("A a WITHIN 100 events", "PATTERN A a\nWITHIN 100 EVENTS"),
    ("A a WITHIN unbounded", "PATTERN A a\nWITHIN UNBOUNDED"),
]

ONE_OF_EACH_UNIT = ["1 us", "1 ms", "1 s", "1 minute", "1 hour", "1 day", "1 week", "1 EVENT"]


@pytest.mark.parametrize(("text", "printed"), LAYOUTS)
def test_a_short_query_has_a_line_for_each_clause(text: str, printed: str) -> None:
    assert print_query(parse(text)) == printed


@pytest.mark.parametrize("window", ONE_OF_EACH_UNIT)
def test_one_of_a_unit_is_printed_in_the_singular(window: str) -> None:
    plural = window if len(window) == 4 or window == "1 s" else f"{window}s"
    assert print_query(parse(f"A a WITHIN {plural}")) == f"PATTERN A a\nWITHIN {window}"
    assert print_query(parse(f"A a WITHIN {window}")) == f"PATTERN A a\nWITHIN {window}"


def test_a_duration_of_minus_one_hour_is_singular_too_and_none_is_plural() -> None:
    assert str(Duration(-3_600_000_000)) == "-1 hour"
    assert [str(Duration(0)), str(Duration(7_200_000_000))] == ["0 s", "2 hours"]


def test_the_spelling_of_saved_states_is_plural_outside_of_strings_and_names() -> None:
    printed = 'PATTERN SEQ(b-1 hour, `1 day` d, d.x = "1 hour", d.y > -1 hour, d.z = 1 week)\nWITHIN 1 EVENT'
    saved = 'PATTERN SEQ(b-1 hour, `1 day` d, d.x = "1 hour", d.y > -1 hours, d.z = 1 weeks)\nWITHIN 1 EVENTS'
    assert print_query(parse(printed)) == printed
    assert saved_spelling(printed) == saved


def test_a_long_pattern_has_a_line_for_each_component() -> None:
    text = """
        PATTERN SEQ(Recycle r, Washing w,
                    ! SEQ(Sharpening s, Disinfection d, !(Checking c, c.id = d.id), s.id = d.id = o.id,
                          s.temperature > 80 OR d.temperature > 80),
                    (Operating o : o.ins-type = "surgery", o.id = w.id),
                    !(Disinfection e, e.id = r.id, e.started > r.ts, e.finished < o.ts,
                      e.room = o.room AND e.ok),
                    r.id = w.id = o.id)
        WITHIN 1 hour
        RETURN r, w, o.id AS tool, o.ts - r.ts AS turnaround_of_the_tool, coalesce(o.room, "unknown") AS room
    """
    printed = """\
PATTERN SEQ(
  Recycle r,
  Washing w,
  !SEQ(
    Sharpening s,
    Disinfection d,
    !(Checking c, c.id = d.id),
    s.id = d.id = o.id,
    s.temperature > 80 OR d.temperature > 80
  ),
  (Operating o : o.ins-type = "surgery", o.id = w.id),
  !(
    Disinfection e,
    e.id = r.id,
    e.started > r.ts,
    e.finished < o.ts,
    e.room = o.room AND e.ok
  ),
  r.id = w.id = o.id
)
WITHIN 1 hour
RETURN
  r,
  w,
  o.id AS tool,
  o.ts - r.ts AS turnaround_of_the_tool,
  coalesce(o.room, "unknown") AS room"""
    assert print_query(parse(text)) == printed
    assert print_query(parse(printed)) == printed


def test_a_line_of_88_columns_is_not_broken_and_one_of_89_is() -> None:
    for name, lines in (("b" * 68, 1), ("b" * 69, 4)):
        printed = print_query(parse(f"SEQ(A a, B {name})"))
        assert len(printed.splitlines()) == lines
        assert len(printed.splitlines()[0]) == (88 if lines == 1 else 12)


def test_a_long_where_has_a_line_for_each_formula() -> None:
    operands = [f"alpha_{number} = {number}" for number in range(8)]
    printed = print_query(parse(f"A a WHERE {' AND '.join(operands)}"))
    assert printed == "PATTERN A a\nWHERE " + "\n  AND ".join(operands)
    printed = print_query(parse(f"A a WHERE {' OR '.join(operands)} AND x"))
    assert printed.splitlines()[-1] == "  OR alpha_7 = 7 AND x"


FORMULAS = [
    "a.x = 1 OR b.x = 2 AND NOT c.x = 3",
    "(a.x = 1 OR b.x = 2) AND c.x = 3",
    "NOT (a.x = 1 AND b.x = 2)",
    "NOT NOT a.x",
    "a.x - b.x - c.x",
    "a.x - (b.x - c.x)",
    "a.x + (b.x + c.x)",
    "(a.x + b.x) * c.x / 2 % 3",
    "-(a.x + 1) * -b.x - -2",
    "--a.x",
    "(a.x = b.x) = c.x",
    "(a.x IS NULL) = TRUE",
    "a.x + 1 NOT IN (1, a.y OR b.y)",
    "a.x NOT BETWEEN 1 AND -2 AND b.x IS NOT NULL",
    "coalesce(a.x, abs(-b.x), 10 minutes) > 0 s",
    '[id] AND [name = "John"] AND (x OR [other = -1])',
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_has_the_parentheses_that_it_needs_and_no_more(text: str) -> None:
    formula = parse(f"A a WHERE {text}").where
    assert formula is not None
    assert print_expression(formula) == text


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("a", "a"),
        ("ins-type", "ins-type"),
        ("été", "été"),
        ("x-1", "x-1"),
        ("a-", "`a-`"),
        ("1a", "`1a`"),
        ("a b", "`a b`"),
        ("a`b", "`a``b`"),
        ("within", "`within`"),
        ("ſeq", "`ſeq`"),
        ("a\n", "`a\n`"),
        ("", "``"),
    ],
)
def test_a_name_is_quoted_where_it_must_be(name: str, printed: str) -> None:
    assert print_name(name) == printed
