"""The functions of the language, in one registry: `FUNCTIONS` by name, in the order of the documentation.

Nothing else lists them. To add one, write a `Function` in one of the files here. The tests then try it on
every kind of argument, in the engine and in the reference, and the table in the documentation includes it.
"""

from collections.abc import Callable
from typing import Any

from nestream.model.functions.choice import CHOOSING, holding
from nestream.model.functions.define import Function, FunctionError, Parameter
from nestream.model.functions.numbers import NUMERIC
from nestream.model.functions.own import own_function
from nestream.model.functions.text import TEXTUAL
from nestream.model.functions.time import TEMPORAL

FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*NUMERIC, *TEXTUAL, *TEMPORAL, *CHOOSING)
}

__all__ = [
    "FUNCTIONS",
    "Function",
    "FunctionError",
    "Parameter",
    "called_names",
    "documented",
    "function",
    "holding",
    "own_functions",
]


def called_names() -> list[str]:
    """The names that a query can call, in alphabetical order."""
    return sorted(name for name, known in FUNCTIONS.items() if name.isidentifier() and not known.is_word)


def function(name: str, kernel: Callable[..., Any], *, returns: str) -> None:
    """Add your own function to the language, under a name that queries can call.

    `kernel` takes an Arrow array for each argument and returns an array of the same length; `returns` is the
    kind of its values: "integer", "number", "string" or "boolean". Each value must depend only on its row,
    and be the same every time. On Spark, the function is sent to the tasks with the query.

    >>> import nestream
    >>> import pyarrow.compute as pc
    >>> nestream.function("doubled", lambda number: pc.multiply(number, 2), returns="integer")
    >>> nestream.query("(A a : doubled(a.x) = 4)").count([{"ts": 1, "type": "A", "x": 2}])
    1
    """
    made = own_function(name, kernel, returns)
    known = FUNCTIONS.get(made.name)
    if known is not None and not known.is_own:
        raise ValueError(f"the language has a function `{known.name}`: choose another name")
    FUNCTIONS[made.name] = made


def own_functions() -> tuple[tuple[str, Callable[..., Any], str], ...]:
    """The functions added by `function`, to add them again in another process."""
    return tuple(known.own for known in FUNCTIONS.values() if known.own is not None)


def documented() -> str:
    """The table of functions for docs/reference/language.md."""
    lines = ["| function | returns | for example |", "| --- | --- | --- |"]
    for known in FUNCTIONS.values():
        if not (known.is_implicit or known.is_own):
            lines.append(f"| `{known.signature}` | {known.text} | `{known.example}` |")
    return "\n".join(lines)
