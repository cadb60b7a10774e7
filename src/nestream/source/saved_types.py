"""The types of columns as text, for a checkpoint."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pyarrow as pa


def saved_types(types: Mapping[str, pa.DataType]) -> str:
    """The types as text."""
    return base64.b64encode(pa.schema(list(types.items())).serialize().to_pybytes()).decode()


def types_of(text: str) -> dict[str, pa.DataType]:
    """The types from text."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
    return dict(zip(schema.names, schema.types, strict=True))
