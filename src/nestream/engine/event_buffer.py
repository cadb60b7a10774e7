"""The events that can still be part of a match, as columns in the order of their positions.

Only events of some leaf are kept: their positions and times, and the columns that predicates read or the
output shows. Any number of queries may read them: each type is looked up, and each test is made, once for
all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nestream.engine.growing import Growing
from nestream.engine.held_columns import HeldColumns
from nestream.engine.kernels import Rows
from nestream.engine.kernels.scan import of_known_types
from nestream.engine.kernels.stack import first_of_time, taken_or_none
from nestream.engine.program import LeafSpec
from nestream.engine.selection import Selection
from nestream.engine.values import Evaluator
from nestream.model.columns import computable, field_of, times_of
from nestream.model.event_types import ANY_TYPE, named_types
from nestream.model.expression import TIME_ATTRIBUTE, TYPE_ATTRIBUTE
from nestream.model.lazy import pc
from nestream.model.match_table import Events, TableOfEvents
from nestream.model.output import Members
from nestream.model.schema import EventError, Schema
from nestream.model.vector import Vector

T = TypeVar("T")
Ints = npt.NDArray[np.int64]
_FEW = 4096
"""Up to this many values NumPy takes less time, above it Arrow."""
_MANY_LEAVES = 16
"""From this number of leaves on, joining small batches before testing them pays off."""
MOST_TYPES = 1 << 15
"""The maximum number of types: they are numbered in 16 bits."""


@dataclass
class Piece:
    """A run of events that passed the leaves and is not yet joined to the others."""

    first: int
    """The position that the piece's positions are relative to."""
    pos: Ints
    ts: Ints
    type: npt.NDArray[np.int16]
    source: pa.RecordBatch
    """The columns of the batch that the events arrived in."""
    taken: Ints | None
    """The rows of the events in that batch; None for all."""
    members: dict[int, Rows]
    """For each leaf with events in this piece, their rows in it."""
    _columns: dict[str, pa.Array] = field(default_factory=dict)

    def column(self, name: str) -> pa.Array:
        """One column of the events, copied out of the batch when it is first read."""
        if self.taken is None:
            return self.source.column(name)
        if name not in self._columns:
            column = self.source.column(name)
            self._columns[name] = pc.take(column, pa.array(self.taken), boundscheck=False)
        return self._columns[name]


class EventBuffer:
    """Columns of events in the order of their positions, with the rows of each leaf.

    `pos` holds positions relative to `base`. Row numbers index these columns.
    """

    def __init__(self, leaves: Sequence[LeafSpec], schema: Schema, columns: Sequence[str]) -> None:
        self.leaves = tuple(leaves)
        self.schema = schema
        self.unit = schema.unit
        self.columns = list(columns)
        self.by_arrival = schema.by_arrival
        self.evaluator = Evaluator(schema.per_microsecond)
        self.types = named_types(name for leaf in leaves for name in leaf.types)
        """The names of the types, by number; where a leaf takes any type, also those seen so far."""
        self.any_type = any(ANY_TYPE in leaf.types for leaf in leaves)
        self.seen = 0
        """How many events have arrived: the position of the next one."""
        self.base = 0
        self.forgotten = 0
        """How many rows were forgotten: adding it makes the number of a row permanent."""
        self.pos: Ints = np.empty(0, np.int64)
        self.ts: Ints = np.empty(0, np.int64)
        self.type: npt.NDArray[np.int16] = np.empty(0, np.int16)
        self._source: Piece | None = None
        """The piece with all the events, while there is only one and its columns are still in its batch."""
        self._shown = 0
        """How many events matches have shown so far."""
        self._held = self._no_columns()
        self.leaf_rows: list[npt.NDArray[Any]] = [np.empty(0, np.int32) for _ in self.leaves]
        """The rows of each leaf, in 32 bits; the papers' engine accepts any integers."""
        self._pos, self._ts, self._kind = Growing(self.pos), Growing(self.ts), Growing(self.type)
        self._rows_of = list(map(Growing, self.leaf_rows))
        self._fresh: set[int] = set()
        self._pieces: list[Piece] = []
        self._computed: dict[str, Vector] = {}
        self._growing: dict[Hashable, Any] = {}
        self._moments: Rows | None = None
        self._ties = False
        self._looked = 0
        """How many of the events were compared to know that."""
        self._low: Ints | None = None
        self._types = pa.array(self.types, pa.string())
        self._words: tuple[pa.Array, npt.NDArray[np.int16]] | None = None
        """The last dictionary of types, and the numbers of its words."""
        self._selection = Selection(self.leaves, self.types, self.evaluator)

    def __len__(self) -> int:
        return len(self.pos)

    # -- arriving ------------------------------------------------------------------------------------------

    def append(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add events that follow all the others in order."""
        if isinstance(batch, pa.Table):
            if len(self.leaves) > _MANY_LEAVES:  # every test has a cost per batch
                batch = batch.combine_chunks()
            for part in batch.to_batches():
                self.append(part)
            return
        first, self.seen = self.seen, self.seen + batch.num_rows
        codes, rows = self._of_known_types(batch.column(self.schema.type))
        if not len(rows):
            return
        taken = None if len(rows) == batch.num_rows else rows
        piece = Piece(
            first=first,
            pos=rows,
            ts=rows,
            type=codes,
            source=batch.select(self.columns),
            taken=taken,
            members={},
        )
        piece.ts = self._times(batch.column(self.schema.time), piece)
        piece.members = self._members(piece)
        self._pieces.append(self._without_strangers(piece))

    def _of_known_types(self, column: pa.Array) -> tuple[npt.NDArray[np.int16], Ints]:
        """The rows whose type some leaf takes, with the number of that type."""
        if pa.types.is_dictionary(column.type):
            known = self._word_numbers(column.dictionary)
            indices = column.indices.to_numpy(zero_copy_only=False)
            found: tuple[npt.NDArray[np.int16], Ints] = of_known_types(indices, known)
            return found
        codes = self._type_numbers(column)
        rows = np.flatnonzero(codes >= 0)
        return codes[rows], rows

    def _word_numbers(self, words: pa.Array) -> npt.NDArray[np.int16]:
        """The numbers of the types in a dictionary; consecutive batches mostly share one."""
        if self._words is None or not self._words[0].equals(words):
            self._words = words, self._type_numbers(words)
        return self._words[1]

    def _type_numbers(self, names: pa.Array) -> npt.NDArray[np.int16]:
        if self.any_type:
            self._meet(names.cast(pa.string()))
        numbers = pc.index_in(names.cast(pa.string()), self._types).fill_null(-1)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int16)

    def _meet(self, names: pa.Array) -> None:
        """Number the types that are new."""
        strange = pc.invert(pc.is_in(names, value_set=self._types))
        fresh = pc.unique(names.filter(pc.and_(strange, names.is_valid()))).to_pylist()
        if not fresh:
            return
        self.types += tuple(fresh)
        if len(self.types) > MOST_TYPES:
            raise EventError(
                f"the events have more than {MOST_TYPES:,} types, too many for ANY\n"
                "  hint: name the types of the query, or put what differs into an attribute"
            )
        self._types = pa.array(self.types, pa.string())

    def _times(self, column: pa.Array, piece: Piece) -> Ints:
        """The times of a piece, given those of the batch that it came in."""
        if piece.taken is None:
            return times_of(column, self.schema)
        if len(piece.taken) <= _FEW and column.type == pa.int64():
            return times_of(column, self.schema)[piece.taken]
        if self.schema.time in self.columns:
            return times_of(piece.column(self.schema.time), self.schema)
        return times_of(column.take(pa.array(piece.taken)), self.schema)

    def _members(self, piece: Piece) -> dict[int, Rows]:
        vectors: dict[str, Vector] = {}

        def column(name: str) -> Vector:
            if name == TIME_ATTRIBUTE:
                return Vector(piece.ts)
            if name == TYPE_ATTRIBUTE:
                return Vector(self._types.take(pa.array(piece.type)).cast(pa.large_string()))
            if name not in vectors:
                held = self.schema.column(name)
                vectors[name] = Vector.of(computable(field_of(piece.column(held), name), self.unit, held))
            return vectors[name]

        return self._selection.members(piece.type, column)

    def _without_strangers(self, piece: Piece) -> Piece:
        """The piece without the events that no leaf took."""
        if not any(leaf.filters for leaf in self.leaves):
            return piece
        wanted = np.zeros(len(piece.pos), bool)
        for rows in piece.members.values():
            wanted[rows] = True
        if wanted.all():
            return piece
        keep = np.flatnonzero(wanted)
        renumbered = np.cumsum(wanted, dtype=np.int32) - np.int32(1)
        return Piece(
            piece.first,
            piece.pos[keep],
            piece.ts[keep],
            piece.type[keep],
            piece.source,
            keep if piece.taken is None else piece.taken[keep],
            {leaf: renumbered[rows] for leaf, rows in piece.members.items()},
        )

    def seal(self) -> None:
        """Join what has arrived since the last call to the columns."""
        if not self._pieces:
            return
        pieces, self._pieces = self._pieces, []
        if not len(self):
            self.base = pieces[0].first
        start = len(self)
        found: dict[int, list[Rows]] = {}
        for piece in pieces:
            for leaf, rows in piece.members.items():
                found.setdefault(leaf, []).append(rows + np.int32(start) if start else rows)
            start += len(piece.pos)
            if piece.first != self.base:
                piece.pos = piece.pos + (piece.first - self.base)
            piece.members = {}
        self._fresh |= found.keys()
        for leaf in list(found):  # release each part once it is joined
            self._rows_of[leaf].extend(*found.pop(leaf))
            self.leaf_rows[leaf] = self._rows_of[leaf].values
        self._join_payload(pieces)
        self._pos.extend(*(piece.pos for piece in pieces))
        self._ts.extend(*(piece.ts for piece in pieces))
        self._kind.extend(*(piece.type for piece in pieces))
        self._read()

    def _read(self) -> None:
        """Read the arrays again, and forget what was computed from them, because the events have changed."""
        self.pos, self.ts, self.type = self._pos.values, self._ts.values, self._kind.values
        self._computed, self._moments, self._low = {}, None, None

    def _join_payload(self, pieces: list[Piece]) -> None:
        """Append the columns of the pieces; those of a single batch stay in place until needed."""
        first, *others = pieces
        alone = self._source is None and not len(self) and not others
        if alone and first.taken is not None and first.source.schema.equals(self._held.schema):
            self._source = first
            return
        self._gather()
        for piece in pieces:
            self._held.append(piece.source, piece.taken)

    def _gather(self) -> None:
        """Copy the columns of the events out of the batch that they arrived in.

        Threads that build tables of matches may do so at the same time; their copies are the same.
        """
        source = self._source
        if source is not None:
            held = self._no_columns()
            columns = [source.column(name) for name in self.columns]
            held.append(pa.RecordBatch.from_arrays(columns, schema=held.schema), None)
            self._held = held  # first: whoever sees no source takes these
            self._source = None

    def _no_columns(self) -> HeldColumns:
        return HeldColumns(pa.schema([(name, self.schema.columns[name]) for name in self.columns]))

    @property
    def payload(self) -> pa.Table:
        """The columns that are read or shown, one row per event."""
        self._gather()
        return self._held.table

    def shown(
        self, rows: Mapping[str, Ints], members: Mapping[str, Members]
    ) -> tuple[Events, Mapping[str, Ints], Mapping[str, Members]]:
        """The columns of the events of some matches and of their groups, and their rows in these columns."""
        self._shown += sum(map(len, rows.values()))
        source = self._source
        if source is None or self._shown > len(self):  # close together, the events are in the cache
            self._gather()
            return self._held, rows, members
        taken = source.taken

        def of(own: Mapping[str, Ints]) -> dict[str, Ints]:
            return {name: taken_or_none(taken, column) for name, column in own.items()}

        groups = {name: Members(group.counts, of(group.rows)) for name, group in members.items()}
        return TableOfEvents(pa.Table.from_batches([source.source])), of(rows), groups

    def take_fresh(self) -> set[int]:
        """Return the leaves that received events since the last call."""
        fresh, self._fresh = self._fresh, set()
        return fresh

    def restore(self, payload: pa.Table, types: pa.Array, times: Ints, positions: Ints) -> None:
        """Take back events of a saved state, with their positions."""
        codes, rows = self._of_known_types(types)
        if not len(rows):
            return
        (batch,) = payload.combine_chunks().to_batches()
        piece = Piece(0, positions[rows], times[rows], codes, batch, rows, {})
        piece.members = self._members(piece)
        self._pieces.append(self._without_strangers(piece))
        self.seal()

    # -- leaving -------------------------------------------------------------------------------------------

    def drop_expired(self, count: int) -> bool:
        """Forget the first rows if they are worth moving the columns for; return whether it did."""
        if count >= 1024 or (count and count * 4 >= len(self)):
            self.drop_rows(count)
            return True
        return False

    def drop_rows(self, count: int) -> None:
        """Forget the first rows."""
        if count <= 0:
            return
        self.forgotten += count
        self._ties, self._looked = False, 0
        self._gather()
        self._held.drop(count)
        self._ts.drop(count)
        self._kind.drop(count)
        first = int(self.pos[count]) if count < len(self) else 0
        self._pos.drop(count, less=first)
        self.base = self.base + first if count < len(self) else 0
        for leaf, rows in enumerate(self._rows_of):
            rows.drop(int(np.searchsorted(rows.values, count)), less=count)
            self.leaf_rows[leaf] = rows.values
        self._read()

    # -- reading -------------------------------------------------------------------------------------------

    def attribute(self, name: str) -> Vector:
        """The values of an attribute for every row."""
        if name not in self._computed:
            self._computed[name] = self.computed(name)
        return self._computed[name]

    def computed(self, name: str, first: int = 0) -> Vector:
        """The values from a row on, for a single use: they are not kept."""
        if name in self._computed and not first:
            return self._computed[name]
        if name == TIME_ATTRIBUTE:
            return Vector(self.ts[first:])
        if name == TYPE_ATTRIBUTE:
            return Vector.of(self._types.take(pa.array(self.type[first:])).cast(pa.large_string()))
        held = self.schema.column(name)
        return Vector.of(computable(field_of(self._column(held, first), name), self.unit, held))

    def _column(self, name: str, first: int) -> pa.Array | pa.ChunkedArray:
        source = self._source
        return self._held.since(name, first) if source is None else source.column(name).slice(first)

    def integers(self, name: str) -> npt.NDArray[Any] | None:
        """The values of an attribute for every row, if they are integers without NULL and held as such."""
        held = self.schema.column(name)
        return self._held.integers(held) if self._source is None and held in self.columns else None

    def growing(self, name: Hashable, make: Callable[[], T]) -> T:
        """What is computed from the events and grows with them: kept as long as they are."""
        if name not in self._growing:
            self._growing[name] = make()
        found: T = self._growing[name]
        return found

    @property
    def moments(self) -> Rows:
        """For each row, the first row with its time."""
        if self._moments is None:
            self._moments = first_of_time(self.ts)
        return self._moments

    @property
    def ties(self) -> bool:
        """Whether there are events with equal times."""
        if not self._ties and self._looked < len(self):
            fresh = self.ts[max(self._looked - 1, 0) :]
            self._ties, self._looked = bool((fresh[1:] == fresh[:-1]).any()), len(self)
        return self._ties

    @property
    def low(self) -> Ints:
        """The position of the first event with each event's time; its own where arrival decides the order."""
        if self._low is None:
            self._low = self.pos if self.by_arrival else self.pos[self.moments]
        return self._low

    def type_names(self) -> pa.Array:
        """The event type of every row."""
        return self._types.take(pa.array(self.type))
