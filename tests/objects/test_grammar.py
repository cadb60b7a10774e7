"""Every rule of the grammar has an object; a rule that the grammar gains and objects lack fails here."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from lark.grammar import Rule
from lark.parsers.lalr_analysis import Shift

from nestream import (
    Pattern,
    all_of,
    any_of,
    col,
    equal,
    event,
    exists,
    expr,
    fn,
    lit,
    not_,
    param,
    same,
    seq,
    when,
)
from nestream.language.parser import grammar_parser, parse
from nestream.language.tokens import tokenize

a, b, c, f = event("A", "a"), event("B", "b"), event("C", "c"), event("F", "f").one_or_more()
p = seq(b, c).one_or_more().named("p")
s = seq(b, c).named("s")

EXAMPLES: dict[str, Pattern] = {
    "an event": a,
    "an event without a name": event("A"),
    "an event of any type": event(name="x"),
    "an event of any type without a name": event(),
    "an event of several types": event(["A", "B"], "x"),
    "an event of three types without a name": event(["A", "B", "C"]),
    "NEXT": seq(a, b.next()),
    "NEXT without a name": seq(a, event("B").next()),
    "DIRECTLY": seq(a, b.directly()),
    "DIRECTLY without a name": seq(a, event("B").directly()),
    "NEXT of any type": seq(a, event(name="x").next()),
    "NEXT of any type without a name": seq(a, event().next()),
    "DIRECTLY of any type": seq(a, event(name="x").directly()),
    "DIRECTLY of any type without a name": seq(a, event().directly()),
    "NEXT of a type": seq(a, event(["A"], "x").next()),
    "NEXT of several types": seq(a, event(["A", "B"], "x").next()),
    "NEXT of several types without a name": seq(a, event(["A", "B", "C"]).next()),
    "DIRECTLY of several types": seq(a, event(["A", "B"], "x").directly()),
    "DIRECTLY of several types without a name": seq(a, event(["A", "B", "C"]).directly()),
    "SEQ": seq(a, b),
    "SEQ of one": seq(a),
    "AND": all_of(a, b),
    "OR": any_of(a, b),
    "SEQ with a name": s,
    "AND with a name": all_of(a, b).named("s"),
    "OR with a name": any_of(a, b).named("s"),
    "conditions in an operator": seq(a, b, a.id == b.id, a.x > 1),
    "a condition of an event": a.filter(a.x > 1),
    "conditions of an event": a.filter(a.x > 1, a.y > 1),
    "a negation": seq(a, not_(b), c),
    "a negation with conditions": seq(a, not_(b.where(b.id == a.id, b.x > 1)), c),
    "a negation of a projection": seq(a, not_(exists(b, seq(b, c)))),
    "a window inside": seq(a, seq(b, c).within("10 s")),
    "a window inside of events": seq(a, seq(b, c).within("10 events")),
    "a window inside a window": seq(a, seq(b, c).within("10 s").within(param("length"))),
    "a projection": exists(a, seq(a, b)),
    "a projection of two": exists([a, b], seq(a, b, c)),
    "one or more": seq(a, f),
    "one or more without a name": seq(a, event("F").one_or_more()),
    "any number": seq(a, event("F", "f").zero_or_more()),
    "so many": seq(a, event("F", "f").repeat(3)),
    "so many without a name": seq(a, event("F").repeat(3)),
    "so many or more": seq(a, event("F", "f").repeat(3, None)),
    "so many or more without a name": seq(a, event("F").repeat(3, None)),
    "at most so many": seq(a, event("F", "f").repeat(0, 3)),
    "at most so many without a name": seq(a, event("F").repeat(0, 3)),
    "from so many to so many": seq(a, event("F", "f").repeat(2, 3)),
    "from so many to so many without a name": seq(a, event("F").repeat(2, 3)),
    "a group of any type": seq(a, event(name="x").one_or_more()),
    "a group of any type without a name": seq(a, event().one_or_more()),
    "a group of several types": seq(a, event(["A", "B"], "x").one_or_more()),
    "a group of several types without a name": seq(a, event(["A", "B"]).one_or_more()),
    "a group with conditions": seq(a, f.where(f.x > a.x)),
    "a group of matches": seq(a, p),
    "a group of matches without a name": seq(a, seq(b, c).one_or_more()),
    "WHERE": seq(a, b).where(a.id == b.id),
    "several clauses": seq(a, b).where(a.id == b.id).within(10).limit(1),
    "WITHIN a duration": seq(a, b).within(timedelta(minutes=1)),
    "WITHIN a number": seq(a, b).within(10),
    "WITHIN events": seq(a, b).within("10 events"),
    "WITHIN an event": seq(a, b).within("1 event"),
    "WITHIN UNBOUNDED": seq(a, b).within("unbounded"),
    "WITHIN a parameter": seq(a, b).within(param("length")),
    "WITHIN a parameter of events": seq(a, b).within("$count EVENTS"),
    "RETURN": seq(a, b).returning(a, b.x.alias("x"), y=b.y),
    "RETURN of one": seq(a, b).returning(a),
    "RETURN without a name": seq(a, b).returning(a.x),
    "RETURN INTO": seq(a, b).returning(x=a.x).into("X"),
    "RETURN several INTO": seq(a, b).returning(x=a.x, y=a.y).into("X"),
    "KEEP": seq(a, b).keep("first"),
    "KEEP PER": seq(a, b).keep("last", per=a),
    "KEEP PER several": seq(a, b).keep("longest", per=[a, b.x]),
    "KEEP EVERY": seq(a, b).keep("first", every="1 hour"),
    "KEEP EVERY number": seq(a, b).keep("first", every=10),
    "KEEP EVERY parameter": seq(a, b).keep("first", every=param("length")),
    "KEEP PER EVERY": seq(a, b).keep("first", per=a.id, every=timedelta(hours=1)),
    "KEEP PER several EVERY": seq(a, b).keep("first", per=[a.id, b], every="1 hour"),
    "LIMIT": a.limit(10),
    "LIMIT parameter": a.limit(param("most")),
    "the SASE dialect": seq(a, b).within(10).sase(),
    "the SASE dialect without clauses": a.sase(),
    "OR of conditions": a.where((a.x == 1) | (a.y == 1)),
    "OR of three": a.where((a.x == 1) | (a.y == 1) | (a.z == 1)),
    "AND of conditions": a.where((a.x == 1) & (a.y == 1)),
    "NOT": a.where(~(a.x == 1)),
    "a chain of equalities": a.where(equal(a.x, a.y, a.z)),
    "comparisons": a.where(
        a.x != 1,
        a.x < 1,
        a.x <= 1,
        a.x > 1,
        a.x >= 1,
        lit(True),
        a.hot == False,  # noqa: E712
    ),
    "IN": a.where(a.x.is_in([1]), a.x.is_in([1, 2])),
    "NOT IN": a.where(a.x.is_not_in([1]), a.x.is_not_in([1, 2])),
    "IN a parameter": a.where(a.x.is_in(param("some"))),
    "BETWEEN": a.where(a.x.is_between(1, 2)),
    "NOT BETWEEN": a.where(a.x.is_not_between(1, 2)),
    "IS NULL": a.where(a.x.is_null()),
    "IS NOT NULL": a.where(a.x.is_not_null()),
    "LIKE and MATCHES": a.where(a.s.like("x%"), a.s.matches("x")),
    "NOT LIKE and NOT MATCHES": a.where(a.s.not_like("x%"), a.s.not_matches("x")),
    "[attribute]": seq(a, b).where(same("id")),
    "[attribute = value]": seq(a, b).where(same(id=1)),
    "[path]": seq(a, b).where(same(("order", "to", "id"))),
    "[path = value]": seq(a, b).where(same({("order", "id"): 1, ("order", "to", "id"): 2})),
    "arithmetic": a.where((a.x + 1 - a.y) * 2 / a.z % 3 > -a.x),
    "parentheses": a.where((a.x + 1) * 2 > 1),
    "a field of a struct": a.where(a.order.to.city == "Delft"),
    "an attribute without its event": a.where(col("x") > 1),
    "calls": a.where(fn.abs(a.x) > fn.power(a.x, 2), fn.coalesce(a.x, a.y, a.z) > 0),
    "aggregates": seq(a, f).where(f.count() > 1, f.x.n_unique() > 1, (f.x - f.x.prev(a.x)).max() > 1),
    "an aggregate of a group of matches": seq(a, p).where(p[b].x.sum() > 1),
    "CASE": a.returning(x=when(a.x > 1).then(2)),
    "CASE of two": a.returning(x=when(a.x > 1).then(2).when(a.y > 1).then(3)),
    "CASE ELSE": a.returning(x=when(a.x > 1).then(2).otherwise(3)),
    "CASE of two ELSE": a.returning(x=when(a.x > 1).then(2).when(a.y > 1).then(3).otherwise(4)),
    "constants": a.where(a.x == 1.5, a.s == "text", a.ts > datetime(2026, 1, 1)),
    "a duration": a.where(a.x - a.ts > expr("10 minutes")),
    "a parameter": a.where(a.x > param("floor")),
    "names in backticks": event("Break Room", "where").where(event(name="where")["a.b"] == 1),
}

OTHER_SPELLINGS: dict[str, set[str]] = {
    "infix AND and OR between patterns are AND(...) and OR(...)": {
        "__both_plus : __both_plus _and single",
        "__both_plus : _and single",
        "__either_plus : __either_plus _or both",
        "__either_plus : _or both",
        "both : single __both_plus",
        "either : both __either_plus",
    },
    "a list of equivalence tests is a conjunction of them": {
        "__equivalence_star : COMMA test",
        "__equivalence_star : __equivalence_star COMMA test",
        "equivalence : LSQB test __equivalence_star RSQB",
    },
    "ANY of one type is the type": {
        "any : ANY LPAR name RPAR name",
        "any : ANY LPAR name RPAR",
        "any : DIRECTLY ANY LPAR name RPAR name",
        "any : DIRECTLY ANY LPAR name RPAR",
        "any : NEXT ANY LPAR name RPAR name",
        "any : NEXT ANY LPAR name RPAR",
        "repeated : ANY LPAR name RPAR _quantity name",
        "repeated : ANY LPAR name RPAR _quantity",
    },
    "INTERVAL is a duration": {
        "atom : NAME STRING NAME",
        "length : NAME STRING NAME",
        "length : NAME STRING",
        "window : NAME STRING NAME",
        "window : NAME STRING",
    },
    "a list that is a parameter is written in parentheses": {
        "condition : sum IN PARAMETER",
        "condition : sum NOT IN PARAMETER",
    },
    "EXISTS has a colon": {
        "exists : _exists name DOT component",
        "exists : _exists name __any_star DOT component",
    },
    "conditions and names of an operator in parentheses are written with the operator": {
        "group : LPAR component RPAR _named",
        "group : LPAR component WITHIN window RPAR _named",
        "group : LPAR component WITHIN window __elements_star RPAR _named",
        "group : LPAR component WITHIN window __elements_star RPAR",
        "group : LPAR component __elements_star RPAR _named",
    },
    "an operator that repeats is in parentheses": {
        "repeated : operator _quantity name",
        "repeated : operator _quantity",
    },
    "the word PATTERN is written": {"query : component __query_star", "query : component"},
    "one event is written $count EVENTS": {"window : PARAMETER EVENT"},
    "no function is without arguments": {"atom : name LPAR RPAR"},
    "NEXT and DIRECTLY without a variable are types": {"primitive : DIRECTLY name", "primitive : NEXT name"},
    "stands for a mistake": {"single : UNREADABLE"},
    "signs that have another": {
        "_and : ∧",
        "_or : ∨",
        "_not : ¬",
        "_exists : ∃",
        "_comparator : ==",
        "_comparator : <>",
        "_comparator : ≠",
        "_comparator : ≤",
        "_comparator : ≥",
    },
}
"""Alternatives that say what an object says and the printer writes in another way, by the reason."""


def written(rule: Rule) -> str:
    """A rule as text, without the numbers that depend on the other rules."""
    signs = {
        each.name: each.pattern.value for each in grammar_parser().terminals if each.name.startswith("__ANON")
    }
    symbols = " ".join(signs.get(symbol.name, symbol.name) for symbol in rule.expansion)
    return re.sub(r"(__\w+?)_\d+\b", r"\1", f"{rule.origin.name} : {symbols}")


def alternatives() -> set[Rule]:
    """The alternatives of all rules that the printer may write; it never writes a comma at the end."""
    others = set().union(*OTHER_SPELLINGS.values())
    return {
        rule
        for rule in grammar_parser().rules
        if written(rule) not in others and not re.search("COMMA( RPAR|$)", written(rule))
    }


def used_by(text: str) -> set[Rule]:
    """The alternatives that the parser takes for a text."""
    table = grammar_parser().parser.parser._parse_table
    states: list[int] = [table.start_states["query"]]
    found: set[Rule] = set()
    tokens = [*(token.type for token in tokenize(grammar_parser(), text).tokens), "$END"]
    for token in tokens:
        while True:
            action, argument = table.states[states[-1]][token]
            if action is Shift:
                states.append(argument)
                break
            found.add(argument)
            if argument.expansion:
                del states[-len(argument.expansion) :]
            states.append(table.states[states[-1]][argument.origin.name][1])
            if token == "$END" and states[-1] == table.end_states["query"]:
                return found
    return found


def test_every_alternative_of_every_rule_is_written_by_an_object() -> None:
    used = set().union(*(used_by(str(query)) for query in EXAMPLES.values()))
    assert sorted(written(rule) for rule in alternatives() - used) == []


def test_every_other_spelling_is_in_the_grammar_and_no_object_writes_it() -> None:
    known = {written(rule) for rule in grammar_parser().rules}
    assert set().union(*OTHER_SPELLINGS.values()) - known == set()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_read_as_the_tree_that_objects_build(name: str) -> None:
    query = EXAMPLES[name]
    assert parse(str(query)) == query.__nestream_query__()
