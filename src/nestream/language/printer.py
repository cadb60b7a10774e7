"""The one layout of a query: a clause per line, and a pattern on one line or with a component per line.

`parse(print_query(query)) == query`, so printing is idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nestream.language.ast import (
    Composite,
    Exists,
    IntoType,
    KeepClause,
    Negation,
    Pattern,
    Primitive,
    Query,
    Repeated,
    ReturnExpression,
    ReturnVariable,
)
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import And, Expression, Or, Parameter
from nestream.model.text import print_expression, print_name, print_operands, quantity_text

__all__ = ["print_expression", "print_name", "print_pattern", "print_query", "saved_spelling"]

WIDTH = 88
_INDENT = "  "
_ONE_OF_A_UNIT = re.compile(
    r""""(?:[^"]|"")*"|`(?:[^`]|``)*`|(?<![\w.])(?<!\w-)1 (?:minute|hour|day|week|(?P<upper>EVENT))\b"""
)


def saved_spelling(printed: str) -> str:
    """A printed query as saved states spell it: `1 hours`, which is how durations were once printed.

    A state belongs to a query by this text, so the text never changes. Strings and quoted names are left
    alone.
    """

    def plural(found: re.Match[str]) -> str:
        return found[0] if found[0][0] in '"`' else found[0] + ("S" if found["upper"] else "s")

    return _ONE_OF_A_UNIT.sub(plural, printed)


def print_query(query: Query) -> str:
    """The query as text, without a final newline."""
    keyword = "EVENT" if query.sase else "PATTERN"
    lines = [f"{keyword} {_laid_out(query.pattern, '', len(keyword) + 1)}"]
    if query.where is not None:
        lines.append(_where(query.where))
    if query.window is not None:
        lines.append(f"WITHIN {query.window}")
    if query.returns:
        lines.append(_returns(query.returns, query.into))
    if query.keep is not None:
        lines.append(_keep(query.keep))
    if query.limit is not None:
        limit = query.limit
        lines.append(f"LIMIT {print_expression(limit) if isinstance(limit, Parameter) else limit}")
    return "\n".join(lines)


def print_pattern(pattern: Pattern) -> str:
    """The pattern on one line."""
    head, items, tail = _parts(pattern)
    return head + ", ".join(item if isinstance(item, str) else print_pattern(item) for item in items) + tail


def _parts(pattern: Pattern) -> tuple[str, list[Pattern | str], str]:
    """Split a pattern into its head, its list (components, and predicates as text) and its tail."""
    match pattern:
        case Negation(body=Repeated(variable=None, body=Primitive(predicates=(_, *_)))):
            head, items, tail = _parts(pattern.body)
            return "!" + head, items, tail
        case Negation(body=Primitive(predicates=(_, *_)) as body):
            return "!(", [_event(body), *map(print_expression, body.predicates)], ")"
        case Negation(body=body):
            head, items, tail = _parts(body)
            return "!" + head, items, tail
        case Repeated(variable=None, body=Primitive(predicates=()) as body):
            return _event(body, print_quantity(pattern)), [], ""
        case Repeated(variable=None, body=Primitive(predicates=predicates) as body):
            repeats = _event(body, print_quantity(pattern))
            return f"({repeats} : ", list(map(print_expression, predicates)), ")"
        case Repeated(variable=variable, body=body):
            named = "" if variable is None else f" {print_name(variable)}"
            if isinstance(body, Primitive) and body.predicates:
                head, items, tail = _parts(body)
                return head, items, f"{tail}{print_quantity(pattern)}{named}"
            head, items, tail = _parts(body)
            return f"({head}", items, f"{tail}){print_quantity(pattern)}{named}"
        case Exists(variables=variables, body=body):
            head, items, tail = _parts(body)
            return f"EXISTS {', '.join(map(print_name, variables))} : {head}", items, tail
        case Primitive(predicates=()):
            return _event(pattern), [], ""
        case Primitive(predicates=predicates):
            return f"({_event(pattern)} : ", list(map(print_expression, predicates)), ")"
        case Composite(operator=operator, components=components, predicates=predicates):
            named = "" if pattern.variable is None else f" {print_name(pattern.variable)}"
            tail = f"){named}" + "".join(f" WITHIN {inner.window})" for inner in pattern.windows)
            opening = "(" * len(pattern.windows)
            return f"{opening}{operator}(", [*components, *map(print_expression, predicates)], tail


def print_quantity(group: Repeated) -> str:
    """The number of members of a group, as written: `+`, `*`, `{3}`, `{3,}`, `{,5}` or `{2,5}`."""
    return quantity_text(group.least, group.most)


def _event(primitive: Primitive, quantity: str = "") -> str:
    types = list(map(print_name, primitive.types))
    kind = types[0] if len(types) == 1 else f"ANY({', '.join(types)})"
    if primitive.types == (ANY_TYPE,):
        kind = "ANY"
    kind += quantity
    step = f"{primitive.step} " if primitive.step else ""
    return step + (kind if primitive.variable is None else f"{kind} {print_name(primitive.variable)}")


def _laid_out(pattern: Pattern, indent: str, used: int) -> str:
    """The pattern, starting at column `used`; further lines are indented by `indent` or more."""
    line = print_pattern(pattern)
    head, items, tail = _parts(pattern)
    if used + len(line) <= WIDTH or not items:
        return line
    inner = indent + _INDENT
    # Reserve one column for the comma.
    lines = [
        inner + (item if isinstance(item, str) else _laid_out(item, inner, len(inner) + 1)) for item in items
    ]
    return f"{head.rstrip()}\n" + ",\n".join(lines) + f"\n{indent}{tail}"


def _where(formula: Expression) -> str:
    line = f"WHERE {print_expression(formula)}"
    if len(line) <= WIDTH or not isinstance(formula, And | Or):
        return line
    word = "AND" if isinstance(formula, And) else "OR"
    return "WHERE " + f"\n{_INDENT}{word} ".join(print_operands(formula))


def _returns(items: Sequence[ReturnVariable | ReturnExpression], into: IntoType | None) -> str:
    printed = list(map(_return_item, items))
    made = "" if into is None else f"INTO {print_name(into.name)}"
    line = f"RETURN {', '.join(printed)} {made}".rstrip()
    if len(line) <= WIDTH:
        return line
    return "RETURN\n" + ",\n".join(_INDENT + item for item in printed) + (f"\n{made}" if made else "")


def _keep(keep: KeepClause) -> str:
    items = [print_name(item) if isinstance(item, str) else print_expression(item) for item in keep.per]
    every = "" if keep.every is None else f" EVERY {print_expression(keep.every)}"
    per = f" PER {', '.join(items)}" if items else ""
    return f"KEEP {keep.kind}{per}{every}"


def _return_item(item: ReturnVariable | ReturnExpression) -> str:
    if isinstance(item, ReturnVariable):
        return print_name(item.variable)
    expression = print_expression(item.expression)
    return expression if item.name is None else f"{expression} AS {print_name(item.name)}"
