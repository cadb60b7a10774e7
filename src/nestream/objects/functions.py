"""The functions of the language as Python functions: `fn.lower(o.name)`, and your own by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from nestream.model.functions import FUNCTIONS, called_names
from nestream.objects.expressions import Expr, call


class Functions:
    """The functions of the language, including those that you added with `nestream.function`.

    >>> from nestream import event, fn
    >>> o = event("Order")
    >>> fn.round(o.amount * 1.21, 2) > fn.coalesce(o.ceiling, 100)
    Expr('round(Order.amount * 1.21, 2) > coalesce(Order.ceiling, 100)')
    """

    def __repr__(self) -> str:
        return f"<the functions {', '.join(called_names())}>"

    def __dir__(self) -> list[str]:
        return called_names()

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        """A function of your own."""
        known = FUNCTIONS.get(name.lower())
        if known is None or known.is_word or known.is_implicit:
            close = get_close_matches(name.lower(), called_names(), 1)
            hint = (
                f"did you mean `{close[0]}`?" if close else f"the functions are {', '.join(called_names())}"
            )
            raise AttributeError(f"unknown function `{name}`\n  hint: {hint}")
        return lambda *arguments: call(known.name, *arguments)

    def abs(self, number: Any) -> Expr:
        """The absolute value: `abs(-2) = 2`."""
        return call("abs", number)

    def sign(self, number: Any) -> Expr:
        """-1, 0 or 1: `sign(-2.5) = -1`."""
        return call("sign", number)

    def round(self, number: Any, digits: Any = None) -> Expr:
        """Round to that many decimal places, 0 by default; halves round away from zero.

        `round(2.665, 2) = 2.67`
        """
        return _with_optional("round", number, digits)

    def floor(self, number: Any) -> Expr:
        """The greatest integer that is not above the number: `floor(-1.5) = -2`."""
        return call("floor", number)

    def ceil(self, number: Any) -> Expr:
        """The least integer that is not below the number: `ceil(-1.5) = -1`."""
        return call("ceil", number)

    def sqrt(self, number: Any) -> Expr:
        """The square root: `sqrt(9) = 3.0`."""
        return call("sqrt", number)

    def exp(self, number: Any) -> Expr:
        """E to the power of the number: `exp(0) = 1.0`."""
        return call("exp", number)

    def ln(self, number: Any) -> Expr:
        """The natural logarithm: `ln(1) = 0.0`."""
        return call("ln", number)

    def power(self, base: Any, exponent: Any) -> Expr:
        """The base to the power of the exponent, a float: `power(2, 10) = 1024.0`."""
        return call("power", base, exponent)

    def haversine(self, lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Expr:
        """The distance in metres between two positions in degrees, on a sphere of the earth's mean radius.

        `round(haversine(52.52, 13.405, 48.137, 11.575) / 1000) = 504.0`
        """
        return call("haversine", lat1, lon1, lat2, lon2)

    def lower(self, text: Any) -> Expr:
        """The text in lower case: `lower('Über') = 'über'`."""
        return call("lower", text)

    def upper(self, text: Any) -> Expr:
        """The text in upper case: `upper('Über') = 'ÜBER'`."""
        return call("upper", text)

    def trim(self, text: Any) -> Expr:
        """The text without leading and trailing white space: `trim(' a b ') = 'a b'`."""
        return call("trim", text)

    def length(self, text: Any) -> Expr:
        """The number of characters: `length('Über') = 4`."""
        return call("length", text)

    def substr(self, text: Any, start: Any, length: Any = None) -> Expr:
        """The part that starts at a position, counted from 1, or from the end if negative.

        `substr('nestream', 2, 3) = 'est'`
        """
        return _with_optional("substr", text, start, length)

    def concat(self, *texts: Any) -> Expr:
        """The strings joined together: `concat('a', 'b', 'c') = 'abc'`."""
        return call("concat", *texts)

    def replace(self, text: Any, part: Any, replacement: Any) -> Expr:
        """The text with every occurrence of a part replaced: `replace('a-b-c', '-', '+') = 'a+b+c'`."""
        return call("replace", text, part, replacement)

    def contains(self, text: Any, part: Any) -> Expr:
        """Whether the text contains the part: `contains('nestream', 'str') = TRUE`."""
        return call("contains", text, part)

    def starts_with(self, text: Any, part: Any) -> Expr:
        """Whether the text begins with the part: `starts_with('nestream', 'nest') = TRUE`."""
        return call("starts_with", text, part)

    def ends_with(self, text: Any, part: Any) -> Expr:
        """Whether the text ends with the part: `ends_with('nestream', 'team') = FALSE`."""
        return call("ends_with", text, part)

    def date_part(self, part: Any, time: Any) -> Expr:
        """A part of a time, in UTC.

        Parts: year, quarter, month, week (ISO 8601), day, dow (1 for Monday), doy, hour, minute, second.

        `date_part('hour', TIMESTAMP '2026-01-31 12:30:00') = 12`
        """
        return call("date_part", part, time)

    def date_trunc(self, unit: Any, time: Any) -> Expr:
        """The start of the unit that contains the time, in UTC.

        Units: year, quarter, month, week, day, hour, minute, second, millisecond.

        `date_trunc('hour', TIMESTAMP '2026-01-31 12:30:00') = TIMESTAMP '2026-01-31 12:00:00'`
        """
        return call("date_trunc", unit, time)

    def dow(self, time: Any) -> Expr:
        """The day of the week in UTC: 1 for Monday to 7 for Sunday: `dow(DATE '2026-01-31') = 6`."""
        return call("dow", time)

    def coalesce(self, *values: Any) -> Expr:
        """The first value that is not NULL: `coalesce('a', 'b') = 'a'`."""
        return call("coalesce", *values)

    def least(self, *values: Any) -> Expr:
        """The least value that is not NULL: `least(3, 1, 2) = 1`."""
        return call("least", *values)

    def greatest(self, *values: Any) -> Expr:
        """The greatest value that is not NULL: `greatest(3, 1, 2) = 3`."""
        return call("greatest", *values)


def _with_optional(function: str, *arguments: Any) -> Expr:
    """A call without the omitted arguments at the end."""
    given = list(arguments)
    while given and given[-1] is None:
        given.pop()
    return call(function, *given)


fn = Functions()
"""The functions of the language."""
