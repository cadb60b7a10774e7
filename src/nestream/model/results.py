"""The forms in which matches are returned, at run time and to type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

    from nestream.model.lengths import Length

Form: TypeAlias = Literal["arrow", "pandas", "polars", "pylist"]
"""What `to` of `match` may be."""
FORMS: tuple[Form, ...] = ("arrow", "pandas", "polars", "pylist")


class SparkFrame(Protocol):
    """A DataFrame of Spark, classic or Connect, known by what no other frame has."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802

    @property
    def isStreaming(self) -> bool: ...  # noqa: N802


AnySparkFrame = TypeVar("AnySparkFrame", bound=SparkFrame)


class MatchOptions(TypedDict, total=False):
    """The options of `match`, for type checkers."""

    time: str
    type: str
    types: Mapping[str, Iterable[str]] | None
    order: str
    strategy: str
    options: Any
    threads: int | None
    as_of: Any
    partition_by: str | None
    partitions: int | None
    slice_length: Length | None
    statistics: bool
    sample: Any


def known_form(to: Any) -> Form | None:
    """The form that is asked for; raises for one that does not exist, or whose library is missing."""
    if to is None:
        return None
    if to not in FORMS:
        close = get_close_matches(str(to), FORMS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(map(repr, FORMS))}"
        raise ValueError(f"matches cannot be returned as {to!r}\n  hint: {hint}")
    if to in ("pandas", "polars"):
        try:
            import_module(to)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"to={to!r} needs the package {to}, which is not installed\n  hint: pip install {to}", name=to
            ) from None
    form: Form = to
    return form


def in_form(table: pa.Table, form: Form | None) -> Any:
    """The matches in the form that is asked for."""
    match form:
        case "pandas":
            return table.to_pandas()
        case "polars":
            return import_module("polars").from_arrow(table)
        case "pylist":
            return table.to_pylist()
        case _:
            return table
