"""Recognises words and signs that are special only in one place: LIKE, NEXT, a repeating `+`.

The lexer returns them as names and arithmetic signs. Where only the special meaning is possible, they get its
token type, so that a type, variable or attribute of that name needs no backticks.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

_INFIX = ("LIKE", "MATCHES")
_STEPS = ("NEXT", "DIRECTLY")
_CLAUSES = frozenset(("WHERE", "WITHIN", "RETURN", "LIMIT", "KEEP"))
_KEPT = ("FIRST", "LAST", "LONGEST", "SHORTEST", "DISJOINT")
_BEFORE_A_COMPONENT = frozenset(("LPAR", "COMMA", "BANG", "NOT", "PATTERN", "EVENT", "COLON", "AND", "OR"))
_NAMES = frozenset(("NAME", "QUOTED_NAME"))
_OF_KEEP = ("KEEP", "PER", "EVERY", *_KEPT)
_IN_CASE = {"WHEN": "WHEN", "THEN": "THEN", "ELSE": "ELSE", "END": "CASE_END"}
_AFTER_A_COMPONENT = frozenset(("WHERE", "WITHIN", "RETURN", "LIMIT", "AND", "OR"))
_BEFORE_ARGUMENTS = frozenset(("NAME", "QUOTED_NAME", "ANY", "IN"))
_ENDS_A_VALUE = frozenset(("NAME", "QUOTED_NAME", "STRING", "NUMBER", "RPAR", "TRUE", "FALSE", "PARAMETER"))
_BEGINS_A_VALUE = frozenset(
    (
        *("NAME", "QUOTED_NAME", "STRING", "NUMBER", "LPAR", "TRUE", "FALSE", "MINUS", "NOT", "BANG", "LSQB"),
        "PARAMETER",
    )
)


def with_soft_words(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with the special words among the names retyped."""
    found: list[Token] = []
    cases: list[int] = []
    """The bracket depth of each open CASE."""
    depth = 0
    in_pattern = True
    clause = ""
    opened: list[bool] = []
    """For each open parenthesis, whether it may contain an expression."""
    closed = False
    """Whether the last token ends an expression in parentheses."""
    for place, token in enumerate(tokens):
        if in_pattern and token in {"+", "*"} and _repeats(tokens, place):
            found.append(_retyped(token, "REPEAT"))
            closed = False
            continue
        depth += (token in {"(", "["}) - (token in {")", "]"})
        in_pattern &= depth > 0 or token.type not in _CLAUSES
        clause = token.type if not depth and token.type in _CLAUSES else clause
        before = found[-1] if found else None
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        in_case = bool(cases) and cases[-1] == depth  # where END follows a value in parentheses
        names_expression = closed and in_pattern and not in_case and _is_name(token)
        names_expression &= _ends_component(after) or _begins_keep(tokens[place + 1 : place + 3])
        closed = False
        if token == "(":
            opened.append(before is None or before.type not in _BEFORE_ARGUMENTS)
        elif token == ")":
            closed = bool(opened) and opened.pop()
        if names_expression:
            found.append(_retyped(token, "EXPRESSION_NAME"))
            continue
        word = token.upper() if token.type == "NAME" else ""
        if not word or (before is not None and before == ".") or (after is not None and after == "."):
            found.append(token)
        elif (word in _INFIX and _is_infix(found, after)) or (
            word in _STEPS and in_pattern and _is_step(before, tokens[place + 1 : place + 4])
        ):
            found.append(_retyped(token, word))
        elif not depth and word in _OF_KEEP and _is_of_keep(word, found, after, in_pattern):
            found.append(_retyped(token, "KEPT" if word in _KEPT else word))
        elif not depth and word == "INTO" and clause == "RETURN" and _ends_a_formula(found):
            found.append(_retyped(token, word))
        elif word == "CASE" and _is_case(tokens, place):
            cases.append(depth)
            found.append(_retyped(token, word))
        elif word == "DISTINCT" and _is_distinct(found, after):
            found.append(_retyped(token, word))
        elif word in _IN_CASE and cases and cases[-1] == depth:
            if word == "END":
                cases.pop()
            found.append(_retyped(token, _IN_CASE[word]))
        else:
            found.append(token)
    return found


def _repeats(tokens: Sequence[Token], place: int) -> bool:
    """Whether a sign comes after a component and before its variable, or before what follows a component.

    In a pattern every attribute has a variable, so a bare name next to the sign is a type or a variable.
    """
    before, earlier = tokens[place - 1 : place], tokens[max(place - 2, 0) : place - 1]
    if not before or not (_is_name(before[0]) or before[0] == ")" or before[0].type == "ANY"):
        return False
    if earlier and _is_name(before[0]) and (earlier[0] == "." or earlier[0].type == "NUMBER"):
        return False
    after = tokens[place + 1 : place + 3]
    if _ends_component(after[0] if after else None):
        return True
    if len(after) > 1 and (after[1] in {".", "("} or after[1].type == "STRING" or after[1].upper() == "WHEN"):
        return False  # an attribute, a call, TIMESTAMP '...', or CASE WHEN
    return _is_name(after[0])


def _ends_component(after: Token | None) -> bool:
    """Whether a component can end before a token."""
    return after is None or after in {",", ")", ":", "∧", "∨"} or after.type in _AFTER_A_COMPONENT


def _is_name(token: Token) -> bool:
    return token.type in {"NAME", "QUOTED_NAME"}


def _is_distinct(before: Sequence[Token], after: Token | None) -> bool:
    """Between the parenthesis of a call and a value."""
    called = len(before) > 1 and before[-1] == "(" and _is_name(before[-2])
    return called and after is not None and after.type in _BEGINS_A_VALUE and after != "("


def _is_infix(before: Sequence[Token], after: Token | None) -> bool:
    """Between two values, perhaps with NOT before it."""
    left = before[:-1] if before and before[-1].type == "NOT" else before
    return _ends_a_value(left) and after is not None and after.type in _BEGINS_A_VALUE


def _ends_a_value(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and (tokens[-1].type in _ENDS_A_VALUE or tokens[-1].type == "CASE_END")


def _ends_a_formula(tokens: Sequence[Token]) -> bool:
    """After a value, `x IS NULL` or `[id]`."""
    return _ends_a_value(tokens) or (bool(tokens) and tokens[-1].type in {"NULL", "RSQB"})


def _is_step(before: Token | None, following: Sequence[Token]) -> bool:
    """At the beginning of a component, before a type and a variable, or before ANY."""
    if before is not None and before.type not in _BEFORE_A_COMPONENT:
        return False
    if _begins_keep(following[1:]):
        return False  # `next a KEEP FIRST`: an event of the type `next`
    types = [token.type for token in following[:2]]
    return types[:1] == ["ANY"] or (len(types) == 2 and set(types) <= _NAMES)


def _begins_keep(following: Sequence[Token]) -> bool:
    return len(following) == 2 and following[0].upper() == "KEEP" and following[1].upper() in _KEPT


def _is_of_keep(word: str, before: Sequence[Token], after: Token | None, in_pattern: bool) -> bool:
    """KEEP after a clause, or after the pattern and before what it keeps; the other words after KEEP."""
    last = before[-1] if before else None
    if last is None:
        return False
    if word in _KEPT:
        return last.type == "KEEP"
    if word == "PER":
        return last.type == "KEPT"
    ends = last.type in _ENDS_A_VALUE or last.type in {
        "CASE_END",
        "RSQB",
        "NULL",
        "EVENT",
        "KEPT",
        "EXPRESSION_NAME",
    }
    if word == "EVERY":
        return ends and any(token.type == "KEEP" for token in before)
    return ends and (not in_pattern or (after is not None and after.upper() in _KEPT))


def _is_case(tokens: Sequence[Token], place: int) -> bool:
    """Before WHEN and a value."""
    following = tokens[place + 1 : place + 3]
    return len(following) == 2 and following[0].upper() == "WHEN" and following[1].type in _BEGINS_A_VALUE


def _retyped(token: Token, kind: str) -> Token:
    return token.update(type=kind)
