"""Every construct of the language, in each of its spellings, and the tree it stands for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nestream.language.ast import (
    Composite,
    Exists,
    Negation,
    Operator,
    Pattern,
    Primitive,
    ReturnExpression,
    ReturnVariable,
)
from nestream.language.parser import parse
from nestream.model.expression import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Equivalence,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    Value,
)
from nestream.model.time import UNBOUNDED, Duration, Window, WindowKind

A, B, C = Primitive(("A",), "a"), Primitive(("B",), "b"), Primitive(("C",), "c")
AX, BX, CX = Attribute("a", "x"), Attribute("b", "x"), Attribute("c", "x")
FIVE_MINUTES = Literal(Duration(300_000_000))
P, Q = Comparison("=", (AX, Literal(1))), Comparison(">", (BX, Literal(2)))


def seq(*components: Pattern, where: tuple[Expression, ...] = ()) -> Composite:
    return Composite(Operator.SEQ, components, where)


def either(*components: Pattern, where: tuple[Expression, ...] = ()) -> Composite:
    return Composite(Operator.OR, components, where)


def both(*components: Pattern, where: tuple[Expression, ...] = ()) -> Composite:
    return Composite(Operator.AND, components, where)


WITH_P = Primitive(("A",), "a", (P,))

PATTERNS: list[tuple[str, Pattern]] = [
    ("A", Primitive(("A",))),
    ("A a", A),
    ("PATTERN A a", A),
    ("pattern seq(A a, B b)", seq(A, B)),
    ("(A a)", A),
    ("((A a))", A),
    ("ANY(A, B) x", Primitive(("A", "B"), "x")),
    ("ANY(A, B)", Primitive(("A", "B"))),
    ("any(A, B,) x", Primitive(("A", "B"), "x")),
    ("SEQ(A a, B b)", seq(A, B)),
    ("SEQ(A a, B b,)", seq(A, B)),
    ("SEQ(A a)", seq(A)),
    ("SEQ((A a), (B b))", seq(A, B)),
    ("SEQ((A a, B b))", seq(A, B)),
    ("SEQ((A a, B b, a.x = 1))", seq(A, B, where=(P,))),
    ("AND(A a, B b)", both(A, B)),
    ("OR(A a, B b)", either(A, B)),
    ("SEQ(A a, B b, a.x = 1, b.x > 2)", seq(A, B, where=(P, Q))),
    ("SEQ(A a, B b, a.x = 1, b.x > 2,)", seq(A, B, where=(P, Q))),
    ("SEQ(A a, OR(B b, C c))", seq(A, either(B, C))),
    # infix
    ("A a OR B b", either(A, B)),
    ("A a ∨ B b", either(A, B)),
    ("A a OR B b OR C c", either(A, B, C)),
    ("A a AND B b", both(A, B)),
    ("A a ∧ B b", both(A, B)),
    ("A a AND B b OR C c", either(both(A, B), C)),
    ("A a AND (B b OR C c)", both(A, either(B, C))),
    ("A a OR (B b OR C c)", either(A, either(B, C))),
    ("A a OR OR(B b, C c)", either(A, either(B, C))),
    ("SEQ(A a OR B b, C c)", seq(either(A, B), C)),
    ("A a OR SEQ(B b, C c)", either(A, seq(B, C))),
    # negation
    ("SEQ(A a, !B b, C c)", seq(A, Negation(B), C)),
    ("SEQ(A a, NOT B b, C c)", seq(A, Negation(B), C)),
    ("SEQ(A a, ¬B b, C c)", seq(A, Negation(B), C)),
    ("SEQ(A a, ! (B b), C c)", seq(A, Negation(B), C)),
    ("SEQ(A a, (!B b), C c)", seq(A, Negation(B), C)),
    ("SEQ(A a, !!B b)", seq(A, Negation(Negation(B)))),
    ("SEQ(A a, !SEQ(B b, C c))", seq(A, Negation(seq(B, C)))),
    ("SEQ(A a, !B b OR C c)", seq(A, either(Negation(B), C))),
    ("SEQ(B b, !(A a, a.x = 1))", seq(B, Negation(WITH_P))),
    ("SEQ(B b, !(A a : a.x = 1))", seq(B, Negation(WITH_P))),
    ("SEQ(B b, !((A a) : a.x = 1))", seq(B, Negation(WITH_P))),
    ("SEQ(B b, (!A a, a.x = 1))", seq(B, Negation(WITH_P))),
    ("SEQ(B b, !A a : a.x = 1)", seq(B, Negation(WITH_P))),
    ("SEQ(C c, !(A a OR B b, a.x = 1, b.x > 2))", seq(C, Negation(either(A, B, where=(P, Q))))),
    ("SEQ(C c, !(SEQ(A a, B b), a.x = 1))", seq(C, Negation(seq(A, B, where=(P,))))),
    # predicates of a component
    ("(A a : a.x = 1)", WITH_P),
    ("A a : a.x = 1", WITH_P),
    ("(A a, a.x = 1)", WITH_P),
    ("(A a, a.x = 1,)", WITH_P),
    ("(A a : a.x = 1, b.x > 2)", Primitive(("A",), "a", (P, Q))),
    ("(A a, a.x = 1, b.x > 2)", Primitive(("A",), "a", (P, Q))),
    ("((A a : a.x = 1), b.x > 2)", Primitive(("A",), "a", (P, Q))),
    ("(SEQ(A a, B b) : a.x = 1)", seq(A, B, where=(P,))),
    ("(SEQ(A a, B b, a.x = 1) : b.x > 2)", seq(A, B, where=(P, Q))),
    ("(ANY(A, B) a : a.x = 1)", Primitive(("A", "B"), "a", (P,))),
    # projection
    ("EXISTS a : A a", Exists(("a",), A)),
    ("EXISTS a . A a", Exists(("a",), A)),
    ("∃a : A a", Exists(("a",), A)),
    ("exists a, b : SEQ(A a, B b, C c)", Exists(("a", "b"), seq(A, B, C))),
    ("EXISTS a : A a OR B b", Exists(("a",), either(A, B))),
    ("(EXISTS a : A a) OR B b", either(Exists(("a",), A), B)),
    ("EXISTS a : (A a : a.x = 1)", Exists(("a",), WITH_P)),
    ("(EXISTS a : A a, a.x = 1)", Exists(("a",), WITH_P)),
    ("SEQ(B b, EXISTS a, b : A a, C c)", seq(B, Exists(("a", "b"), A), C)),
    ("SEQ(B b, !EXISTS a : A a)", seq(B, Negation(Exists(("a",), A)))),
    ("EXISTS a : EXISTS b : SEQ(A a, B b)", Exists(("a",), Exists(("b",), seq(A, B)))),
    # names
    ("`Operating Room` o1", Primitive(("Operating Room",), "o1")),
    ("Create-profile p", Primitive(("Create-profile",), "p")),
    ("`a``b` `SEQ`", Primitive(("a`b",), "SEQ")),
    ("Größe été", Primitive(("Größe",), "été")),
    ("minutes hours", Primitive(("minutes",), "hours")),
    ("abs timestamp", Primitive(("abs",), "timestamp")),
    ("unbounded events", Primitive(("unbounded",), "events")),
]


@pytest.mark.parametrize(("text", "pattern"), PATTERNS)
def test_a_pattern_is_read(text: str, pattern: Pattern) -> None:
    assert parse(text).pattern == pattern


TS = Attribute("a", "ts")
FORMULAS: list[tuple[str, Expression]] = [
    ("a.x = 1", P),
    ("a.x == 1", P),
    ("a.x != 1", Comparison("!=", (AX, Literal(1)))),
    ("a.x <> 1", Comparison("!=", (AX, Literal(1)))),
    ("a.x ≠ 1", Comparison("!=", (AX, Literal(1)))),
    ("a.x < 1", Comparison("<", (AX, Literal(1)))),
    ("a.x <= 1", Comparison("<=", (AX, Literal(1)))),
    ("a.x ≤ 1", Comparison("<=", (AX, Literal(1)))),
    ("a.x > 1", Comparison(">", (AX, Literal(1)))),
    ("a.x >= 1", Comparison(">=", (AX, Literal(1)))),
    ("a.x ≥ 1", Comparison(">=", (AX, Literal(1)))),
    ("a.x = b.x = c.x", Comparison("=", (AX, BX, CX))),
    ("a.x=b.x==c.x", Comparison("=", (AX, BX, CX))),
    ("(a.x = b.x) = TRUE", Comparison("=", (Comparison("=", (AX, BX)), Literal(True)))),
    ("a.x", AX),
    ("TRUE", Literal(True)),
    ("false", Literal(False)),
    ("NOT a.x", Not(AX)),
    ("!a.x", Not(AX)),
    ("¬(a.x = 1)", Not(P)),
    ("NOT a.x = 1", Not(P)),
    ("a.x = 1 AND b.x > 2", And((P, Q))),
    ("a.x = 1 ∧ b.x > 2 and a.x", And((P, Q, AX))),
    ("(a.x = 1 AND b.x > 2) AND a.x", And((P, Q, AX))),
    ("a.x = 1 OR b.x > 2 ∨ a.x", Or((P, Q, AX))),
    ("a.x = 1 OR b.x > 2 AND a.x", Or((P, And((Q, AX))))),
    ("(a.x = 1 OR b.x > 2) AND a.x", And((Or((P, Q)), AX))),
    ("NOT a.x AND b.x", And((Not(AX), BX))),
    ("a.x IN (1, 'b')", In(AX, (Literal(1), Literal("b")))),
    ("a.x IN (1,)", In(AX, (Literal(1),))),
    ("a.x NOT IN (b.x)", In(AX, (BX,), negated=True)),
    ("a.x BETWEEN 1 AND 2", Between(AX, Literal(1), Literal(2))),
    ("a.x BETWEEN 1 AND 2 AND b.x", And((Between(AX, Literal(1), Literal(2)), BX))),
    ("a.x NOT BETWEEN b.x AND c.x + 1", Between(AX, BX, Arithmetic("+", CX, Literal(1)), negated=True)),
    ("a.x IS NULL", IsNull(AX)),
    ("a.x + 1 IS NOT NULL", IsNull(Arithmetic("+", AX, Literal(1)), negated=True)),
    ("a.x - b.x - c.x", Arithmetic("-", Arithmetic("-", AX, BX), CX)),
    ("a.x - (b.x - c.x)", Arithmetic("-", AX, Arithmetic("-", BX, CX))),
    ("a.x + b.x * c.x", Arithmetic("+", AX, Arithmetic("*", BX, CX))),
    ("a.x / b.x % c.x", Arithmetic("%", Arithmetic("/", AX, BX), CX)),
    ("-a.x * b.x", Arithmetic("*", Negative(AX), BX)),
    ("- -a.x", Negative(Negative(AX))),
    ("-(a.x + 1)", Negative(Arithmetic("+", AX, Literal(1)))),
    ("a.x -1", Arithmetic("-", AX, Literal(1))),
    ("a.x-1", Attribute("a", "x-1")),
    ("abs(a.x)", Call("abs", (AX,))),
    ("Lower(a.x)", Call("lower", (AX,))),
    ("UPPER(a.x)", Call("upper", (AX,))),
    ("length(a.x)", Call("length", (AX,))),
    ("coalesce(a.x, b.x, 0)", Call("coalesce", (AX, BX, Literal(0)))),
    (
        "a.ts - b.ts > 10 minutes",
        Comparison(">", (Arithmetic("-", TS, Attribute("b", "ts")), Literal(Duration(600_000_000)))),
    ),
    (
        "`Operating Room`.`ins type` = 1",
        Comparison("=", (Attribute("Operating Room", "ins type"), Literal(1))),
    ),
    ("a.ins-type = 'x'", Comparison("=", (Attribute("a", "ins-type"), Literal("x")))),
    ("a.minutes = 1", Comparison("=", (Attribute("a", "minutes"), Literal(1)))),
    ("a.x LIKE 'y%'", Call("like", (AX, Literal("y%")))),
    ("a.x NOT MATCHES 'y'", Call("not matches", (AX, Literal("y")))),
    ("'x' LIKE a.x", Call("like", (Literal("x"), AX))),
    ("a.x IN ('x' MATCHES 'y')", In(AX, (Call("matches", (Literal("x"), Literal("y"))),))),
    ("NOT 'x' LIKE 'y'", Not(Call("like", (Literal("x"), Literal("y"))))),
    ("NOT 5min LIKE 'y'", Not(Call("like", (FIVE_MINUTES, Literal("y"))))),
    ("CASE WHEN NOT 'x' THEN 5min ELSE a.x END", Call("case", (Not(Literal("x")), FIVE_MINUTES, AX))),
    (
        "CASE WHEN 5min > a.x THEN a.x ELSE 5min END",
        Call("case", (Comparison(">", (FIVE_MINUTES, AX)), AX, FIVE_MINUTES)),
    ),
]


@pytest.mark.parametrize(("text", "formula"), FORMULAS)
def test_a_formula_is_read_in_a_pattern_and_in_where(text: str, formula: Expression) -> None:
    pattern = parse(f"SEQ(A a, {text})").pattern
    assert isinstance(pattern, Composite)
    assert pattern.predicates == (formula,)
    assert parse(f"(A a : {text})").pattern == Primitive(("A",), "a", (formula,))
    assert parse(f"A a WHERE {text}").where == formula


VALUES: list[tuple[str, Value]] = [
    ("0", 0),
    ("007", 7),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
    ("-(9223372036854775808)", -(2**63)),
    ("-1", -1),
    ("- 1", -1),
    ("1.5", 1.5),
    ("1e3", 1000.0),
    ("1.5E-3", 0.0015),
    ("1e-999", 0.0),
    ("'it''s'", "it's"),
    ('"say ""yes"""', 'say "yes"'),
    ("“typed”", "typed"),
    ("‘typed’", "typed"),
    ("''", ""),
    ("'a\nb'", "a\nb"),
    ("'/* no comment */'", "/* no comment */"),
    ("TRUE", True),
    ("500 ms", Duration(500_000)),
    ("1.5 hours", Duration(5_400_000_000)),
    ("1.5HOURS", Duration(5_400_000_000)),
    ("3 us", Duration(3)),
    ("2 s", Duration(2_000_000)),
    ("1 week", Duration(604_800_000_000)),
    ("-10 minutes", Duration(-600_000_000)),
    ("1e3 ms", Duration(1_000_000)),
    ("TIMESTAMP '2026-01-01 12:00:00'", datetime(2026, 1, 1, 12)),
    ("timestamp '2026-01-01T12:00:00.25'", datetime(2026, 1, 1, 12, 0, 0, 250_000)),
    ("TIMESTAMP '2026-01-01 12:00Z'", datetime(2026, 1, 1, 12, tzinfo=UTC)),
    ("TIMESTAMP '2026-01-01 14:00:00+02:00'", datetime(2026, 1, 1, 12, tzinfo=UTC)),
    ("TIMESTAMP '2026-01-01 06:30 -0530'", datetime(2026, 1, 1, 12, tzinfo=UTC)),
    ("TIMESTAMP '2026-01-01'", datetime(2026, 1, 1)),
    ("DATE '2026-01-01'", datetime(2026, 1, 1)),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_constant_is_read(text: str, value: Value) -> None:
    read = parse(f"A a WHERE x = {text}").where
    assert isinstance(read, Comparison)
    literal = read.operands[1]
    assert literal == Literal(value)
    assert isinstance(literal, Literal)
    assert type(literal.value) is type(value)


WINDOWS = [
    ("1 hours", Window(WindowKind.TIME, 3_600_000_000)),
    ("1 hour", Window(WindowKind.TIME, 3_600_000_000)),
    ("10 min", Window(WindowKind.TIME, 600_000_000)),
    ("1.5 hours", Window(WindowKind.TIME, 5_400_000_000)),
    ("500 ms", Window(WindowKind.TIME, 500_000)),
    ("10ms", Window(WindowKind.TIME, 10_000)),
    ("100", Window(WindowKind.NUMBER, 100)),
    ("100 EVENTS", Window(WindowKind.EVENTS, 100)),
    ("1 events", Window(WindowKind.EVENTS, 1)),
    ("1 event", Window(WindowKind.EVENTS, 1)),
    ("UNBOUNDED", UNBOUNDED),
    ("unbounded", UNBOUNDED),
]


@pytest.mark.parametrize(("text", "window"), WINDOWS)
def test_a_window_is_read(text: str, window: Window) -> None:
    query = parse(f"A a WITHIN {text}")
    assert query.window == window
    assert query.window_span.start == len("A a ")


def test_where_takes_attributes_without_variables_and_equivalences() -> None:
    query = parse("EVENT SEQ(A a, B b) WHERE [id] ∧ [name='John', ward] AND category = 'food' AND flag")
    assert query.where == And(
        (
            Equivalence("id"),
            Equivalence("name", Literal("John")),
            Equivalence("ward"),
            Comparison("=", (Attribute(None, "category"), Literal("food"))),
            Attribute(None, "flag"),
        )
    )
    assert parse("A a WHERE [x = -1]").where == Equivalence("x", Literal(-1))
    assert parse("A a WHERE NOT [a, b]").where == Not(And((Equivalence("a"), Equivalence("b"))))


def test_return_takes_variables_and_named_expressions() -> None:
    query = parse("SEQ(A a, B b) RETURN a, `b`, a.x AS tool, b.ts - a.ts AS turnaround, a.x")
    assert query.returns == (
        ReturnVariable("a"),
        ReturnVariable("b"),
        ReturnExpression(AX, "tool"),
        ReturnExpression(Arithmetic("-", Attribute("b", "ts"), TS), "turnaround"),
        ReturnExpression(AX, None),
    )


def test_a_query_has_all_its_clauses() -> None:
    query = parse("PATTERN A a WHERE x WITHIN 5 RETURN a LIMIT 3")
    assert query.where == Attribute(None, "x")
    assert query.window == Window(WindowKind.NUMBER, 5)
    assert query.returns == (ReturnVariable("a"),)
    assert query.limit == 3
    assert not query.sase


def test_the_name_of_the_whole_pattern_may_stand_before_any_clause() -> None:
    for clause in ("", "WHERE [x]", "WITHIN 5", "RETURN s", "KEEP FIRST", "LIMIT 3"):
        pattern = parse(f"SEQ(A a, B b) s {clause}").pattern
        assert isinstance(pattern, Composite)
        assert pattern.variable == "s"
    assert parse("SEQ(A a, B b) keep KEEP LAST").keep is not None


def test_a_query_without_clauses_says_so() -> None:
    query = parse("A a")
    assert query.where is None
    assert query.window is None
    assert query.returns == ()
    assert query.limit is None


def test_comments_and_space_mean_nothing() -> None:
    text = "\ufeff/* a */ SEQ( // first\n\tA a,/**/B /* ** / */ b\r\n)\u00a0// last"
    assert parse(text).pattern == seq(A, B)


def test_spans_point_at_the_text_of_each_part() -> None:
    text = "PATTERN SEQ(A a, !(B b, b.x > 2), (a.x + 1) * 2 = 4) WITHIN 1 hour RETURN a.x AS y"
    query = parse(text)
    assert isinstance(query.pattern, Composite)
    negation = query.pattern.components[1]
    assert isinstance(negation, Negation)
    (predicate,) = query.pattern.predicates
    assert isinstance(predicate, Comparison)

    def source(part: object) -> str:
        span = part.span  # type: ignore[attr-defined]
        return text[span.start : span.end]

    assert source(query) == text
    assert source(query.pattern).startswith("SEQ(A a")
    assert source(query.pattern.components[0]) == "A a"
    assert source(negation) == "!(B b, b.x > 2)"
    assert source(negation.body) == "(B b, b.x > 2)"
    assert source(predicate) == "(a.x + 1) * 2 = 4"
    assert source(predicate.operands[0]) == "(a.x + 1) * 2"
    assert source(query.returns[0]) == "a.x AS y"
    assert text[query.window_span.start : query.window_span.end] == "WITHIN 1 hour"
