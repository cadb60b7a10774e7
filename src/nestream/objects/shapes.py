"""Changes patterns of the syntax tree: adds conditions, a window, or a variable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nestream.language.ast import (
    AnyWindow,
    Composite,
    Exists,
    InnerWindow,
    Negation,
    Pattern,
    Primitive,
    Repeated,
)
from nestream.language.build_pattern import with_predicates
from nestream.model.diagnostics import NOWHERE
from nestream.model.expression import Expression
from nestream.objects.names import Key, Variable, is_given, mistake


def filtered(tree: Pattern, conditions: Iterable[Expression]) -> Pattern:
    """The pattern with more conditions."""
    return with_predicates(tree, tuple(conditions), NOWHERE)


def windowed(tree: Pattern, window: AnyWindow) -> Pattern:
    """The pattern with its own window; for a negation or a projection, it goes to the body."""
    match tree:
        case Composite():
            return replace(tree, windows=(*tree.windows, InnerWindow(window)))
        case Negation(body=body) | Exists(body=body):
            return replace(tree, body=windowed(body, window))
        case Repeated():
            raise mistake(
                "window-of-event",
                "a window of a group",
                'set it on the expression that repeats: seq(a, b).within("10 s").one_or_more()',
            )
        case Primitive():
            raise mistake(
                "window-of-event",
                "a window of a single event",
                "an event has no length: call .within on a seq or all_of, or on the whole query",
            )


def variable_of(tree: Pattern) -> str | None:
    """The variable by which conditions mention the pattern."""
    match tree:
        case Negation(body=body) | Exists(body=body):
            return variable_of(body)
        case Repeated(variable=None, body=Primitive() as body):
            return body.variable
        case _:
            return tree.variable


def named(tree: Pattern, name: str) -> Pattern:
    """The pattern with a variable; it stays the same event, whatever its name was."""
    match tree:
        case Negation(body=body) | Exists(body=body):
            return replace(tree, body=named(body, name))
        case Repeated(body=Primitive(variable=variable) as body) if not is_given(variable):
            return replace(tree, body=named(body, name))
        case _:
            known = tree.variable
            return replace(tree, variable=Variable(name, known.key if isinstance(known, Variable) else Key()))
