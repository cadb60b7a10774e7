"""Finds the columns that the files of a stream have in common, when it is first started."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nestream.model.formats import TYPED
from nestream.model.schema import EventError, Kind, kind_of
from nestream.runtime.spark.columns import spark_readable


@dataclass(frozen=True)
class LookedAt:
    """What was found in a file: its columns, and those without a value that tells their type."""

    path: str
    columns: Mapping[str, pa.DataType]
    undecided: frozenset[str]
    problem: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LookedAt:
        """The result as a worker sends it."""
        columns: dict[str, pa.DataType] = {}
        if row["columns"] is not None:
            schema = pa.ipc.read_schema(pa.py_buffer(row["columns"]))
            columns = dict(zip(schema.names, schema.types, strict=True))
        undecided = frozenset(json.loads(row["undecided"] or "[]"))
        return cls(row["path"], columns, undecided, row["problem"])


def common_columns(files: Sequence[LookedAt], source: str, format: str, time: str) -> pa.Schema:
    """The columns of all files; an `EventError` says where two files do not fit together."""
    timed = [file for file in files if time in file.columns and time not in file.undecided]
    if not timed:
        for file in files:
            if file.problem is not None:
                raise EventError(f"{file.path}: {file.problem}")
        raise EventError(
            f"there are no events in {source} yet, so the types of their columns are unknown\n"
            "  hint: put a first file with events there"
        )
    readable = [file for file in files if file.columns]
    if format != "jsonl":
        for file in readable[1:]:
            _check_names(readable[0], file)
    names = dict.fromkeys(name for file in readable for name in file.columns)
    return pa.schema([(name, _common_type(readable, name, format, name == time)) for name in names])


def _check_names(first: LookedAt, other: LookedAt) -> None:
    for one, two in ((first, other), (other, first)):
        missing = [name for name in one.columns if name not in two.columns]
        if missing:
            raise EventError(
                f"{two.path} has no column `{missing[0]}`, and {one.path} has one\n"
                "  hint: give all files the same columns, in any order; a column may be empty"
            )


def _common_type(files: Sequence[LookedAt], name: str, format: str, is_time: bool) -> pa.DataType:
    """The narrowest type for the values of all files; text if there is none, unless files are typed."""
    found: pa.DataType | None = None
    first = ""
    for file in files:
        if name not in file.columns or name in file.undecided:
            continue
        datatype = spark_readable(file.columns[name])
        wider = datatype if found is None else _wider(found, datatype)
        if wider is None and (is_time or format in TYPED):
            raise EventError(
                f"column `{name}` is {found} in {first} and {datatype} in {file.path}\n"
                "  hint: write all files with the same types"
            )
        found, first = (wider or pa.string()), first or file.path
    return found or pa.string()


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both; None if only text does."""
    if one == other:
        return one
    kinds = {kind_of(one), kind_of(other)}
    if kinds == {Kind.INTEGER}:
        return pa.int64()
    if kinds <= {Kind.INTEGER, Kind.FLOAT}:
        return pa.float64()
    if kinds == {Kind.TIMESTAMP}:
        return pa.timestamp("us")
    return None
