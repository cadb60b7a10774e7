"""Every diagnostic of binding: what it says, where it points, and what it tells to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import nestream
from nestream.model.diagnostics import Diagnostic

SOURCES = Path(__file__).resolve().parents[2] / "src" / "nestream" / "binding"


@dataclass(frozen=True)
class Problem:
    """A query with one problem, and the diagnostic that it gives."""

    query: str
    code: str
    pointed: str
    message: str
    hint: str | None = None
    suggestion: str | None = None
    events: tuple[tuple[str, Any], ...] | None = None


PROBLEMS = [
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN a INTO X",
        "into-without-value",
        "a",
        "`a` is a whole event, and INTO makes attributes of values",
        "return the attributes that are needed",
        "a.id AS id",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN a.x AS start INTO X",
        "reserved-attribute",
        "a.x AS start",
        "an event made by INTO has `start` already: the start of its match",
        "choose another name",
        None,
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN a.x AS x INTO X LIMIT 3",
        "limited-into",
        "INTO X",
        "a query with INTO cannot have a LIMIT",
        "remove the LIMIT, or choose among the matches with KEEP",
        None,
    ),
    Problem(
        "SEQ(A a, SEQ(B b, C c) s, s.id = a.id) WITHIN 9",
        "expression-attribute",
        "s.id",
        "`s` is an expression: it has `ts` and `te`, and no attribute `id`",
        "name the event: `b`, `c`",
        "b.id",
    ),
    Problem(
        "SEQ(A a, B+ b, !X x, C+ c, D d) WITHIN 9",
        "adjacent-groups",
        "B+ b, !X x, C+ c",
        "two groups have no single event between them",
        "put a single event between them, or write one group of both types",
        "ANY(B, C)+ x",
    ),
    Problem(
        "SEQ(A a, B+ b, !(C c, c.x > MAX(b.x)), D d) WITHIN 9",
        "aggregate-inside",
        "MAX(b.x)",
        "`MAX(b.x)` is inside a negation beside the group",
        "write the condition around both, or compare with single events",
        None,
    ),
    Problem(
        "SEQ(A a, B+ b, C c, SUM(b) > 3) WITHIN 9",
        "aggregate-of-events",
        "SUM(b)",
        "SUM takes a value, not an event",
        "name a value of the members, as in SUM(b.x)",
        None,
    ),
    Problem(
        "SEQ(A a, B b, SUM(a.x) > 3) WITHIN 9",
        "aggregate-without-group",
        "SUM(a.x)",
        "`SUM(a.x)` mentions no group",
        "SUM is over the members of a group, as `f` in `Failure+ f`: `a` is a single event, so write `a.x`",
        "a.x",
    ),
    Problem(
        "SEQ(A a, B+ b, C c) WHERE [id] OR a.x = 1 WITHIN 9",
        "equivalence-over-group",
        "[id]",
        "`[id]` is under OR or NOT, and the pattern has a group",
        "join it with AND alone, or compare the attributes of the single events",
        None,
    ),
    Problem(
        "SEQ(A a, B+ b, !D d) WHERE a.x = b.x OR a.x = d.x WITHIN 9",
        "group-or-negation",
        "a.x = b.x OR a.x = d.x",
        "the alternatives of this OR would give the group `b` different members",
        "write each condition with its component, or write two queries",
        None,
    ),
    Problem(
        "AND(E e, (SEQ(C c, !B b))* g) WHERE b.x = e.x OR b.x = 2 WITHIN 9",
        "group-or-negation",
        "b.x = e.x OR b.x = 2",
        "the alternatives of this OR would give the group `g` different members",
        "write each condition with its component, or write two queries",
        None,
    ),
    Problem(
        "SEQ(A a, (SEQ(B b, C c))+ p, D d, MAX(p.x) > 1) WITHIN 9",
        "group-of-matches",
        "p.x",
        "`p` is a group of matches, which have no attribute of their own",
        "name an event of the match: `b`, `c`",
        "p.b.x",
    ),
    Problem(
        "EXISTS c : SEQ(A a, B+ b, C c) WITHIN 9 RETURN a.x AS x, COUNT(b) AS n",
        "group-with-exists",
        "COUNT(b) AS n",
        "`n` depends on the events that EXISTS drops",
        "leave EXISTS out, or return single events alone",
        None,
    ),
    Problem(
        "SEQ(A a, B+ b, C c) WITHIN 9 RETURN b.x AS x",
        "grouped-variable",
        "b.x",
        "`b` ranges over the members of a group",
        "return the whole group, or a value of it",
        "b, or FIRST(b.x) AS x",
    ),
    Problem(
        "A+ a WITHIN 9",
        "misplaced-group",
        "A+ a",
        "a group has no single event beside it",
        "write it in a SEQ or AND with a single event, as in `SEQ(A a, B+ b)`",
        None,
    ),
    Problem(
        "SEQ(A a, B b, PREV(a.x) > 1) WITHIN 9",
        "misplaced-prev",
        "PREV(a.x)",
        "`PREV(a.x)` is outside an aggregate",
        "PREV is the value of the member before, for each member of a group: write it in an aggregate",
        "EVERY(f.x > PREV(a.x))",
    ),
    Problem(
        "SEQ(A a, B+ b, C c, MAX(b.x + MIN(b.x)) > 1) WITHIN 9",
        "nested-aggregate",
        "MIN(b.x)",
        "`MIN(b.x)` is inside another aggregate",
        "an aggregate is over the members of one group: compute the two side by side",
        None,
    ),
    Problem(
        "SEQ(A a, B+ b, C c, EVERY(b.x > PREV(PREV(b.x)))) WITHIN 9",
        "nested-prev",
        "PREV(b.x)",
        "PREV is inside PREV",
        "PREV reaches one member back: compare each member with the one before it",
        None,
    ),
    Problem(
        "SEQ(A a, B+ b, C c, D+ d, E e, SUM(b.x + d.x) > 1) WITHIN 9",
        "two-groups",
        "SUM(b.x + d.x)",
        "`SUM(b.x + d.x)` mentions two groups",
        "an aggregate is over the members of one: write one for `b` and one for `d`",
        None,
    ),
    Problem(
        "SEQ(A a, (SEQ(B b, C c))+, D d) WITHIN 9",
        "unnamed-group",
        "(SEQ(B b, C c))+",
        "a group of matches needs a name",
        "name it after its number, as in `(SEQ(B b, C c))+ p`",
        None,
    ),
    Problem(
        "SEQ(A a, B b)",
        "missing-window",
        "SEQ(A a, B b)",
        "the query has no WITHIN, so its state would grow without limit",
        "add a window such as `WITHIN 1 hour`, or write `WITHIN UNBOUNDED`",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 KEEP FIRST PER aa",
        "cannot-keep",
        "KEEP FIRST PER aa",
        "unknown variable `aa` in PER",
        "did you mean `a`?",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN b KEEP FIRST PER a.x",
        "cannot-keep",
        "a.x",
        "RETURN drops `a`, so matches cannot agree on it",
        "return `a` too, or return expressions: `a.ts AS ...`",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 KEEP DISJOINT EVERY 3",
        "bad-every",
        "3",
        "EVERY cannot be used with KEEP DISJOINT",
        "write KEEP FIRST ... EVERY, which keeps another match after that time",
    ),
    Problem(
        "SEQ(A a, B b) WHERE [a.id] WITHIN 9",
        "equivalence-with-variable",
        "[a.id]",
        "brackets take attributes without variables",
        "all events agree on the attribute",
        "[id]",
    ),
    Problem(
        "SEQ(A a, B b, a.x.y = 1) WITHIN 9",
        "unknown-field",
        "a.x.y",
        "`a.x` has no fields: it is an integer",
        "write `a.x`; quote a column with a dot in its name with backticks",
        events=(("ts", 1), ("type", "A"), ("x", 1)),
    ),
    Problem(
        "SEQ(NEXT A a, B b) WITHIN 9",
        "misplaced-step",
        "NEXT A a",
        "NEXT has no event on its left",
        "write it in a SEQ, after a positive component: `SEQ(A a, NEXT B b)`",
    ),
    Problem(
        "SEQ(A a, !C c, B b) WHERE [idd] WITHIN 9",
        "unknown-attribute",
        "[idd]",
        "A, B or C events have no attribute `idd`",
        "did you mean `id`?",
        events=(("ts", 1), ("type", "A"), ("id", 1)),
    ),
    Problem(
        "SEQ(A{3,} a, NEXT B b) WITHIN 9",
        "misplaced-step",
        "NEXT B b",
        "NEXT has no event on its left",
        "put an event before the group: `SEQ(A a, A+ more, NEXT B b)`",
    ),
    Problem(
        "SEQ(A a, B b, a.note.id = 1) WITHIN 9",
        "unknown-field",
        "a.note.id",
        "`a.note` has no fields: it is a string",
        "an object in JSON lines is read as text: write its fields as columns, or read the file with "
        "Polars or DuckDB; quote a column with a dot in its name with backticks",
        events=(("ts", 1), ("type", "A"), ("note", '{"id": 1}')),
    ),
    Problem(
        "OR(A a, DIRECTLY B b) WITHIN 9",
        "misplaced-step",
        "DIRECTLY B b",
        "DIRECTLY is not in a SEQ",
        "write it in a SEQ, after a positive component: `SEQ(A a, DIRECTLY B b)`",
    ),
    Problem(
        "SEQ(A a, (AND(B b, C c) WITHIN 3 EVENTS)) WITHIN 9",
        "inner-window-events",
        "3 EVENTS",
        "a window inside the pattern cannot count events",
        "write it as a duration or a number; WITHIN after the pattern can count events",
    ),
    Problem(
        "SEQ(A a, B a) WITHIN 9",
        "duplicate-variable",
        "B a",
        "the variable `a` is declared twice",
        "give this component another variable",
    ),
    Problem(
        "(A a : a.s LIKE a.t)",
        "not-constant",
        "a.t",
        "the pattern of LIKE is a constant, and `a.t` is not",
        "for example `'nestream' LIKE 'n_st%'`",
    ),
    Problem(
        "(A a : date_part('huor', a.ts) = 1)",
        "bad-constant",
        "'huor'",
        "a time has no 'huor'; did you mean 'hour'? "
        "use one of year, quarter, month, week, day, dow, doy, hour, minute, second",
    ),
    Problem(
        "SEQ(!A a, !B b) WITHIN 9",
        "no-positive-component",
        "SEQ(!A a, !B b)",
        "SEQ has no positive component",
        "add a component without `!`",
    ),
    Problem(
        "!A a WITHIN 9",
        "misplaced-negation",
        "!A a",
        "a negation has nothing to filter here",
        "write it in a SEQ or AND with a positive component",
    ),
    Problem(
        "OR(A a, !B b) WITHIN 9",
        "misplaced-negation",
        "!B b",
        "a branch of an OR is a negation",
        "write a SEQ or AND with a positive component as the branch, and negate inside it",
    ),
    Problem(
        "SEQ(A a, !(!B b)) WITHIN 9",
        "misplaced-negation",
        "(!B b)",
        "a negation is negated",
        "remove both `!`, or negate a SEQ or AND that has a positive component",
    ),
    Problem(
        "SEQ(Recycle recycle, B b, recycl.id = 1) WITHIN 9",
        "unknown-variable",
        "recycl.id",
        "unknown variable `recycl`",
        "did you mean `recycle`?",
    ),
    Problem(
        "SEQ(A a, B b, zzz.id = 1) WITHIN 9",
        "unknown-variable",
        "zzz.id",
        "unknown variable `zzz`",
        "the variables are `a`, `b`",
    ),
    Problem(
        "SEQ(A a, B b, A.id = 1) WITHIN 9",
        "unknown-variable",
        "A.id",
        "unknown variable `A`",
        "the component of type `A` has the variable `a`",
    ),
    Problem(
        "SEQ(A, A, A.id = 1) WITHIN 9",
        "unknown-variable",
        "A.id",
        "unknown variable `A`",
        "several components have the type `A`: give each a variable",
    ),
    Problem(
        "SEQ(A a, !B b, C c, b.id = a.id) WITHIN 9",
        "negated-variable",
        "b.id = a.id",
        "`b` is negated, so it has no event here",
        "write the condition inside the negation",
        "!(B b, b.id = a.id)",
    ),
    Problem(
        "SEQ(A a, !SEQ(B b, AND(C c, D d), b.id = 1), E e, d.id = a.id) WITHIN 9",
        "negated-variable",
        "d.id = a.id",
        "`d` is negated, so it has no event here",
        "write the condition inside the negation",
        "!SEQ(B b, AND(C c, D d), b.id = 1, d.id = a.id)",
    ),
    Problem(
        "SEQ(A a, !SEQ(B b, C c, !(D d)), E e, d.id = b.id) WITHIN 9",
        "negated-variable",
        "d.id = b.id",
        "`d` is negated, so it has no event here",
        "write the condition inside the negation",
        "!(D d, d.id = b.id)",
    ),
    Problem(
        "SEQ(A a, !B b, !C c, D d, b.id = c.id) WITHIN 9",
        "negated-variable",
        "b.id = c.id",
        "`b` is negated, so it has no event here",
        "a negation cannot see another: compare each with positive variables",
    ),
    Problem(
        "SEQ(A a, !OR(B b, C c), D d, b.id = a.id) WITHIN 9",
        "negated-variable",
        "b.id = a.id",
        "`b` is negated, so it has no event here",
        "write the condition inside the negation",
        "!OR(B b, C c, b.id = a.id)",
    ),
    Problem(
        "SEQ(A a, !SEQ(X x, OR(B b, C c)), D d, b.id = a.id) WITHIN 9",
        "negated-variable",
        "b.id = a.id",
        "`b` is negated, so it has no event here",
        "write the condition inside the negation, with the branch of the variable",
    ),
    Problem(
        "SEQ(SEQ(A a, B b), SEQ(C c, D d, c.id = a.id)) WITHIN 9",
        "sibling-variable",
        "c.id = a.id",
        "`a` is declared in another expression and is not visible here",
        "write the condition in the expression around both, after its components",
        "c.id = a.id",
    ),
    Problem(
        "SEQ(SEQ(A a, B b), !(C c, c.id = a.id), D d) WITHIN 9",
        "sibling-variable",
        "c.id = a.id",
        "`a` is declared in another expression and is not visible here",
        "a negation sees the variables of the expressions around it: compare with one of those",
    ),
    Problem(
        "SEQ(A a, OR(B b, C c), D d, b.id = a.id) WITHIN 9",
        "branch-variable",
        "b.id = a.id",
        "`b` belongs to one branch of an OR and may have no event here",
        "write the condition inside the OR, with the branch of the variable",
    ),
    Problem(
        "OR(SEQ(A a, B b), SEQ(C c, D d, c.id = a.id)) WITHIN 9",
        "across-or-branches",
        "c.id = a.id",
        "`a` belongs to one branch of an OR and may have no event here",
        "write the condition inside the OR, with the branch of the variable",
    ),
    Problem(
        "OR(A a, B b, a.id = b.id)",
        "across-or-branches",
        "a.id = b.id",
        "a condition compares two branches of an OR",
        "write a condition for each branch",
    ),
    Problem(
        "SEQ(A a, EXISTS b : SEQ(B b, C c), b.id = a.id) WITHIN 9",
        "hidden-variable",
        "b.id = a.id",
        "EXISTS drops `b`, so it is not visible here",
        "write the condition inside the EXISTS",
    ),
    Problem(
        "EXISTS x : SEQ(A a, B b) WITHIN 9",
        "exists-unknown-variable",
        "EXISTS x : SEQ(A a, B b)",
        "EXISTS names `x`, which its pattern does not have",
        "its variables are `a`, `b`",
    ),
    Problem(
        "EXISTS a, b : SEQ(A a, B b) WITHIN 9",
        "exists-drops-everything",
        "EXISTS a, b : SEQ(A a, B b)",
        "EXISTS drops every variable of the query",
        "keep at least one variable",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN a.id + 1",
        "unnamed-expression",
        "a.id + 1",
        "a returned expression needs a name",
        "name it with AS",
        "a.id + 1 AS value",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN a.ins-type",
        "unnamed-expression",
        "a.ins-type",
        "a returned expression needs a name",
        "name it with AS",
        "a.ins-type AS ins-type",
    ),
    Problem(
        "SEQ(Recycle recycle, B b) WITHIN 9 RETURN recycl",
        "cannot-return",
        "recycl",
        "unknown variable `recycl` in RETURN",
        "did you mean `recycle`?",
    ),
    Problem(
        "SEQ(F{3,} f, S s) WITHIN 9 RETURN s, FIRST(fa.ip) AS x",
        "cannot-return",
        "fa.ip",
        "unknown variable `fa` in RETURN",
        "did you mean `f`?",
    ),
    Problem(
        "SEQ(F{3,} f, S s) WITHIN 9 RETURN FIRST(f.x + fa.ip) AS x",
        "cannot-return",
        "fa.ip",
        "unknown variable `fa` in RETURN",
        "did you mean `f`?",
    ),
    Problem(
        "SEQ(F{3,} f, S s) WITHIN 9 RETURN AVG(f.x - PREV(fa.x)) AS x",
        "cannot-return",
        "fa.x",
        "unknown variable `fa` in RETURN",
        "did you mean `f`?",
    ),
    Problem(
        "SEQ(F f, S s) WITHIN 9 RETURN AVG(zz.x) AS x",
        "cannot-return",
        "zz.x",
        "unknown variable `zz` in RETURN",
        "a match has `f`, `s`",
    ),
    Problem(
        "SEQ(F{3,} f, S s) WHERE AVG(fa.x) > 3 WITHIN 9",
        "unknown-variable",
        "fa.x",
        "unknown variable `fa`",
        "did you mean `f`?",
    ),
    Problem(
        "SEQ(A a, !SEQ(B{2,} b, C c, AVG(bb.x) > 3), D d) WITHIN 9",
        "unknown-variable",
        "bb.x",
        "unknown variable `bb`",
        "did you mean `b`?",
    ),
    Problem(
        "SEQ(A a, !B b, C c) WITHIN 9 RETURN b",
        "cannot-return",
        "b",
        "`b` is negated, so a match has no event for it",
        "a match has `a`, `c`",
    ),
    Problem(
        "EXISTS b : SEQ(A a, B b) WITHIN 9 RETURN b",
        "cannot-return",
        "b",
        "EXISTS drops `b`",
        "remove it from EXISTS to return it",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN b, a.id AS b",
        "duplicate-column",
        "a.id AS b",
        "two output columns are named `b`",
        "give one of them another name with AS",
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 9 RETURN a.ts AS match_end",
        "reserved-column",
        "a.ts AS match_end",
        "every match has a column `match_end` already",
        "choose another name",
    ),
    Problem(
        "EVENT SEQ(A x, B y) WHERE n > 1 WITHIN 9",
        "ambiguous-attribute",
        "n",
        "the attribute `n` has no variable",
        "write whose attribute it is, as in `x.n`",
    ),
    Problem(
        "SEQ(A a, B b, 1 < 'x') WITHIN 9",
        "wrong-type",
        "1 < 'x'",
        "cannot compare an integer with a string",
        hint="put the number in quotes to compare text; one value that is not a number makes a column text",
    ),
    Problem(
        "SEQ(A a, B b, TRUE < FALSE) WITHIN 9",
        "wrong-type",
        "TRUE < FALSE",
        "a boolean has no order, so `<` does not apply",
    ),
    Problem(
        "SEQ(A a, B b, lower(1) = 'x') WITHIN 9",
        "wrong-type",
        "1",
        "`1` is an integer, not a string",
    ),
    Problem(
        "SEQ(A a, B b, coalesce(1, 'x') = 1) WITHIN 9",
        "wrong-type",
        "coalesce(1, 'x')",
        "the arguments of coalesce differ in type",
    ),
    Problem(
        "SEQ(A a, B b, 'x' * 2 = 4) WITHIN 9",
        "wrong-type",
        "'x' * 2",
        "`*` does not apply to a string and an integer",
    ),
    Problem(
        "SEQ(A a, B b, 1 + 1) WITHIN 9",
        "not-a-condition",
        "1 + 1",
        "`1 + 1` is an integer, not a condition",
        "compare it with something",
    ),
    Problem(
        "SEQ(A a, B b, a.idd = b.id) WITHIN 9",
        "unknown-attribute",
        "a.idd",
        "A events have no attribute `idd`",
        "did you mean `a.id`?",
        events=(("ts", 1), ("type", "A"), ("id", 1)),
    ),
    Problem(
        "SEQ(A a, B b, a.colour = 1) WITHIN 9",
        "unknown-attribute",
        "a.colour",
        "A events have no attribute `colour`",
        "the attributes are `id`, `ts`, `type`",
        events=(("ts", 1), ("type", "A"), ("id", 1)),
    ),
    Problem(
        "SEQ(A a, B b, a.tags = 1) WITHIN 9",
        "not-comparable",
        "a.tags",
        "`a.tags` holds values that cannot be compared",
        "convert the column to a number, string, boolean or timestamp",
        events=(("ts", 1), ("type", "A"), ("tags", [1])),
    ),
    Problem(
        "SEQ(A a, B b) WITHIN 1 hour",
        "window-unit",
        "WITHIN 1 hour",
        "WITHIN 1 hour is a duration, and the time column `ts` holds integers",
        "write the window as a number in the column's unit, or convert the column to timestamps",
        events=(("ts", 1), ("type", "A")),
    ),
    Problem(
        "SEQ(A a, B b, b.ts - a.ts < 5 minutes) WITHIN 9",
        "wrong-type",
        "b.ts - a.ts < 5 minutes",
        "cannot compare an integer with a duration",
        "the time column holds integers: write the duration as a number in its unit",
        events=(("ts", 1), ("type", "A")),
    ),
    Problem(
        "SEQ(A a, B b, b.ts - a.ts > b.user) WITHIN 1 hour",
        "wrong-type",
        "b.ts - a.ts > b.user",
        "cannot compare a duration with an integer",
        "`b.ts - a.ts` is a duration and `b.user` a number",
        events=(("ts", datetime(2026, 1, 1)), ("type", "A"), ("user", 1)),
    ),
    Problem(
        "SEQ(A a, B b, b.ts - a.ts < 5) WITHIN 1 hour",
        "wrong-type",
        "b.ts - a.ts < 5",
        "cannot compare a duration with an integer",
        "a duration needs a unit: write `5 s`",
        events=(("ts", datetime(2026, 1, 5)), ("type", "A")),
    ),
]


def run(problem: Problem) -> None:
    query = nestream.query(problem.query)
    if problem.events is not None:
        query.match([dict(problem.events)], strategy="reference")


def errors(problem: Problem) -> list[Diagnostic]:
    with pytest.raises(nestream.QueryError) as raised:
        run(problem)
    return list(raised.value.diagnostics)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.code}: {problem.query}")
def test_a_problem_says_what_is_wrong_where_and_what_to_write_instead(problem: Problem) -> None:
    (found,) = errors(problem)
    assert (found.code, found.message) == (problem.code, problem.message)
    assert problem.query[found.span.start : found.span.end] == problem.pointed
    assert (found.hint, found.suggestion) == (problem.hint, problem.suggestion)


@pytest.mark.parametrize(
    "problem",
    [problem for problem in PROBLEMS if problem.suggestion and problem.suggestion.startswith("!")],
    ids=lambda problem: problem.query,
)
def test_a_query_with_the_suggested_negation_is_accepted(problem: Problem) -> None:
    assert problem.suggestion is not None
    negated = problem.suggestion.removesuffix(f", {problem.pointed})").removeprefix("!")
    plain = negated.removeprefix("(") if negated.startswith("(") else negated + ")"
    without = problem.query.replace(f", {problem.pointed}) WITHIN", ") WITHIN")
    corrected = without.replace(f"!({plain})", problem.suggestion).replace(f"!{plain}", problem.suggestion)
    assert problem.suggestion in corrected
    nestream.query(corrected)


def test_an_unbounded_window_is_a_warning() -> None:
    query = nestream.query("SEQ(A a, B b) WITHIN UNBOUNDED")
    (warning,) = query.warnings
    assert (warning.code, warning.is_error) == ("unbounded-state", False)
    assert query.text[warning.span.start : warning.span.end] == "WITHIN UNBOUNDED"


def test_a_name_that_looks_like_a_subtraction_is_a_warning() -> None:
    query = nestream.query("SEQ(A a, B b, a.x-1 > 0) WITHIN 9")
    (warning,) = query.warnings
    assert (warning.code, warning.is_error) == ("hyphen-in-name", False)
    assert warning.hint == "for a subtraction write `a.x - 1`"


def test_a_type_that_may_be_meant_as_a_word_is_a_warning() -> None:
    (warning,) = nestream.query("SEQ(A a, NEXT B) WITHIN 9").warnings
    assert (warning.code, warning.is_error) == ("step-as-type", False)
    assert warning.hint == "for NEXT write a type and a variable: `NEXT B x`"


def test_a_clause_with_too_many_alternatives_is_rejected() -> None:
    choices = " AND ".join(f"(b.x = {n} OR b.y = {n})" for n in range(7))
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(f"SEQ(A a, !B b, C c) WHERE {choices} WITHIN 9")
    (found,) = raised.value.diagnostics
    assert found.code == "too-many-alternatives"


def test_an_attribute_alone_in_a_query_without_positive_events_is_rejected_and_nothing_breaks() -> None:
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query("EVENT SEQ(!(A x)) WHERE n > 1 WITHIN 9")
    assert [found.code for found in raised.value.diagnostics] == [
        "no-positive-component",
        "ambiguous-attribute",
    ]


def test_all_problems_are_reported_at_once_in_the_order_of_the_text() -> None:
    text = """
        SEQ(A a, !B b, OR(C c, D d), AND(!F f), E b,
            a.id = b.id, c.id = 1, e.id = 1)
        RETURN q, a.id
    """
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query(text)
    assert [found.code for found in raised.value.diagnostics] == [
        "missing-window",
        "no-positive-component",
        "duplicate-variable",
        "negated-variable",
        "branch-variable",
        "unknown-variable",
        "cannot-return",
        "unnamed-expression",
    ]


def test_problems_with_the_events_come_all_at_once_too() -> None:
    query = nestream.query("SEQ(A a, B b, a.x = 1, b.y = 2, a.name > 3) WITHIN 1 hour")
    with pytest.raises(nestream.QueryError) as raised:
        query.match([{"ts": 1, "type": "A", "name": "n"}], strategy="reference")
    assert [found.code for found in raised.value.diagnostics] == [
        "unknown-attribute",
        "unknown-attribute",
        "wrong-type",
        "window-unit",
    ]


def test_the_same_is_told_as_data() -> None:
    with pytest.raises(nestream.QueryError) as raised:
        nestream.query("SEQ(A a,\n    !B b, C c,\n    b.id = a.id)\nWITHIN 9")
    (found,) = raised.value.as_dicts()
    assert found == {
        "code": "negated-variable",
        "severity": "error",
        "message": "`b` is negated, so it has no event here",
        "detail": "a condition on a negated event says which events must not occur",
        "hint": "write the condition inside the negation",
        "suggestion": "!(B b, b.id = a.id)",
        "line": 3,
        "column": 5,
        "end_line": 3,
        "end_column": 16,
        "start": 28,
        "end": 39,
    }


def test_a_group_of_no_members_is_a_warning() -> None:
    (found,) = nestream.query("SEQ(A a, B{0} b, C c) WITHIN 9").warnings
    assert (found.code, found.suggestion) == ("group-of-none", "!B b")


def test_every_code_of_binding_is_tested_here() -> None:
    text = "\n".join(path.read_text() for path in SOURCES.glob("*.py"))
    codes = set(re.findall(r'(?:Diagnostic|report)\(\s*"([a-z-]+)"', text))
    codes |= set(re.findall(r'^ +"([a-z]+(?:-[a-z]+)+)"(?:,| if)', text, re.MULTILINE))
    tested = {problem.code for problem in PROBLEMS} | {
        "unbounded-state",
        "hyphen-in-name",
        "step-as-type",
        "unbounded-keys",
        "too-many-alternatives",
        "group-of-none",
    }
    assert codes <= tested


def test_a_minus_without_spaces_between_the_times_of_an_expression_gets_a_hint() -> None:
    with pytest.raises(nestream.QueryError) as error:
        nestream.query("SEQ(A a, SEQ(B b, C c, s.te-s.ts < 3) s) WITHIN 9")
    assert "names may contain `-`: write `s.te - s.ts`" in [said.hint for said in error.value.diagnostics]
