"""The state of a running query as bytes: plain Arrow, with a format version and the query it belongs to.

The state consists of the events that can still be part of a match, with their positions; the events that wait
for the watermark; how far matches are decided; and what a distinct output has emitted.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

FORMAT = 1
"""The version of the format; other versions are refused."""


_MARK = b"nestream state\n"
_DIGEST = hashlib.sha256().digest_size


class StateError(ValueError):
    """A saved state that cannot be used: damaged, of another format version, or of another query.

    >>> import nestream
    >>> saved = nestream.query("SEQ(A a, B b) WITHIN 10").stream().save()
    >>> try:
    ...     nestream.query("SEQ(A a, C c) WITHIN 10").stream().restore(saved)
    ... except nestream.StateError as problem:
    ...     print(str(problem).splitlines()[0])
    the state belongs to another query
    """


@dataclass(frozen=True)
class SavedState:
    """The tables and numbers of a saved state."""

    query: str
    numbers: dict[str, Any]
    tables: dict[str, pa.Table]

    def to_bytes(self) -> bytes:
        """The state as bytes."""
        header = {"format": FORMAT, "query": self.query, "numbers": self.numbers}
        parts = {
            "header": json.dumps(header).encode(),
            **{n: _table_bytes(t) for n, t in self.tables.items()},
        }
        body = _table_bytes(
            pa.table(
                {"name": pa.array(list(parts)), "data": pa.array(list(parts.values()), pa.large_binary())}
            )
        )
        return _MARK + hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> SavedState:
        """Read a state; raises `StateError` if it is damaged or of another version."""
        if not isinstance(data, bytes | bytearray) or not data.startswith(_MARK):
            raise StateError(
                "this is not a saved state of nestream\n  hint: pass the bytes that `save` returned"
            )
        digest, body = data[len(_MARK) : len(_MARK) + _DIGEST], data[len(_MARK) + _DIGEST :]
        if hashlib.sha256(body).digest() != digest:  # Arrow would trust whatever the bytes contain
            raise StateError(
                "the saved state is damaged or cut short\n"
                "  hint: restore an earlier state, or start again without one"
            )
        parts = {row["name"]: row["data"] for row in _table(body).to_pylist()}
        header = json.loads(parts.pop("header"))
        version = header["format"]
        if version != FORMAT:
            raise StateError(
                f"the state has format version {version}, but this nestream reads version {FORMAT}\n"
                "  hint: let the version that wrote it finish, or start again without the state"
            )
        return cls(header["query"], header["numbers"], {name: _table(part) for name, part in parts.items()})


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
