"""Builds the patterns of the syntax tree during parsing: components, operators, groups, negations.

Where the grammar accepts more than the language, the mistake is reported here and building continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from lark import Token

from nestream.language.ast import (
    AnyWindow,
    Composite,
    Exists,
    InnerWindow,
    Negation,
    Operator,
    Pattern,
    Primitive,
    Repeated,
    Step,
    WindowParameter,
)
from nestream.language.build_formula import Children, FormulaBuilder, Name, span_of, span_over
from nestream.language.literals import UnreadableError
from nestream.language.windows import ANY_WINDOW, read_window
from nestream.model.diagnostics import Diagnostic, QueryError, Span
from nestream.model.event_types import ANY_TYPE
from nestream.model.expression import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Equivalence,
    Expression,
    Negative,
    Not,
    Or,
    walk,
)
from nestream.model.text import in_backticks, print_expression, print_name, print_string
from nestream.model.wording import shortened

MOST_PARTS = 10_000
"""The maximum number of components and predicates in a query."""

UNREADABLE = Primitive(("",))
"""Stands for a component that could not be parsed; a tree with it is never returned."""


def is_unreadable(pattern: Pattern) -> bool:
    """Whether the pattern stands for one that could not be parsed; no text has a type without a name."""
    return isinstance(pattern, Primitive) and pattern.types == UNREADABLE.types


@dataclass(frozen=True)
class Several:
    """Parentheses around several components, `(A a, B b)`: allowed only doubled, as in `SEQ((A a, B b))`."""

    elements: tuple[Any, ...]
    span: Span


def is_pattern(part: object) -> TypeGuard[Pattern | Several]:
    """Whether an element of a list is a component and not a predicate."""
    return isinstance(part, Primitive | Composite | Repeated | Negation | Exists | Several)


class PatternBuilder(FormulaBuilder):
    """The patterns of one query. The first sign of NEEL+ is kept to recognise the dialect."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.neel_plus_sign: Span | None = None
        self.formula_on_component = False
        self._parts = 0
        self.blamed: dict[Diagnostic, Span] = {}
        """The predicate that precedes each misplaced component."""

    def _count_part(self, span: Span) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            message = f"the query has more than {MOST_PARTS:,} components and predicates"
            raise QueryError([*self.diagnostics, Diagnostic("too-many-parts", message, span)], self.text)

    # ---- components ----

    def primitive(self, children: Children) -> Primitive:
        step, (kind, *variable) = _step(children)
        span = span_over(children)
        self._count_part(span)
        self._variables += [name.text for name in variable]
        return Primitive((kind.text,), variable[0].text if variable else None, (), span, step)

    def any(self, children: Children) -> Primitive:
        span = span_over(children)
        self._count_part(span)
        names = [child for child in children if isinstance(child, Name)]
        variable = names.pop().text if isinstance(children[-1], Name) else None
        self._variables += [variable] if variable is not None else []
        types = tuple(name.text for name in names) or (ANY_TYPE,)
        return Primitive(types, variable, (), span, _step(children)[0])

    def repeated(self, children: Children) -> Pattern:
        """`A+ a`, `ANY(A, B){2,} x`, `(SEQ(B b, C c))+ p`."""
        span = span_over(children)
        at = next(
            place
            for place, child in enumerate(children)
            if isinstance(child, Token) and _begins_quantity(child)
        )
        variable = children[-1] if isinstance(children[-1], Name) and len(children) - 1 > at else None
        end = len(children) - (variable is not None)
        least, most = self._quantity(children[at:end])
        self._variables += [variable.text] if variable is not None else []
        named = variable.text if variable is not None else None
        body: Pattern
        if isinstance(children[0], Name | Token):
            self._count_part(span)
            types = tuple(child.text for child in children[:at] if isinstance(child, Name)) or (ANY_TYPE,)
            body = Primitive(types, named, (), span)
            return self.nested(Repeated(body, least, most, None, span), [])
        body = self._one(children[0])
        if isinstance(body, Primitive) and named is not None and body.variable is None:
            body, named = replace(body, variable=named), None
        return self.nested(Repeated(body, least, most, named, span), [children[0]])

    def _quantity(self, signs: Children) -> tuple[int, int | None]:
        """The least and greatest number of members that `+`, `*` or `{m,n}` allows."""
        if signs[0].type == "REPEAT":
            return (1, None) if signs[0] == "+" else (0, None)
        span = span_over(signs)
        written = "".join(signs)
        numbers = [sign for sign in signs if sign.type == "NUMBER"]
        for number in numbers:
            if not number.isdigit() or len(number.lstrip("0")) > 18:
                self.report(
                    "bad-repetition",
                    f"`{shortened(written)}` does not say how many",
                    span,
                    hint="write whole numbers, as in `{3}`, `{3,}`, `{,5}` or `{2,5}`",
                )
                return 1, None
        if len(numbers) == 1:
            number = int(numbers[0])
            if "," not in signs:
                return number, number
            return (number, None) if signs[1] is numbers[0] else (0, number)
        least, most = map(int, numbers)
        if least > most:
            self.report(
                "bad-repetition",
                f"`{written}` asks for at least {least} and at most {most}",
                span,
                hint="write the smaller number first",
                suggestion=f"{{{most},{least}}}",
            )
            return most, least
        return least, most

    def unreadable(self, children: Children) -> Primitive:
        return UNREADABLE

    def operator(self, children: Children) -> Pattern:
        keyword, _, elements, _, *names = children
        span = span_over(children)
        self._count_part(span)
        if len(elements) == 1 and isinstance(elements[0], Several):
            elements = elements[0].elements
        components, predicates = self._sorted(elements, keyword)
        composite = Composite(Operator(keyword.type), tuple(components), tuple(predicates), span)
        return self.nested(self._named(composite, names), elements)

    def _named(self, body: Pattern, names: Sequence[Name]) -> Pattern:
        """An expression with its variable; for a negation or a projection, it goes to the body."""
        if not names or is_unreadable(body):
            return body
        (name,) = names
        match body:
            case Negation(body=inner) | Exists(body=inner):
                return replace(body, body=self._named(inner, names))
            case Composite(variable=None) | Primitive(variable=None):
                self._variables.append(name.text)
                return replace(body, variable=name.text)
        self.report(
            "two-variables",
            f"`{shortened(self._source(body))}` has a variable already",
            name.span,
            hint="remove one of the two",
        )
        return body

    def elements(self, children: Children) -> Children:
        return children[0::2]

    def predicate(self, children: Children) -> Expression | Pattern:
        (formula,) = children
        return self._checked(formula)

    def _checked(self, formula: Expression) -> Expression:
        """A formula as a predicate of the pattern."""
        self._count_part(formula.span)
        self._check_closed(formula, "a condition of the pattern")
        return formula

    def _sorted(self, elements: Children, keyword: Token) -> tuple[list[Pattern], list[Expression]]:
        """The components and the predicates of a list; the components come first."""
        components: list[Pattern] = []
        predicates: list[Expression] = []
        for element in elements:
            if not is_pattern(element):
                predicates.append(element)
                continue
            if predicates and element is not UNREADABLE:
                self._report_late_component(element, predicates[-1], keyword)
            components.append(self._one(element))
        if not components:
            self.report(
                "no-component",
                f"{keyword.upper()} has no component",
                span_of(keyword).to(span_of(elements[-1])),
                hint="a component is a type and a variable, as in `A a`; "
                + (
                    "write the components first, then the conditions: `SEQ(A a, B b, a.id = b.id)`"
                    if keyword.type == "SEQ"
                    else f"write {keyword.upper()} between conditions, as in "
                    f"`a.x = 1 {keyword.upper()} b.y = 2`"
                ),
            )
            components.append(UNREADABLE)
        return components, predicates

    def _report_late_component(self, element: Any, predicate: Expression, keyword: Token) -> None:
        moved, before = self._source(element), self._source(predicate)
        self.report(
            "component-after-predicate",
            f"the component `{shortened(moved)}` comes after a condition",
            span_of(element),
            hint=f"write the components of {keyword.upper()} first, then the conditions: "
            f"move `{shortened(moved)}` before `{shortened(before)}`",
            suggestion=f"{moved}, {before}" if len(moved) + len(before) < 80 else None,
        )
        self.blamed[self.diagnostics[-1]] = span_of(predicate)

    def _source(self, part: Any) -> str:
        span = span_of(part)
        return " ".join(self.text[span.start : span.end].split())

    def _one(self, part: Pattern | Several) -> Pattern:
        """A single component; parentheses around several need an operator."""
        if isinstance(part, Several):
            self.report(
                "group-of-components",
                "several components in parentheses need an operator",
                part.span,
                hint="write `SEQ(...)`, `AND(...)` or `OR(...)`",
            )
            return UNREADABLE
        return part

    def infix(self, children: Children) -> Composite:
        operator = Operator.AND if children[1] in {"∧"} or children[1].upper() == "AND" else Operator.OR
        span = span_over(children)
        self._count_part(span)
        components = tuple(self._one(child) for child in children[0::2])
        return self.nested(Composite(operator, components, (), span), children[0::2])

    def negation(self, children: Children) -> Negation:
        _, body = children
        return self.nested(Negation(self._one(body), span_over(children)), [body])

    def exists(self, children: Children) -> Exists:
        body = children[-1]
        self.neel_plus_sign = self.neel_plus_sign or span_of(children[0])
        variables = tuple(child.text for child in children if isinstance(child, Name))
        return self.nested(Exists(variables, self._one(body), span_over(children)), [body])

    def qualified(self, children: Children) -> Pattern:
        body, colon, formula = children
        if _is_bare(formula) and isinstance(body, Primitive) and body.variable is None:
            return self._swapped(body, formula, span_over(children))
        self.neel_plus_sign = self.neel_plus_sign or span_of(colon)
        predicate = self._checked(formula)
        pattern = with_predicates(self._one(body), (predicate,), span_over(children))
        return self.nested(pattern, [body, predicate])

    def _swapped(self, body: Primitive, formula: Attribute, span: Span) -> Pattern:
        """`a: A`, the variable before the type."""
        written = f"{print_name(formula.name)} {print_name(body.types[0])}"
        hint = "write the type, then the variable"
        self.report("variable-before-type", "the variable comes before its type", span, hint, written)
        return UNREADABLE

    def window(self, children: Children) -> tuple[AnyWindow, Span]:
        span = span_over(children)
        if children[0].type == "PARAMETER":
            return WindowParameter(self.parameter(children[:1]), *map(str, children[1:])), span
        try:
            return read_window(*children), span
        except UnreadableError as wrong:
            self._report_unreadable(wrong, span)
            return ANY_WINDOW, span

    def group(self, children: Children) -> Pattern | Several:
        span, elements = span_over(children), [child for child in children if not isinstance(child, Token)]
        names = [element for element in elements if isinstance(element, Name)]
        elements = [element for element in elements if not isinstance(element, Name)]
        windows = [element for element in elements if isinstance(element, tuple) and len(element) == 2]
        elements = [element for element in elements if element not in windows]
        if windows and is_pattern(elements[0]):
            elements[0] = self._with_window(elements[0], InnerWindow(*windows[0]))
        body, *predicates = elements
        if any(is_pattern(element) for element in predicates):
            return self.nested(Several(tuple(elements), span), elements)
        self.formula_on_component |= any(map(_is_compound, predicates))
        if isinstance(body, Several):
            return self.nested(replace(body, elements=body.elements + tuple(predicates)), elements)
        return self.nested(self._named(with_predicates(body, tuple(predicates), span), names), elements)

    def _with_window(self, body: Pattern | Several, window: InnerWindow) -> Pattern | Several:
        """An expression with its own window; for a negation or a projection, it goes to the body."""
        match body:
            case Composite():
                return replace(body, windows=(*body.windows, window))
            case Negation(body=inner) | Exists(body=inner):
                return replace(body, body=self._one(self._with_window(inner, window)))
            case Repeated():
                message, hint = (
                    "a window of a group",
                    "write it with the expression that repeats, as in `(SEQ(A a, B b) WITHIN 10 s)+ p`",
                )
                self.report("window-of-event", message, window.span, hint)
            case Primitive() if not is_unreadable(body):
                message, hint = (
                    "a window of a single event",
                    "an event has no length: write WITHIN after a SEQ or AND in parentheses, "
                    "as in `(SEQ(A a, B b) WITHIN 10 s)`",
                )
                self.report("window-of-event", message, window.span, hint)
        return body

    def _check_closed(self, formula: Expression, place: str) -> None:
        """Report a missing variable or an equivalence test, which only a WHERE clause may have."""
        counted = [id(part.operand) for part in walk(formula) if isinstance(part, Aggregate)]
        for part in walk(formula):
            if isinstance(part, Attribute) and part.variable is None:
                if id(part) in counted:
                    continue  # `COUNT(f)`: binding knows whether it is a group
                name = print_name(part.name)
                self._report_bare_name(part, name)
            elif isinstance(part, Equivalence):
                self.report(
                    "equivalence-outside-where",
                    f"`{shortened(print_expression(part))}` is outside WHERE",
                    part.span,
                    hint=f"write it in WHERE; in {place} compare the attributes, as in `a.id = b.id = c.id`",
                )

    def _report_bare_name(self, part: Attribute, name: str) -> None:
        if part.name in self._variables:
            message, hint = (
                f"{in_backticks(shortened(name))} is a variable, but a value is needed here",
                f"write one of its attributes, as in {in_backticks(f'{shortened(name)}.id')}",
            )
        else:
            owner = self._variables[0] if self._variables else "x"
            message, hint = (
                f"the attribute {in_backticks(shortened(name))} has no variable",
                f"write {in_backticks(f'{print_name(owner)}.{shortened(name)}')}, or put a string in quotes: "
                f"{print_string(shortened(part.name))}",
            )
        self.report("attribute-without-variable", message, part.span, hint=hint)


def with_predicates(pattern: Pattern, predicates: tuple[Expression, ...], span: Span) -> Pattern:
    """The pattern with more predicates; for a negation or a projection, they go to the body."""
    match pattern:
        case Primitive() | Composite():
            return replace(pattern, predicates=pattern.predicates + predicates, span=span)
        case Repeated(body=body) | Negation(body=body) | Exists(body=body):
            return replace(pattern, body=with_predicates(body, predicates, body.span), span=span)


def _step(children: Children) -> tuple[Step, Children]:
    """The word before a component that says what may come before it, and the component."""
    first = children[0]
    is_step = isinstance(first, Token) and first.type in {"NEXT", "DIRECTLY"}
    return (Step(first.type), children[1:]) if is_step else (Step.ANY, children)


def _is_bare(formula: object) -> bool:
    """Whether a formula is just a name."""
    return isinstance(formula, Attribute) and formula.variable is None


def _begins_quantity(token: Token) -> bool:
    return token.type == "REPEAT" or token == "{"


def misplaced_repetition(span: Span) -> Diagnostic:
    """Report `A a+`, `A a[]` and `A a{3}`."""
    return Diagnostic(
        "misplaced-repetition",
        "a group is marked after its type",
        span,
        hint="write `A+ a`, `A* a` or `A{2,5} a`",
    )


def _is_compound(formula: Any) -> bool:
    return any(isinstance(part, And | Or | Not | Arithmetic | Negative) for part in walk(formula))
