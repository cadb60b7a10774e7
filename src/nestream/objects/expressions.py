"""Values and conditions as objects: `o.id`, `b.ts - a.ts`, `r.id == o.id`, `b.price.sum()`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from nestream.model.expression import (
    PATH_MARK,
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
    Parameter,
    Previous,
)
from nestream.model.text import print_expression
from nestream.model.time import Duration
from nestream.model.wording import shortened
from nestream.objects.names import mistake, plain
from nestream.objects.values import constant, formula

ASKED = (
    "a condition is not true or false before it is matched with events\n"
    "  hint: write `&`, `|` and `~` with parentheses in place of `and`, `or` and `not`; "
    "`equal(a.x, b.x, c.x)` in place of `a.x == b.x == c.x`; "
    "`.is_between(1, 2)` in place of `1 < a.x < 2`; `.is_in([...])` in place of `in`"
)


class Expr:
    """A value or a condition over the events of a match.

    Attributes of events are expressions; combine them with Python's operators, and conditions with `&`, `|`
    and `~`.

    >>> from nestream import event
    >>> a, b = event("A", "a"), event("B", "b")
    >>> (a.price * 2 >= b.price) & ~b.name.is_null()
    Expr('a.price * 2 >= b.price AND NOT b.name IS NULL')
    """

    __slots__ = ("_alias", "_tree")

    def __init__(self, tree: Expression, alias: str | None = None) -> None:
        self._tree, self._alias = tree, alias

    def __str__(self) -> str:
        return print_expression(plain(self._tree))

    def __repr__(self) -> str:
        return f"Expr({shortened(str(self), 120)!r})"

    # ---- what Python asks of values ----

    def __bool__(self) -> NoReturn:
        raise TypeError(ASKED)

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(ASKED)

    __iter__ = None
    __hash__ = None  # type: ignore[assignment]  # == makes a condition, so nothing can be looked up

    def __call__(self, *arguments: Any, **named: Any) -> NoReturn:
        name = str(self)
        last = name.rpartition(".")[2]
        raise TypeError(
            f"`{shortened(name)}` is an expression, and cannot be called\n"
            f"  hint: functions are called as in fn.{last}(o.x); see dir(nestream.fn)"
        )

    # ---- fields of structs ----

    def __getattr__(self, name: str) -> Expr:
        """A field of a struct: `p.order.id`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: Any) -> Expr:
        """A field of a struct, whatever its name: `p.order["zip-code"]`."""
        tree = self._tree
        known = checked_name(name, "a field")
        if not isinstance(tree, Attribute) or tree.variable is None:
            raise AttributeError(f"`{shortened(str(self))}` has no field {name!r}: it is not an attribute")
        if tree.inner is None:
            return Expr(Attribute(tree.variable, known, inner=tree.name))
        return Expr(Attribute(tree.variable, f"{tree.name}{PATH_MARK}{known}", inner=tree.inner))

    # ---- arithmetic ----

    def __add__(self, other: Any) -> Expr:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _arithmetic("/", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _arithmetic("%", other, self)

    def __pow__(self, other: Any) -> Expr:
        return call("power", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return call("power", other, self)

    def __abs__(self) -> Expr:
        return call("abs", self)

    def __round__(self, digits: int | None = None) -> Expr:
        return call("round", self) if digits is None else call("round", self, digits)

    def __pos__(self) -> Expr:
        return self

    def __neg__(self) -> Expr:
        match self._tree:
            case Literal(value=Duration(microseconds=size)):
                return Expr(Literal(Duration(-size)))
            case Literal(value=int() | float() as number) if not isinstance(number, bool):
                return Expr(Literal(-number))
        return Expr(Negative(self._tree))

    # ---- comparisons ----

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]  # a condition, not an answer
        return _compared("=", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]  # a condition, not an answer
        return _compared("!=", self, other)

    def __lt__(self, other: Any) -> Expr:
        return _compared("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return _compared("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return _compared(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return _compared(">=", self, other)

    def is_in(self, values: Iterable[Any] | Expr) -> Expr:
        """Test whether the value is in a list, or in a parameter that holds one.

        >>> from nestream import event
        >>> event("Order").country.is_in(["NL", "BE"])
        Expr('Order.country IN ("NL", "BE")')
        """
        return self._in(values, negated=False)

    def is_not_in(self, values: Iterable[Any] | Expr) -> Expr:
        """Test whether the value is not in a list. NULL is neither in a list nor not in it.

        >>> from nestream import event
        >>> event("Order").country.is_not_in(["NL", "BE"])
        Expr('Order.country NOT IN ("NL", "BE")')
        """
        return self._in(values, negated=True)

    def _in(self, values: Any, *, negated: bool) -> Expr:
        if isinstance(values, Expr):
            if not isinstance(values._tree, Parameter):
                raise mistake(
                    "not-a-list",
                    f"`{shortened(str(values))}` is not a list",
                    "write the values in a list, as in .is_in([a.x, b.x]), or compare with ==",
                )
            return Expr(In(self._tree, (values._tree,), negated))
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise mistake(
                "not-a-list",
                f"{shortened(repr(values))} is not a list",
                f"write the values in a list, as in .is_in([{shortened(repr(values))}])",
            )
        listed = tuple(value_of(value) for value in values)
        if not listed:
            raise mistake("not-a-list", "the list is empty", "give at least one value to compare with")
        return Expr(In(self._tree, listed, negated))

    def is_between(self, low: Any, high: Any) -> Expr:
        """Test whether the value is between two others, inclusive.

        >>> from nestream import event
        >>> event("Reading").celsius.is_between(18, 24)
        Expr('Reading.celsius BETWEEN 18 AND 24')
        """
        return Expr(Between(self._tree, value_of(low), value_of(high)))

    def is_not_between(self, low: Any, high: Any) -> Expr:
        """Test whether the value is below or above two others.

        >>> from nestream import event
        >>> event("Reading").celsius.is_not_between(18, 24)
        Expr('Reading.celsius NOT BETWEEN 18 AND 24')
        """
        return Expr(Between(self._tree, value_of(low), value_of(high), negated=True))

    def is_null(self) -> Expr:
        """Test whether the value is NULL.

        >>> from nestream import event
        >>> event("Order").coupon.is_null()
        Expr('Order.coupon IS NULL')
        """
        return Expr(IsNull(self._tree))

    def is_not_null(self) -> Expr:
        """Test whether the value is not NULL.

        >>> from nestream import event
        >>> event("Order").coupon.is_not_null()
        Expr('Order.coupon IS NOT NULL')
        """
        return Expr(IsNull(self._tree, negated=True))

    def like(self, pattern: Any) -> Expr:
        """Test whether the text matches a pattern: `%` is any characters, `_` is one.

        >>> from nestream import event
        >>> event("Tool").name.like("saw-%")
        Expr('Tool.name LIKE "saw-%"')
        """
        return call("like", self, pattern)

    def not_like(self, pattern: Any) -> Expr:
        """Test whether the text does not match a pattern.

        >>> from nestream import event
        >>> event("Tool").name.not_like("saw-%")
        Expr('Tool.name NOT LIKE "saw-%"')
        """
        return call("not like", self, pattern)

    def matches(self, pattern: Any) -> Expr:
        """Test whether a regular expression, in RE2 syntax, is found in the text.

        >>> from nestream import event
        >>> event("Tool").name.matches("^saw-[0-9]+$")
        Expr('Tool.name MATCHES "^saw-[0-9]+$"')
        """
        return call("matches", self, pattern)

    def not_matches(self, pattern: Any) -> Expr:
        """Test whether a regular expression is not found in the text.

        >>> from nestream import event
        >>> event("Tool").name.not_matches("[A-Z]")
        Expr('Tool.name NOT MATCHES "[A-Z]"')
        """
        return call("not matches", self, pattern)

    # ---- conditions ----

    def __and__(self, other: Any) -> Expr:
        return joined(And, (self, other))

    def __rand__(self, other: Any) -> Expr:
        return joined(And, (other, self))

    def __or__(self, other: Any) -> Expr:
        return joined(Or, (self, other))

    def __ror__(self, other: Any) -> Expr:
        return joined(Or, (other, self))

    def __invert__(self) -> Expr:
        return Expr(Not(self._tree))

    # ---- over the members of a group ----

    def count(self) -> Expr:
        """Count the members of the group that have a value.

        >>> from nestream import event
        >>> event("Failure", "f").one_or_more().ip.count()
        Expr('COUNT(f.ip)')
        """
        return self._aggregate("count")

    def n_unique(self) -> Expr:
        """Count the distinct values of the members of the group.

        >>> from nestream import event
        >>> event("Failure", "f").one_or_more().ip.n_unique()
        Expr('COUNT(DISTINCT f.ip)')
        """
        return Expr(Aggregate("count", self._tree, distinct=True))

    def sum(self) -> Expr:
        """The sum over the members of the group.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().volume.sum()
        Expr('SUM(t.volume)')
        """
        return self._aggregate("sum")

    def mean(self) -> Expr:
        """The mean over the members of the group.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().price.mean()
        Expr('AVG(t.price)')
        """
        return self._aggregate("avg")

    def std(self) -> Expr:
        """The sample standard deviation over the members of the group.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().price.std()
        Expr('STDDEV(t.price)')
        """
        return self._aggregate("stddev")

    def min(self) -> Expr:
        """The least value of the members of the group.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().price.min()
        Expr('MIN(t.price)')
        """
        return self._aggregate("min")

    def max(self) -> Expr:
        """The greatest value of the members of the group.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().price.max()
        Expr('MAX(t.price)')
        """
        return self._aggregate("max")

    def first(self) -> Expr:
        """The first value of the members of the group that is not NULL.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().price.first()
        Expr('FIRST(t.price)')
        """
        return self._aggregate("first")

    def last(self) -> Expr:
        """The last value of the members of the group that is not NULL.

        >>> from nestream import event
        >>> event("Trade", "t").one_or_more().price.last()
        Expr('LAST(t.price)')
        """
        return self._aggregate("last")

    def all(self) -> Expr:
        """Test whether the condition holds for every member of the group.

        >>> from nestream import event
        >>> t = event("Trade", "t").one_or_more()
        >>> (t.price > t.price.prev()).all()
        Expr('EVERY(t.price > PREV(t.price))')
        """
        return self._aggregate("every")

    def prev(self, first: Any = None) -> Expr:
        """The value of the previous member, inside an aggregate; for the first member NULL, or `first`.

        >>> from nestream import event
        >>> a, t = event("Alert", "a"), event("Trade", "t").one_or_more()
        >>> (t.price - t.price.prev(a.price)).max()
        Expr('MAX(t.price - PREV(t.price, a.price))')
        """
        operands = (self._tree,) if first is None else (self._tree, value_of(first))
        return Expr(Previous(operands))

    def _aggregate(self, function: str) -> Expr:
        return Expr(Aggregate(function, self._tree))

    # ---- the output ----

    def alias(self, name: str) -> Expr:
        """Name the expression, for `returning`.

        >>> from nestream import event
        >>> o = event("Operating")
        >>> print(o.returning(o.id.alias("tool-id")))
        PATTERN Operating
        RETURN Operating.id AS tool-id
        """
        return Expr(self._tree, checked_name(name, "an alias"))


def checked_name(name: Any, what: str) -> str:
    """A name that the language can write; raises for anything else."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise mistake(
            "bad-name",
            f"{shortened(repr(name))} is not the name of {what}",
            "a name is a string of at least one character",
        )
    return name


def value_of(value: Any) -> Expression:
    """The expression of an object, or the constant of a Python value."""
    if isinstance(value, Expr):
        return value._tree
    if hasattr(value, "__nestream_query__"):
        raise mistake(
            "event-as-value",
            f"`{shortened(str(value))}` is an event or a pattern, but a value is needed here",
            "write one of its attributes, as in `o.id`",
        )
    return constant(value)


def condition_of(condition: Any) -> Expression:
    """The expression of a condition, from an object or text."""
    if isinstance(condition, Expr):
        return condition._tree
    if isinstance(condition, str):
        return formula(condition)
    if isinstance(condition, bool):
        raise mistake(
            "not-a-condition",
            f"the condition is {condition} before it is matched with events",
            "Python compared the objects themselves: write an attribute that has the name of a method "
            'in brackets, as in o["count"], and lit(True) for a constant',
        )
    raise mistake(
        "not-a-condition",
        f"{shortened(repr(condition))} is not a condition",
        'write one, as in `a.id == b.id`, or as text: "a.id = b.id"',
    )


def joined(kind: type[And] | type[Or], conditions: Iterable[Any]) -> Expr:
    """Join conditions with AND or OR; a single one stays as it is."""
    operands: list[Expression] = []
    for condition in conditions:
        tree = condition_of(condition)
        operands += tree.operands if isinstance(tree, kind) else (tree,)
    return Expr(operands[0] if len(operands) == 1 else kind(tuple(operands)))


def call(function: str, *arguments: Any) -> Expr:
    """A call of a function of the language."""
    return Expr(Call(function, tuple(value_of(argument) for argument in arguments)))


def _arithmetic(operator: str, left: Any, right: Any) -> Expr:
    return Expr(Arithmetic(operator, value_of(left), value_of(right)))


def _compared(operator: str, left: Expr, right: Any) -> Expr:
    return Expr(Comparison(operator, (left._tree, value_of(right))))
