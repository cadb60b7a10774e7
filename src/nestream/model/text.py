"""Expressions and names as query text: what the printer, the plans and the diagnostics show.

The text is canonical: one spelling for each operator, and parentheses only where precedence needs them.
Parsing it returns the same expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final

from nestream.model.expression import (
    COLUMN_MARK,
    PATH_MARK,
    Aggregate,
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
    Parameter,
    Previous,
    Value,
)
from nestream.model.functions import FUNCTIONS
from nestream.model.time import Duration

PLAIN_NAME: Final = r"[^\W\d]\w*(?:-\w+)*"
"""The names that need no backticks, as a regular expression: letters, digits, `_`, and `-` between them."""

RESERVED_WORDS: Final = (
    "PATTERN",
    "EVENT",
    "WHERE",
    "WITHIN",
    "RETURN",
    "LIMIT",
    "SEQ",
    "AND",
    "OR",
    "NOT",
    "ANY",
    "EXISTS",
    "IN",
    "BETWEEN",
    "IS",
    "NULL",
    "TRUE",
    "FALSE",
    "AS",
)
"""The keywords; a type, variable or attribute of such a name is written in backticks."""

_PLAIN: Final = re.compile(PLAIN_NAME)
_RESERVED: Final = re.compile("|".join(RESERVED_WORDS), re.IGNORECASE)


def is_reserved(name: str) -> bool:
    """Whether the name is a keyword, in any case."""
    return _RESERVED.fullmatch(name) is not None


def print_name(name: str) -> str:
    """The name of a type, variable or attribute as a query writes it."""
    if PATH_MARK in name:
        return ".".join(map(print_name, name.split(PATH_MARK)))
    name = name.removeprefix(COLUMN_MARK)
    if _PLAIN.fullmatch(name) and not is_reserved(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def in_backticks(code: str) -> str:
    """A piece of a query inside of a sentence; one with a quoted name has backticks already.

    >>> in_backticks("a.id"), in_backticks(print_name("first name"))
    ('`a.id`', '`first name`')
    """
    return code if "`" in code else f"`{code}`"


def print_string(value: str) -> str:
    """A string constant in double quotes; a quote inside is doubled."""
    return '"' + value.replace('"', '""') + '"'


def print_value(value: Value) -> str:
    """A constant as a query writes it."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return print_string(value)
        case datetime():
            return f"TIMESTAMP {print_string(value.isoformat(sep=' '))}"
        case Duration() | Decimal():
            return str(value)
        case _:
            return repr(value)


# The levels of precedence, as in the grammar: a part that binds less tightly than its place needs
# parentheses.
_OR, _AND, _NOT, _CONDITION, _SUM, _PRODUCT, _FACTOR, _ATOM = range(8)


def print_expression(expression: Expression) -> str:
    """The expression as query text."""
    return _print(expression, _OR)


def print_operands(formula: And | Or) -> list[str]:
    """The formulas that AND or OR joins, each as text that can be next to the word."""
    place = _NOT if isinstance(formula, And) else _AND
    return [_print(operand, place) for operand in formula.operands]


def _print(expression: Expression, place: int) -> str:
    text, level = _text_and_level(expression)
    return text if level >= place else f"({text})"


def _text_and_level(expression: Expression) -> tuple[str, int]:
    match expression:
        case Literal(value=value):
            text = print_value(value)
            return text, _FACTOR if text.startswith("-") else _ATOM
        case Attribute(variable=variable, name=name, inner=inner):
            owner = "" if variable is None else f"{print_name(variable)}."
            owner += "" if inner is None else f"{print_name(inner)}."
            return owner + print_name(name), _ATOM
        case Aggregate():
            return _aggregate(expression), _ATOM
        case Previous(operands=operands):
            return f"PREV({_listed(operands)})", _ATOM
        case Parameter(name=name):
            return f"${name}", _ATOM
        case Call():
            return _call(expression)
        case Negative(operand=operand):
            return f"-{_print(operand, _FACTOR)}", _FACTOR
        case Arithmetic(operator=operator, left=left, right=right):
            level = _SUM if operator in "+-" else _PRODUCT
            return f"{_print(left, level)} {operator} {_print(right, level + 1)}", level
        case Comparison(operator=operator, operands=operands):
            return f" {operator} ".join(_print(operand, _SUM) for operand in operands), _CONDITION
        case In(operand=operand, values=values, negated=negated):
            return f"{_print(operand, _SUM)} {'NOT ' * negated}IN ({_listed(values)})", _CONDITION
        case Between(operand=operand, low=low, high=high, negated=negated):
            ends = f"{_print(low, _SUM)} AND {_print(high, _SUM)}"
            return f"{_print(operand, _SUM)} {'NOT ' * negated}BETWEEN {ends}", _CONDITION
        case IsNull(operand=operand, negated=negated):
            return f"{_print(operand, _SUM)} IS {'NOT ' * negated}NULL", _CONDITION
        case Equivalence(attribute=attribute, value=value):
            tested = "" if value is None else f" = {print_expression(value)}"
            return f"[{print_name(attribute)}{tested}]", _CONDITION
        case Not(operand=operand):
            return f"NOT {_print(operand, _NOT)}", _NOT
        case And():
            return " AND ".join(print_operands(expression)), _AND
        case Or():
            return " OR ".join(print_operands(expression)), _OR


def _call(call: Call) -> tuple[str, int]:
    known = FUNCTIONS.get(call.function)
    if known is not None and known.is_implicit:
        return _text_and_level(call.arguments[0])
    if known is not None and known.infix and len(call.arguments) == 2:
        left, right = call.arguments
        return f"{_print(left, _SUM)} {known.infix} {_print(right, _SUM)}", _CONDITION
    if call.function == "case" and len(call.arguments) > 1:
        parts = [print_expression(argument) for argument in call.arguments]
        when = "".join(f" WHEN {c} THEN {v}" for c, v in zip(parts[0::2], parts[1::2], strict=False))
        return f"CASE{when}{f' ELSE {parts[-1]}' if len(parts) % 2 else ''} END", _ATOM
    return f"{call.function}({_listed(call.arguments)})", _ATOM


def _aggregate(aggregate: Aggregate) -> str:
    counts_members = aggregate.group is not None and aggregate.operand == Literal(True)
    over = print_name(aggregate.group or "") if counts_members else print_expression(aggregate.operand)
    return f"{aggregate.function.split()[0].upper()}({'DISTINCT ' * aggregate.distinct}{over})"


def quantity_text(least: int, most: int | None) -> str:
    """The number of members of a group, as a query writes it."""
    match least, most:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case _, None:
            return f"{{{least},}}"
        case 0, most if most:
            return f"{{,{most}}}"
        case _:
            return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _listed(expressions: Iterable[Expression]) -> str:
    return ", ".join(map(print_expression, expressions))
