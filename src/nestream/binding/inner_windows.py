"""Turns windows inside a pattern into conditions: the span of an expression's events is at most the window.

`(SEQ(B b, ..., D d) WITHIN 10 s)` means `d.ts - b.ts <= 10 s`. Where several events may be the first or the
last, every pair must be close enough. An event of an OR may be missing; then it is not constrained.
"""

from __future__ import annotations

from collections.abc import Iterator

from nestream.binding.scopes import Scope
from nestream.language.ast import Composite, InnerWindow, Operator
from nestream.model.diagnostics import Diagnostic, Span
from nestream.model.expression import (
    TIME_ATTRIBUTE,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Or,
)
from nestream.model.time import Duration, Window, WindowKind


def window_conditions(scope: Scope, exclusive: bool) -> list[Expression]:
    """The conditions of the windows written with the expression of a scope."""
    found: list[Expression] = []
    for inner in () if scope.is_or else _windows(scope):
        assert isinstance(inner.window, Window), "parameters have got their values"
        if inner.window.kind in (WindowKind.TIME, WindowKind.NUMBER):
            found += _conditions(scope, inner.window, inner.span, "<" if exclusive else "<=")
    return found


def _windows(scope: Scope) -> tuple[InnerWindow, ...]:
    """The windows of an expression; a branch also has those of its OR."""
    own = scope.pattern.windows if isinstance(scope.pattern, Composite) else ()
    return own + (_windows(scope.parent) if scope.parent is not None and scope.parent.is_or else ())


def check_inner_window(inner: InnerWindow) -> Diagnostic | None:
    """What is wrong with a window inside a pattern."""
    if isinstance(inner.window, Window) and inner.window.kind is WindowKind.EVENTS:
        return Diagnostic(
            "inner-window-events",
            "a window inside the pattern cannot count events",
            inner.span,
            hint="write it as a duration or a number; WITHIN after the pattern can count events",
        )
    return None


def _conditions(scope: Scope, window: Window, span: Span, operator: str) -> Iterator[Expression]:
    size = Literal(Duration(window.size) if window.kind is WindowKind.TIME else window.size, span)
    for last, last_may_miss in _ends(scope, -1):
        for first, first_may_miss in _ends(scope, 0):
            if last == first:
                continue
            times = (Attribute(name, TIME_ATTRIBUTE, span, own=True) for name in (last, first))
            late, early = times
            near = Comparison(operator, (Arithmetic("-", late, early, span), size), span)
            missing = [
                IsNull(time, span=span)
                for time, may_miss in ((late, last_may_miss), (early, first_may_miss))
                if may_miss
            ]
            yield Or((*missing, near), span) if missing else near


def _ends(item: Scope | str, end: int, may_miss: bool = False) -> list[tuple[str, bool]]:
    """The variables of the first (0) or last (-1) event of an expression, and whether each may be missing."""
    if isinstance(item, str):
        return [(item, may_miss)]
    parts = [part for part in item.items if isinstance(part, str) or not part.apart]
    is_sequence = isinstance(item.pattern, Composite) and item.pattern.operator is Operator.SEQ
    if is_sequence:
        parts = [parts[end]]
    return [found for part in parts for found in _ends(part, end, may_miss or item.is_or)]
