"""Names of events in objects: an event is known by its identity, and named when the query is complete.

`Variable` is a name that remembers which event it belongs to. `resolved` replaces all of them by plain names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from itertools import count
from typing import Any

from nestream.language.ast import (
    Composite,
    Exists,
    Negation,
    Pattern,
    Primitive,
    Query,
    Repeated,
    ReturnExpression,
    ReturnVariable,
    Step,
    parts,
)
from nestream.model.diagnostics import Diagnostic, QueryError
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import Attribute, Expression, transform, walk
from nestream.model.text import print_name


class Variable(str):
    """The name of an event or an expression, or the name of its type if it has none yet."""

    key: object
    named: bool

    def __new__(cls, text: str, key: object, *, named: bool = True) -> Variable:
        made = super().__new__(cls, text)
        made.key, made.named = key, named
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _variable, (str(self), self.key, self.named)


class Key:
    """The identity of an event."""


def _variable(text: str, key: object, named: bool) -> Variable:
    return Variable(text, key, named=named)


def mistake(code: str, message: str, hint: str) -> QueryError:
    """Report a mistake in objects, before there is a text to point at."""
    return QueryError([Diagnostic(code, message, hint=hint)])


def implied_name(types: tuple[str, ...]) -> str:
    """The name of an event without one: that of its type."""
    return "any" if types == (ANY_TYPE,) else "_or_".join(types)


def declared(pattern: Pattern) -> Iterator[str | None]:
    """The variables of a pattern; None for an event of text without one."""
    for part in parts(pattern):
        if isinstance(part, Primitive) or (
            isinstance(part, Composite | Repeated) and part.variable is not None
        ):
            yield part.variable


def refuse_twice(pattern: Pattern) -> None:
    """Raise if an event occurs twice in a pattern."""
    keys = Counter(name.key for name in declared(pattern) if isinstance(name, Variable))
    for name in declared(pattern):
        if isinstance(name, Variable) and keys[name.key] > 1:
            what = "event" if _is_event(pattern, name) else "expression"
            raise mistake(
                "event-used-twice",
                f"the {what} `{name}` occurs twice in the pattern",
                f"one object is one {what} of a match: make another with a name of its own, "
                + (
                    f'as in `event("{_types(pattern, name)}", "{_plain(name)}2")`'
                    if what == "event"
                    else f'as in `.named("{_plain(name)}2")`'
                ),
            )


def _is_event(pattern: Pattern, name: Variable) -> bool:
    return any(isinstance(part, Primitive) and part.variable is name for part in parts(pattern))


def _types(pattern: Pattern, name: Variable) -> str:
    found = next(part for part in parts(pattern) if isinstance(part, Primitive) and part.variable is name)
    return found.types[0] if found.types != (ANY_TYPE,) else "A"


def _plain(name: str) -> str:
    return name if name.isidentifier() else "x"


def resolved(query: Query, *, strict: bool = True) -> Query:
    """The query with plain names; with `strict`, raises if it mentions an event that it does not contain."""
    return _Resolving(query, strict=strict).query()


def plain(expression: Expression) -> Expression:
    """The expression with plain names, to show it."""
    return _with_names(expression, str)


class _Resolving:
    """The plain names of one query: `name` for what is mentioned, `pattern` for what is declared."""

    def __init__(self, query: Query, *, strict: bool) -> None:
        self.whole, self.strict = query, strict
        events = [part for part in parts(query.pattern) if isinstance(part, Primitive)]
        given = {str(name) for name in declared(query.pattern) if is_given(name)}
        implied = Counter(implied_name(each.types) for each in events if not is_given(each.variable))
        self.known = given | set(implied)
        names = self._names(events, given, implied)
        self.names = iter(names)
        """The name of each event; None for one that stays without."""
        self.by_key: dict[object, str] = {
            name.key: str(name) for name in declared(query.pattern) if isinstance(name, Variable)
        }
        for each, name in zip(events, names, strict=True):
            if isinstance(each.variable, Variable) and name is not None:
                self.by_key[each.variable.key] = name

    def _names(self, events: list[Primitive], given: set[str], implied: Counter[str]) -> list[str | None]:
        """A name for each event that needs one, like those that binding gives to events in text."""
        mentioned = {name.key for name in _mentions(self.whole) if isinstance(name, Variable)}

        def needs(event: Primitive) -> bool:
            name = event.variable
            return _is_step(event) or (isinstance(name, Variable) and name.key in mentioned)

        unnamed = [each for each in events if not is_given(each.variable)]
        numbered = {
            name
            for name in (implied_name(each.types) for each in unnamed if needs(each))
            if implied[name] > 1 or name in given
        }
        used = set(self.known)
        names: list[str | None] = []
        for event in events:
            name = None if event.variable is None else str(event.variable)
            if not is_given(event.variable):
                name = implied_name(event.types)
                if name in numbered:
                    name = next(fresh for n in count(1) if (fresh := f"{name}_{n}") not in used)
                    used.add(name)
                elif not _is_step(event):
                    name = None
            names.append(name)
        return names

    def query(self) -> Query:
        query = self.whole
        keep = query.keep
        return replace(
            query,
            pattern=self.pattern(query.pattern),
            where=None if query.where is None else self.formula(query.where),
            returns=tuple(map(self.item, query.returns)),
            keep=None if keep is None else replace(keep, per=tuple(map(self.kept, keep.per))),
        )

    def item(self, item: ReturnVariable | ReturnExpression) -> ReturnVariable | ReturnExpression:
        if isinstance(item, ReturnVariable):
            return replace(item, variable=self.name(item.variable))
        return replace(item, expression=self.formula(item.expression))

    def kept(self, item: str | Expression) -> str | Expression:
        return self.name(item) if isinstance(item, str) else self.formula(item)

    def formula(self, expression: Expression) -> Expression:
        return _with_names(expression, self.name)

    def name(self, name: str) -> str:
        """The name of a mentioned event."""
        if not isinstance(name, Variable):
            return name
        if name.key not in self.by_key and self.strict and str(name) not in self.known:
            close = get_close_matches(name, self.known, 1)
            known = ", ".join(f"`{print_name(other)}`" for other in sorted(self.known))
            raise mistake(
                "event-not-in-pattern",
                f"the event `{name}` is not in the pattern",
                f"did you mean `{close[0]}`?"
                if close
                else f"add it to the pattern, or use one of its events: {known}",
            )
        return self.by_key.get(name.key, str(name))

    def pattern(self, pattern: Pattern) -> Pattern:
        match pattern:
            case Primitive():
                predicates = tuple(map(self.formula, pattern.predicates))
                return replace(pattern, variable=next(self.names), predicates=predicates)
            case Composite():
                return replace(
                    pattern,
                    components=tuple(map(self.pattern, pattern.components)),
                    predicates=tuple(map(self.formula, pattern.predicates)),
                    variable=None if pattern.variable is None else str(pattern.variable),
                )
            case Repeated(variable=variable, body=body):
                named = None if variable is None else str(variable)
                return replace(pattern, body=self.pattern(body), variable=named)
            case Negation(body=body):
                return replace(pattern, body=self.pattern(body))
            case Exists(variables=variables, body=body):
                hidden = tuple(map(self.name, variables))
                return replace(pattern, variables=hidden, body=self.pattern(body))


def _is_step(event: Primitive) -> bool:
    """Whether NEXT or DIRECTLY comes before the type: text would read it as a type without a variable."""
    return event.step is not Step.ANY and len(event.types) == 1 and event.types != (ANY_TYPE,)


def is_given(name: str | None) -> bool:
    """Whether a variable is written, and not implied by the type."""
    return name is not None and (not isinstance(name, Variable) or name.named)


def _mentions(query: Query) -> Iterator[str]:
    """The names that conditions and clauses mention."""
    formulas: list[Expression] = [] if query.where is None else [query.where]
    for part in parts(query.pattern):
        if isinstance(part, Exists):
            yield from part.variables
        elif isinstance(part, Primitive | Composite):
            formulas += part.predicates
    for item in query.returns:
        if isinstance(item, ReturnVariable):
            yield item.variable
        else:
            formulas.append(item.expression)
    for each in () if query.keep is None else query.keep.per:
        if isinstance(each, str):
            yield each
        else:
            formulas.append(each)
    for found in (part for formula in formulas for part in walk(formula) if isinstance(part, Attribute)):
        yield from (name for name in (found.variable, found.inner, found.name) if name is not None)


def _with_names(expression: Expression, name: Callable[[str], str]) -> Expression:
    def changed(part: Expression) -> Expression:
        if not isinstance(part, Attribute):
            return part
        if part.variable is None:  # `COUNT(f)`
            return replace(part, name=name(part.name)) if isinstance(part.name, Variable) else part
        inner = None if part.inner is None else name(part.inner)
        return replace(part, variable=name(part.variable), name=name(part.name), inner=inner)

    return transform(expression, changed)
