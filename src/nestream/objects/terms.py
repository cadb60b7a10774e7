"""Values and conditions that begin an expression: constants, parameters, text, equalities and CASE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nestream.model.expression import (
    PATH_MARK,
    And,
    Attribute,
    Call,
    Comparison,
    Equivalence,
    Expression,
    Literal,
    Parameter,
)
from nestream.model.wording import shortened
from nestream.objects.expressions import Expr, checked_name, condition_of, joined, value_of
from nestream.objects.names import mistake
from nestream.objects.values import formula


def lit(value: Any) -> Expr:
    """Create a constant: a number, string, boolean, datetime, timedelta or UUID.

    You only need it where Python would otherwise compute with its own values.

    >>> from nestream import event, lit
    >>> lit(100) - event("Order").discount
    Expr('100 - Order.discount')
    """
    return Expr(value_of(value))


def param(name: str) -> Expr:
    """Create a parameter `$name`, whose value comes with the query.

    It can be a window, a limit or a list for `is_in`.

    >>> import nestream
    >>> from nestream import event, param
    >>> o = event("Order")
    >>> query = nestream.query(o.where(o.amount > param("floor")), parameters={"floor": 100})
    >>> query.count([{"ts": 1, "type": "Order", "amount": 120}])
    1
    """
    known = checked_name(name, "a parameter").removeprefix("$")
    if not re.fullmatch(r"[^\W\d]\w*", known):
        raise mistake(
            "bad-name",
            f"{shortened(repr(name))} is not the name of a parameter",
            "write letters, digits and `_`",
        )
    return Expr(Parameter(known))


def col(name: str) -> Expr:
    """An attribute without its event, for `where` in a query with a single event.

    >>> from nestream import col, event
    >>> print(event("Shelf").where(col("category") == "food"))
    PATTERN Shelf
    WHERE category = "food"
    """
    return Expr(Attribute(None, checked_name(name, "an attribute")))


def expr(text: str) -> Expr:
    """Parse an expression from text.

    >>> from nestream import event, expr
    >>> a, b = event("A", "a"), event("B", "b")
    >>> b.ts - a.ts <= expr("30 s")
    Expr('b.ts - a.ts <= 30 s')
    """
    if not isinstance(text, str):
        raise mistake("not-text", f"{shortened(repr(text))} is not text", "write lit(...) for a constant")
    return Expr(formula(text))


def equal(*values: Any) -> Expr:
    """Test whether all values are equal: `a.id = b.id = c.id`.

    >>> from nestream import equal, event
    >>> a, b, c = event("A", "a"), event("B", "b"), event("C", "c")
    >>> equal(a.id, b.id, c.id)
    Expr('a.id = b.id = c.id')
    """
    if len(values) < 2:
        raise mistake("not-a-condition", "equal takes two values or more", "write equal(a.id, b.id, c.id)")
    return Expr(Comparison("=", tuple(value_of(value) for value in values)))


def same(*attributes: str | Iterable[str] | Mapping[Any, Any], **values: Any) -> Expr:
    """In `where`: require that all events agree on attributes, `[id]`, or have a value, `[room = "lab"]`.

    Write a field of a struct as its path, `same(("order", "id"))`, and values for such names as a mapping.

    >>> from nestream import same
    >>> same("id", room="lab"), same(("order", "id"), {"ins-type": 3})
    (Expr('[id] AND [room = "lab"]'), Expr('[order.id] AND [ins-type = 3]'))
    """
    tests: list[Expr] = []
    for attribute in (*attributes, values):
        if not isinstance(attribute, Mapping):
            tests.append(Expr(Equivalence(_path(attribute))))
            continue
        for name, value in attribute.items():
            tree = value_of(value)
            if not isinstance(tree, Literal | Parameter):
                raise mistake(
                    "equivalence-value",
                    f"same({name}=...) takes a constant",
                    "compare two attributes with ==",
                )
            tests.append(Expr(Equivalence(_path(name), tree)))
    if not tests:
        raise mistake("not-a-condition", "same has no attribute", 'write the attributes, as in same("id")')
    return joined(And, tests)


def _path(attribute: str | Iterable[str]) -> str:
    """The name of an attribute, or of a field of a struct."""
    path = list(attribute) if isinstance(attribute, tuple | list) else [attribute]
    return PATH_MARK.join(checked_name(part, "an attribute") for part in path or [""])


# ---- CASE --------------------------------------------------------------------------------------------------


class When:
    """`when(condition)`, which waits for its `then`."""

    __slots__ = ("_arguments",)

    def __init__(self, arguments: tuple[Expression, ...]) -> None:
        self._arguments = arguments

    def __repr__(self) -> str:
        return "When(...)"

    def then(self, value: Any) -> Case:
        """The value if this is the first condition that holds.

        >>> from nestream import event, when
        >>> o = event("Order")
        >>> when(o.amount > 100).then("large").otherwise("small")
        Expr('CASE WHEN Order.amount > 100 THEN "large" ELSE "small" END')
        """
        return Case((*self._arguments, value_of(value)))


class Case(Expr):
    """`when(...).then(...)`: a value, to which further cases may be added."""

    __slots__ = ()

    def __init__(self, arguments: tuple[Expression, ...]) -> None:
        super().__init__(Call("case", arguments))

    def when(self, condition: Any) -> When:
        """Add a condition, which counts if none before it holds.

        >>> from nestream import event, when
        >>> o = event("Order")
        >>> when(o.amount > 100).then(2).when(o.amount > 10).then(1)
        Expr('CASE WHEN Order.amount > 100 THEN 2 WHEN Order.amount > 10 THEN 1 END')
        """
        return When((*self._cases, condition_of(condition)))

    def otherwise(self, value: Any) -> Expr:
        """The value if no condition holds; NULL without it.

        >>> from nestream import event, when
        >>> o = event("Order")
        >>> when(o.amount > 100).then("large").otherwise("small")
        Expr('CASE WHEN Order.amount > 100 THEN "large" ELSE "small" END')
        """
        return Expr(Call("case", (*self._cases, value_of(value))))

    @property
    def _cases(self) -> tuple[Expression, ...]:
        assert isinstance(self._tree, Call)
        return self._tree.arguments


def when(condition: Any) -> When:
    """Choose a value by conditions: `when(...).then(...).when(...).then(...).otherwise(...)`.

    >>> from nestream import event, when
    >>> o = event("Order")
    >>> when(o.amount > 100).then("large").otherwise("small")
    Expr('CASE WHEN Order.amount > 100 THEN "large" ELSE "small" END')
    """
    return When((condition_of(condition),))
