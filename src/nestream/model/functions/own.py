"""Functions that users add: makes a whole function from a kernel over Arrow arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from nestream.model.functions.define import NUMBERS, Function, FunctionError, Parameter
from nestream.model.lazy import np, pa, pc
from nestream.model.schema import Kind
from nestream.model.vector import Vector, common_length

_TYPES = {
    Kind.INTEGER: "int64",
    Kind.FLOAT: "float64",
    Kind.STRING: "large_string",
    Kind.BOOLEAN: "bool",
}
_TAKES = NUMBERS | {Kind.STRING, Kind.BOOLEAN}
_SAID = "a number, string or boolean: the values that your own functions take"


def own_function(name: str, kernel: Callable[..., Any], returns: str) -> Function:
    """The function of a user's kernel."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise ValueError(f"{name!r} is not the name of a function: use letters, digits and `_`")
    from nestream.model.text import is_reserved  # it depends on the functions

    if is_reserved(name):
        raise ValueError(f"{name.upper()} is a word of the language: choose another name")
    kinds = {str(kind): kind for kind in _TYPES}
    if str(returns) not in kinds:
        raise ValueError(f"returns={str(returns)!r} is not a kind: use one of {', '.join(kinds)}")
    if not callable(kernel):
        raise TypeError(f"the kernel of `{name}` is a {type(kernel).__name__}, not a function")
    kind = kinds[str(returns)]
    names, optional, repeats = _parameters(name, kernel)
    body = _Own(name.lower(), kernel, kind)
    return Function(
        name.lower(),
        tuple(Parameter(parameter, _TAKES, _SAID) for parameter in names),
        kind,
        body.of_row,
        body.of_columns,
        inspect.getdoc(kernel) or "",
        "",
        optional=optional,
        repeats=repeats,
        strict=False,
        own=(name, kernel, str(returns)),
    )


def _parameters(name: str, kernel: Callable[..., Any]) -> tuple[list[str], int, bool]:
    """The names of a kernel's parameters, how many are optional, and whether the last may be repeated."""
    try:
        found = list(inspect.signature(kernel).parameters.values())
    except (TypeError, ValueError):
        found = []
    placed = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = [p for p in found if p.kind is p.VAR_POSITIONAL]
    if not placed and not rest:
        raise ValueError(
            f"the kernel of `{name}` must name the arrays that it takes: wrap it, as in lambda x: kernel(x)"
        )
    optional = sum(p.default is not p.empty for p in placed)
    return [p.name for p in (placed or rest)], optional, bool(rest)


class _Own:
    """A user's kernel, checked: its result must have the right length and kind."""

    def __init__(self, name: str, kernel: Callable[..., Any], kind: Kind) -> None:
        self.name, self.kernel, self.kind = name, kernel, kind

    def of_row(self, *values: Any) -> Any:
        """The value for one row."""
        return self.result([pa.array([value]) for value in values], 1)[0].as_py()

    def of_columns(self, *vectors: Vector) -> Vector:
        """The values for whole columns."""
        length = common_length(vectors)
        count = 1 if length is None else length
        result = Vector.of(self.result([_column(vector, count) for vector in vectors], count))
        return result if length is not None else Vector.from_items(result.items(1), single=True)

    def result(self, arrays: list[pa.Array], count: int) -> pa.Array:
        """The result of the kernel, as an array of the right kind."""
        try:
            found = self.kernel(*arrays)
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if not isinstance(found, pa.Array):
                if not hasattr(found, "__len__") or isinstance(found, str | bytes):
                    raise TypeError(f"it returned {found!r}, not an array")
                found = pa.array(found)
            found = found.cast(_TYPES[self.kind])
        except Exception as problem:
            raise FunctionError(
                f"the function `{self.name}` failed: {type(problem).__name__}: {problem}"
            ) from problem
        if len(found) != count:
            raise FunctionError(
                f"the function `{self.name}` returned {len(found)} values for {count} rows\n"
                "  hint: it takes whole arrays and returns one value per row"
            )
        if self.kind is Kind.FLOAT and np.isnan(found.to_numpy(zero_copy_only=False)).any():
            return pc.if_else(pc.is_nan(found), pa.scalar(None, pa.float64()), found)
        return found


def _column(vector: Vector, count: int) -> pa.Array:
    if vector.is_nothing:
        return pa.nulls(count)
    if vector.is_arrow:
        return vector.column(vector.values.type, count)
    if vector.is_object:
        return pa.array(vector.items(count))
    return vector.column(pa.from_numpy_dtype(vector.values.dtype), count)
