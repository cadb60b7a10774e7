"""Random syntax trees: every operator, every kind of predicate, strange names, all clauses.

The trees are those that a text can say: AND is not directly inside AND, a minus before a number is part of
the number, an attribute without variable stands only in WHERE.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from nestream.language.ast import (
    Composite,
    Exists,
    Negation,
    Operator,
    Pattern,
    Primitive,
    Query,
    ReturnExpression,
    ReturnVariable,
)
from nestream.model.expression import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
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
)
from nestream.model.text import RESERVED_WORDS
from nestream.model.time import UNBOUNDED, Duration, Window, WindowKind

_GREATEST = 2**63 - 1

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")

plain_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}(-[A-Za-z0-9_]{1,3}){0,2}", fullmatch=True)
reserved_names = st.sampled_from(RESERVED_WORDS).flatmap(lambda word: st.sampled_from([word, word.lower()]))
near_names = st.sampled_from(
    ["ſeq", "a-", "-a", "a--b", "1a", "`", "``", "a`b", "a.b", "Operating Room", "é-1", "²", "ﬁ", "µ", "名前"]
)
names = st.one_of(
    plain_names, plain_names, reserved_names, near_names, st.text(characters, min_size=1, max_size=6)
)

timestamps = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 12, 31),
    timezones=st.one_of(
        st.none(),
        st.just(UTC),
        st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    ),
)
literals = st.one_of(
    st.integers(-_GREATEST - 1, _GREATEST),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(characters, max_size=8),
    st.sampled_from(['"', "'", '""', "“”", "\n", "/* */", "//", "`"]),
    st.booleans(),
    st.one_of(
        st.integers(-_GREATEST, _GREATEST), st.integers(0, 10_000).map(lambda minutes: minutes * 60_000_000)
    ).map(Duration),
    timestamps,
).map(Literal)

attributes = st.builds(Attribute, names, names)
bare_attributes = st.builds(Attribute, st.none(), names)
equivalences = st.builds(Equivalence, names, st.one_of(st.none(), literals))


def _is_number(expression: Expression) -> bool:
    return (
        isinstance(expression, Literal)
        and isinstance(expression.value, int | float | Duration)
        and not isinstance(expression.value, bool)
    )


def _flat(kind: type[And] | type[Or], operands: list[Expression]) -> Expression:
    flattened: list[Expression] = []
    for operand in operands:
        flattened.extend(operand.operands if isinstance(operand, kind) else [operand])
    return kind(tuple(flattened))


def _compound(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, min_size=2, max_size=4)
    functions = [
        st.builds(Call, st.just(function), st.lists(parts, min_size=least, max_size=most or 3).map(tuple))
        for function, (least, most) in FUNCTIONS.items()
    ]
    return st.one_of(
        parts.map(lambda part: part if _is_number(part) else Negative(part)),
        st.builds(Arithmetic, st.sampled_from(ARITHMETIC), parts, parts),
        st.builds(Comparison, st.sampled_from(COMPARISONS), st.tuples(parts, parts)),
        several.map(lambda operands: Comparison("=", tuple(operands))),
        st.builds(Not, parts),
        several.map(lambda operands: _flat(And, operands)),
        several.map(lambda operands: _flat(Or, operands)),
        st.builds(In, parts, st.lists(parts, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(Between, parts, parts, parts, st.booleans()),
        st.builds(IsNull, parts, st.booleans()),
        *functions,
    )


formulas: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(literals, attributes), _compound, max_leaves=8
)
"""Formulas that may stand anywhere."""

where_formulas: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(literals, attributes, bare_attributes, equivalences), _compound, max_leaves=8
)
"""Formulas of a WHERE clause."""

_predicates = st.lists(formulas, max_size=3).map(tuple)

primitives = st.builds(
    Primitive, st.lists(names, min_size=1, max_size=3).map(tuple), st.one_of(st.none(), names), _predicates
)

patterns: st.SearchStrategy[Pattern] = st.recursive(
    primitives,
    lambda parts: st.one_of(
        st.builds(
            Composite,
            st.sampled_from(Operator),
            st.lists(parts, min_size=1, max_size=4).map(tuple),
            _predicates,
        ),
        st.builds(Negation, parts),
        st.builds(Exists, st.lists(names, min_size=1, max_size=3).map(tuple), parts),
    ),
    max_leaves=6,
)

windows = st.one_of(
    st.builds(
        Window,
        st.sampled_from([WindowKind.TIME, WindowKind.NUMBER, WindowKind.EVENTS]),
        st.one_of(st.integers(1, 10_000), st.integers(1, _GREATEST)),
    ),
    st.just(UNBOUNDED),
)

returns = st.one_of(
    st.builds(ReturnVariable, names), st.builds(ReturnExpression, formulas, st.one_of(st.none(), names))
)

queries: st.SearchStrategy[Query] = st.builds(
    Query,
    pattern=patterns,
    where=st.one_of(st.none(), where_formulas),
    window=st.one_of(st.none(), windows),
    returns=st.lists(returns, max_size=3).map(tuple),
    limit=st.one_of(st.none(), st.integers(0, _GREATEST)),
    sase=st.booleans(),
)
