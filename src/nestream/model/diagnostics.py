"""Diagnostics: what is wrong with a query, where, and what to write instead, as data and as text.

Every problem in a query is a `Diagnostic`; a query with at least one error raises one `QueryError` with all
of them. Messages are primary / detail / hint, lower case, naming the kind of object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A piece of the query text, as character offsets `[start, end)`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The piece from the start of this span to the end of the other."""
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)
"""The span of a node that is not in the text."""


class Severity(StrEnum):
    """How bad a diagnostic is: an error rejects the query, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem in a query.

    `code` is a stable kebab-case name; `detail` says why it is a problem, `hint` what to do about it, and
    `suggestion` is text to write instead, if there is one.

    >>> import nestream
    >>> try:
    ...     nestream.query("SEQ(A a, B b) WITHIN 1 huor")
    ... except nestream.QueryError as problem:
    ...     print(problem.diagnostics[0].code, problem.diagnostics[0].severity)
    unknown-unit error
    """

    code: str
    message: str
    span: Span = NOWHERE
    severity: Severity = Severity.ERROR
    detail: str | None = None
    hint: str | None = None
    suggestion: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether this diagnostic rejects the query."""
        return self.severity is Severity.ERROR


class Reporting:
    """Collects the problems of a query in `diagnostics`, and continues."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        suggestion: str | None = None,
        *,
        detail: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Record a problem."""
        self.diagnostics.append(Diagnostic(code, message, span, severity, detail, hint, suggestion))


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text, with line and column counted from 1."""

    line: int
    column: int


def place(text: str, offset: int) -> Place:
    """The line and column of an offset."""
    offset = max(0, min(offset, len(text)))
    line_start = text.rfind("\n", 0, offset) + 1
    return Place(text.count("\n", 0, offset) + 1, offset - line_start + 1)


def as_dict(diagnostic: Diagnostic, text: str) -> dict[str, Any]:
    """The diagnostic as plain data for a program, with lines and columns from 1."""
    start, end = place(text, diagnostic.span.start), place(text, diagnostic.span.end)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "detail": diagnostic.detail,
        "hint": diagnostic.hint,
        "suggestion": diagnostic.suggestion,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "start": diagnostic.span.start,
        "end": diagnostic.span.end,
    }


_WIDEST_LINE = 160


def render(diagnostic: Diagnostic, text: str) -> str:
    """The diagnostic as text: the message, the line with the place underlined, and what to do."""
    at = place(text, diagnostic.span.start)
    lines = [f"{diagnostic.severity.value}: {diagnostic.message}"]
    if text:
        lines.append(f"  at line {at.line}, column {at.column}")
        lines.extend(_underlined(text, diagnostic.span, at))
    if diagnostic.detail:
        lines.append(f"  {diagnostic.detail}")
    if diagnostic.hint:
        lines.append(f"  hint: {diagnostic.hint}")
    if diagnostic.suggestion:
        lines.append("  write: " + diagnostic.suggestion.replace("\n", "\n         "))
    return "\n".join(lines)


def _underlined(text: str, span: Span, at: Place) -> list[str]:
    line_start = span.start - (at.column - 1)
    line_end = text.find("\n", line_start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    column = at.column - 1
    width = max(1, min(span.end, line_start + len(line)) - span.start)
    if len(line) > _WIDEST_LINE:
        left = max(0, column - _WIDEST_LINE // 2)
        line, column = line[left : left + _WIDEST_LINE], column - left
    width = max(1, min(width, len(line) - column))
    shown = "".join(" " if character.isspace() else character for character in line)
    gutter = f"  {at.line} | "
    return [gutter + shown, " " * (len(gutter) - 2) + "| " + " " * column + "^" * width]


class QueryError(ValueError):
    """A rejected query, with all reasons at once.

    `diagnostics` holds the problems, including warnings, in text order; `text` is the query.

    >>> import nestream
    >>> try:
    ...     nestream.query("SEQ(A a, B b)")
    ... except nestream.QueryError as problem:
    ...     print(problem.diagnostics[0].message)
    the query has no WITHIN, so its state would grow without limit
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], text: str = "") -> None:
        self.diagnostics: Sequence[Diagnostic] = in_text_order(diagnostics)
        self.text = text
        super().__init__("\n\n".join(render(diagnostic, text) for diagnostic in self.diagnostics))

    def __reduce__(self) -> tuple[type[QueryError], tuple[Sequence[Diagnostic], str]]:
        return type(self), (self.diagnostics, self.text)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The diagnostics as plain data, with lines and columns."""
        return [as_dict(diagnostic, self.text) for diagnostic in self.diagnostics]


def in_text_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The distinct diagnostics in text order; at the same place, errors come first."""
    distinct = dict.fromkeys(diagnostics)
    return tuple(sorted(distinct, key=lambda d: (d.span.start, d.severity is Severity.WARNING)))


class QuerySetError(QueryError):
    """Rejected queries of a set: `errors` has the error of each by name."""

    def __init__(self, errors: Mapping[str, QueryError]) -> None:
        self.errors = dict(errors)
        problems: list[Diagnostic] = [said for error in errors.values() for said in error.diagnostics]
        super().__init__(problems)
        shown = "\n\n".join(f"query {name}:\n{error}" for name, error in errors.items())
        self.args = (shown,)

    def __reduce__(self) -> Any:
        return type(self), (self.errors,)
