"""The forms in which matches are returned, at run time and to type checkers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, overload

if TYPE_CHECKING:
    from typing import Unpack

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from nestream.model.lengths import Length

Form: TypeAlias = Literal["arrow", "pandas", "polars", "pylist"]
"""The values of `to` in `match`."""
FORMS: tuple[Form, ...] = ("arrow", "pandas", "polars", "pylist")


class SparkFrame(Protocol):
    """A Spark DataFrame, classic or Connect, recognised by what no other frame has."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802 - Spark's name

    @property
    def isStreaming(self) -> bool: ...  # noqa: N802 - Spark's name


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


class Matchable(ABC):
    """Matches events; the type of the result depends on the events and on `to`."""

    __slots__ = ()

    @overload
    def match(
        self, events: AnySparkFrame, *, to: None = None, **options: Unpack[MatchOptions]
    ) -> AnySparkFrame: ...

    @overload
    def match(
        self, events: Mapping[str, AnySparkFrame], *, to: None = None, **options: Unpack[MatchOptions]
    ) -> AnySparkFrame: ...

    @overload
    def match(
        self, events: Any, *, to: Literal["arrow"] | None = None, **options: Unpack[MatchOptions]
    ) -> pa.Table: ...

    @overload
    def match(
        self, events: Any, *, to: Literal["pandas"], **options: Unpack[MatchOptions]
    ) -> pd.DataFrame: ...

    @overload
    def match(
        self, events: Any, *, to: Literal["polars"], **options: Unpack[MatchOptions]
    ) -> pl.DataFrame: ...

    @overload
    def match(
        self, events: Any, *, to: Literal["pylist"], **options: Unpack[MatchOptions]
    ) -> list[dict[str, Any]]: ...

    def match(self, events: Any, *, to: Form | None = None, **options: Any) -> Any:
        """Return all matches as an Arrow table; for a Spark DataFrame, as a lazy DataFrame.

        `events` is the path of a file or a folder, a pattern of paths, an Arrow table, dataset or reader, a
        pandas or Polars frame, a DuckDB relation, a list of dictionaries, a Spark DataFrame, or a mapping of
        these by event type. `time` and `type` name the columns with the time and the type of an event; times
        are timestamps, ISO 8601 text, or integers. `to` returns the matches in another form: "pandas",
        "polars", "pylist" or "arrow".

        `types` lists the attributes of each type (SASE). With `order="arrival"`, events with equal times are
        ordered by arrival. `threads` is the number of threads, by default one per core. `as_of` is the time
        up to which the events are complete, as in the method `as_of`. A Spark DataFrame also takes the
        options of `on_spark`.

        For a query, the table has a struct column with the event of each variable (NULL for a branch of an OR
        that did not match), or the columns of RETURN; then `match_start` and `match_end`. Rows are ordered by
        `match_end`, then by the positions of the events. For a query set, the columns are `query` (the name),
        `match_start`, `match_end`, `events` (a list of the events, each with its variable) and `values` (the
        columns of RETURN, as text). Raises `TooManyMatchesError` if the matches do not fit in memory;
        `batches` returns them piece by piece.

        >>> import nestream
        >>> query = nestream.query("SEQ(A a, B b) WITHIN 10 RETURN b.ts - a.ts AS took")
        >>> query.match([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}], to="pylist")
        [{'took': 2, 'match_start': 1, 'match_end': 3}]
        """
        return self._match(events, to=to, **options)

    @abstractmethod
    def _match(self, events: Any, *, to: Form | None = None, **options: Any) -> Any: ...


def known_form(to: Any) -> Form | None:
    """Check the form; raises for an unknown one, or if its library is missing."""
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
    """The matches in the given form."""
    match form:
        case "pandas":
            return table.to_pandas()
        case "polars":
            return import_module("polars").from_arrow(table)
        case "pylist":
            return table.to_pylist()
        case _:
            return table
