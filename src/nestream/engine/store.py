"""The events that can still take part, as columns, in the order of their positions.

Only events of some leaf are kept: their positions and times, and the columns that predicates read or that the
output shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nestream.engine.program import LeafSpec, Measure, Program
from nestream.engine.values import Evaluator, Vector
from nestream.model.columns import computable, per_microsecond
from nestream.model.expression import TIME_ATTRIBUTE, TYPE_ATTRIBUTE, Expression, attributes
from nestream.model.schema import Schema

Ints = npt.NDArray[np.int64]
_LEAST = int(np.iinfo(np.int64).min)
_MANY = 4096
"""From this number on it is worth bringing rows into order before looking them up."""
_FEW_WORDS = 64
"""So many words of a dictionary may be out of use before it is made anew."""


@dataclass
class Piece:
    """A run of events that passed the leaves, not yet joined to the others."""

    pos: Ints
    ts: Ints
    type: npt.NDArray[np.int16]
    payload: pa.Table
    members: list[Ints]
    """For each leaf, the rows of this piece that belong to it."""


class Store:
    """Columns of events in the order of their positions, with the rows of each leaf.

    `pos` holds positions relative to `base`; `low[i]` is the position of the first event with the time of
    event i. Rows are numbers into these columns.
    """

    def __init__(self, program: Program, schema: Schema, unit: str, columns: Sequence[str]) -> None:
        self.program = program
        self.schema = schema
        self.unit = unit
        self.columns = list(columns)
        self.evaluator = Evaluator(per_microsecond(unit))
        self.base = 0
        self.pos: Ints = np.empty(0, np.int64)
        self.ts: Ints = np.empty(0, np.int64)
        self.type: npt.NDArray[np.int16] = np.empty(0, np.int16)
        self.low: Ints = self.pos
        self.payload = pa.schema(
            [pa.field(name, schema.columns[name]) for name in self.columns]
        ).empty_table()
        self.leaf_rows: list[Ints] = [np.empty(0, np.int64) for _ in program.leaves]
        self._pieces: list[Piece] = []
        self._computed: dict[str, Vector] = {}
        self._moments: tuple[Ints | None] | None = None
        self._types = pa.array(program.types, pa.string())

    def __len__(self) -> int:
        return len(self.pos)

    # -- arriving ------------------------------------------------------------------------------------------

    def append(self, batch: pa.RecordBatch | pa.Table, first: int) -> None:
        """Add events that follow all the others in order; the first of them has the position `first`."""
        if isinstance(batch, pa.Table):
            for part in batch.to_batches():
                self.append(part, first)
                first += part.num_rows
            return
        codes, rows = self._of_known_types(batch.column(self.schema.type))
        if not len(rows):
            return
        part = batch.select(self.columns)
        whole = len(rows) == batch.num_rows
        taken = part if whole else part.take(pa.array(rows))
        piece = Piece(
            pos=rows + first,
            ts=self._times(batch, None if whole else rows),
            type=codes,
            payload=pa.Table.from_batches([taken]),
            members=[],
        )
        piece.members = self._members(piece)
        self._pieces.append(self._without_strangers(piece))

    def _of_known_types(self, column: pa.Array) -> tuple[npt.NDArray[np.int16], Ints]:
        """The rows whose type is one of the program's, with the number of that type."""
        if pa.types.is_dictionary(column.type):
            known = self._type_numbers(column.dictionary)
            indices = column.indices.to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(np.take(known >= 0, indices, mode="clip"))
            return known[indices[rows]], rows
        codes = self._type_numbers(column)
        rows = np.flatnonzero(codes >= 0)
        return codes[rows], rows

    def _type_numbers(self, names: pa.Array) -> npt.NDArray[np.int16]:
        numbers = pc.index_in(names.cast(pa.string()), self._types).fill_null(-1)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), np.int16)

    def _times(self, batch: pa.RecordBatch, rows: Ints | None) -> Ints:
        column = batch.column(self.schema.time)
        if rows is not None:
            column = column.take(pa.array(rows))
        times = computable(column, self.unit, self.schema.time)
        return np.asarray(times.to_numpy(zero_copy_only=False), np.int64)

    def _members(self, piece: Piece) -> list[Ints]:
        vectors: dict[str, Vector] = {}

        def column(name: str) -> Vector:
            if name == TIME_ATTRIBUTE:
                return Vector(piece.ts)
            if name == TYPE_ATTRIBUTE:
                return Vector(self._types.take(pa.array(piece.type)).cast(pa.large_string()))
            if name not in vectors:
                source = piece.payload.column(self.schema.column(name))
                vectors[name] = Vector.of(computable(source, self.unit, name))
            return vectors[name]

        return [self._leaf_members(leaf, piece, column) for leaf in self.program.leaves]

    def _leaf_members(self, leaf: LeafSpec, piece: Piece, column: Callable[[str], Vector]) -> Ints:
        numbers = [self.program.types.index(name) for name in leaf.types]
        mask = piece.type == numbers[0]
        for number in numbers[1:]:
            mask |= piece.type == number
        rows = np.flatnonzero(mask)
        for formula in leaf.filters:
            if not len(rows):
                break
            rows = rows[self._held(formula, rows, column)]
        return rows

    def _held(
        self, formula: Expression, rows: Ints, column: Callable[[str], Vector]
    ) -> npt.NDArray[np.bool_]:
        taken = {part.name: column(part.name).take(rows) for part in attributes(formula)}
        return self.evaluator.satisfied(formula, lambda _, name: taken[name], len(rows))

    def _without_strangers(self, piece: Piece) -> Piece:
        """The piece without the events that no leaf took."""
        if not any(leaf.filters for leaf in self.program.leaves):
            return piece
        wanted = np.zeros(len(piece.pos), bool)
        for rows in piece.members:
            wanted[rows] = True
        if wanted.all():
            return piece
        keep = np.flatnonzero(wanted)
        renumbered = np.cumsum(wanted) - 1
        return Piece(
            piece.pos[keep],
            piece.ts[keep],
            piece.type[keep],
            piece.payload.take(pa.array(keep)),
            [renumbered[rows] for rows in piece.members],
        )

    def seal(self) -> None:
        """Join what has arrived since to the columns."""
        if not self._pieces:
            return
        pieces, self._pieces = self._pieces, []
        if not len(self):
            self.base = int(pieces[0].pos[0]) if len(pieces[0].pos) else 0
        start = len(self)
        for piece in pieces:
            for rows in piece.members:
                rows += start
            start += len(piece.pos)
            piece.pos -= self.base
        for number, rows in enumerate(self.leaf_rows):
            parts = [piece.members.pop(0) for piece in pieces]  # each is let go once it is joined
            self.leaf_rows[number] = np.concatenate([rows, *parts])
        self.pos = np.concatenate([self.pos, *(piece.pos for piece in pieces)])
        self.ts = np.concatenate([self.ts, *(piece.ts for piece in pieces)])
        self.type = np.concatenate([self.type, *(piece.type for piece in pieces)])
        tables = [self.payload, *(piece.payload for piece in pieces)]
        del pieces
        self.payload = pa.concat_tables([table for table in tables if table.num_rows] or tables[:1])
        if self.payload.num_rows:
            self.payload = self.payload.unify_dictionaries().combine_chunks()
        self._computed = {}
        self._find_ties()

    def _find_ties(self) -> None:
        self._moments = None
        first = self.first_at_its_time
        self.low = self.pos if first is None or self.program.by_arrival else self.pos[first]

    def restore(self, payload: pa.Table, types: pa.Array, times: Ints, positions: Ints) -> None:
        """Take back events that were held before, with their positions."""
        codes, rows = self._of_known_types(types)
        if not len(rows):
            return
        piece = Piece(positions[rows], times[rows], codes, payload.take(pa.array(rows)), [])
        piece.members = self._members(piece)
        self._pieces.append(self._without_strangers(piece))
        self.seal()

    # -- leaving -------------------------------------------------------------------------------------------

    def drop_rows(self, count: int) -> None:
        """Forget the first rows."""
        if count <= 0:
            return
        self.payload = _without_lost_words(self.payload.slice(count).combine_chunks())
        self.ts, self.type = self.ts[count:].copy(), self.type[count:].copy()
        pos = self.pos[count:] + self.base
        self.base = int(pos[0]) if len(pos) else 0
        self.pos = pos - self.base
        self.leaf_rows = [rows[np.searchsorted(rows, count) :] - count for rows in self.leaf_rows]
        self._computed = {}
        self._find_ties()

    # -- reading -------------------------------------------------------------------------------------------

    def attribute(self, name: str) -> Vector:
        """The values of an attribute for every row."""
        if name == TIME_ATTRIBUTE:
            return Vector(self.ts)
        if name not in self._computed:
            if name == TYPE_ATTRIBUTE:
                column = self.type_names().cast(pa.large_string())
            else:
                column = computable(self.payload.column(self.schema.column(name)), self.unit, name)
            self._computed[name] = Vector.of(column)
        return self._computed[name]

    def _reach_in_order(self, rows: Ints) -> Ints:
        """The same for rows in any order: searching in the order of time is several times faster."""
        wanted = np.zeros(len(self), bool)
        wanted[rows] = True
        ordered = np.flatnonzero(wanted)
        found = np.empty(len(self), np.int64)
        found[ordered] = self.reach(ordered)
        return found[rows]

    def since(self, times: Ints | int) -> Ints:
        """The first row at or after a time, or after it where windows are exclusive."""
        if isinstance(times, int):
            times = max(times, _LEAST)
        found: Ints = np.searchsorted(self.ts, times, "right" if self.program.exclusive else "left")
        return found

    @property
    def first_at_its_time(self) -> Ints | None:
        """For each row the first row with its time; None where all times differ."""
        if self._moments is None:
            same = self.ts[1:] == self.ts[:-1]
            start = np.concatenate(([0], np.where(same, 0, np.arange(1, len(self))))) if same.any() else None
            self._moments = (None if start is None else np.maximum.accumulate(start),)
        return self._moments[0]

    def type_names(self) -> pa.Array:
        """The event type of every row."""
        return self._types.take(pa.array(self.type))

    def reach(self, rows: Ints) -> Ints:
        """For each row, the first position that fits in a window ending with it."""
        program = self.program
        match program.measure:
            case Measure.NONE:
                return np.zeros(len(rows), np.int64)
            case Measure.EVENTS:
                return np.maximum(self.pos[rows] - (program.window - 1), 0)
            case Measure.TIME:
                if len(rows) > _MANY and (rows[1:] < rows[:-1]).any():
                    return self._reach_in_order(rows)
                own = self.ts[rows]
                start = self.since(np.where(own < _LEAST + program.window, _LEAST, own - program.window))
                found: Ints = self.pos[np.minimum(start, len(self) - 1)]
                return found


def _without_lost_words(table: pa.Table) -> pa.Table:
    """The table with new dictionaries for columns that have many more words than rows: old rows had them."""
    for place, column in enumerate(table.columns):
        if not pa.types.is_dictionary(column.type):
            continue
        words = max((len(chunk.dictionary) for chunk in column.chunks), default=0)
        if words > 2 * len(column) + _FEW_WORDS:
            fresh = column.cast(column.type.value_type).dictionary_encode().cast(column.type)
            table = table.set_column(place, table.schema.field(place), fresh)
    return table
