"""Makes other cases of a case: other time columns, keys of other types and names, other encodings.

The histories have integer times and keys. A variant keeps what the query asks and changes what the columns
are: timestamps with duration windows, keys that are strings, floats or decimals, keys with another name in
some variables, type columns in any of Arrow's encodings, and attributes that some types do not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from nestream.language.ast import Composite, Exists, Negation, Pattern, Primitive, Query, Repeated, parts
from nestream.language.parser import parse
from nestream.language.printer import print_query
from nestream.model.expression import Attribute, Expression, attributes, transform
from nestream.model.time import Window, WindowKind
from tests.generators.choices import Choices, DrawnChoices, chance, pick, some
from tests.generators.histories import TYPES, histories, types_of
from tests.generators.queries import make_query
from tests.generators.shapes import Style

TIME_TYPES = (
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("ms"),
    pa.timestamp("s"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Berlin"),
)
TYPE_COLUMNS = (
    pa.string(),
    pa.large_string(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
)
KEY_TYPES = (
    pa.int64(),
    pa.int8(),
    pa.string(),
    pa.large_string(),
    pa.float64(),
    pa.decimal128(24, 2),
    pa.dictionary(pa.int8(), pa.string()),
)
WIDE = 3_000_000
"""Keys far apart: two of them together have more combinations than can be numbered directly."""


@dataclass(frozen=True)
class Variant:
    """A query, its events, and which attributes each type has, where that is said."""

    text: str
    table: pa.Table
    order: str = "time"
    types: Mapping[str, tuple[str, ...]] | None = None
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.text}\norder {self.order}, types {self.types}\n{self.table.to_pylist()}"


def variant(choices: Choices, text: str, table: pa.Table) -> Variant:
    """A variant of a case; the simplest is the case itself."""
    tree = parse(text)
    if chance(choices, 60) and not _reads_time(tree):
        tree = _in_seconds(tree)
        if isinstance(tree.window, Window) and tree.window.kind is WindowKind.TIME:
            table = _with_timestamps(table, pick(choices, TIME_TYPES))
    if chance(choices, 70) and not _computes_with_ids(tree):
        table = _with_key(table, pick(choices, KEY_TYPES))
        if chance(choices, 50):
            tree = _other_names(tree, choices)
    table = _set(table, "type", table.column("type").cast(pick(choices, TYPE_COLUMNS)))
    if chance(choices, 40):
        table = _set(table, "f", _to_decimal(table.column("f")))
    types = None
    if tree.sase and chance(choices, 50):
        types = {name: ("ts", "type", "n", *some(choices, ("id", "x", "f", "s"), 1, 4)) for name in TYPES}
        table = _without_what_types_lack(table, types)
    order = "arrival" if chance(choices, 20) else "time"
    return Variant(print_query(tree), table, order, types, choices.integer(0, 1000))


@st.composite
def variants(draw: st.DrawFn, style: Style) -> Variant:
    """Variants of random cases."""
    choices = DrawnChoices(draw)
    text = make_query(choices, style)
    return variant(choices, text, draw(histories(types=types_of(text))))


# -- what a query reads ------------------------------------------------------------------------------------


def _predicates(pattern: Pattern) -> list[Expression]:
    match pattern:
        case Negation(body=body) | Exists(body=body) | Repeated(body=body):
            return _predicates(body)
        case Composite(components=components, predicates=predicates):
            return [*predicates, *(part for inner in components for part in _predicates(inner))]
        case Primitive(predicates=predicates):
            return list(predicates)


def _formulas(tree: Query) -> list[Expression]:
    return [*_predicates(tree.pattern), *([tree.where] if tree.where is not None else [])]


def _reads_time(tree: Query) -> bool:
    return any(part.name == "ts" for formula in _formulas(tree) for part in attributes(formula))


def _computes_with_ids(tree: Query) -> bool:
    """Whether an id is compared with anything but another id, so that it has to be a number."""
    returned = [item.expression for item in tree.returns if hasattr(item, "expression")]
    text = print_query(tree)
    plain = all(
        {part.name for part in attributes(formula)} <= {"id"} and "id = 1" not in text
        for formula in _formulas(tree)
        if any(part.name == "id" for part in attributes(formula))
    )
    return not plain or "[id" in text or any(part.name == "id" for e in returned for part in attributes(e))


# -- changes -----------------------------------------------------------------------------------------------


def _in_seconds(tree: Query) -> Query:
    window = tree.window
    if not isinstance(window, Window) or window.kind is not WindowKind.NUMBER:
        return tree
    if any(isinstance(part, Composite) and part.windows for part in parts(tree.pattern)):
        return tree
    return replace(tree, window=Window(WindowKind.TIME, window.size * 1_000_000))


def _with_timestamps(table: pa.Table, datatype: pa.DataType) -> pa.Table:
    per_second = timedelta(seconds=1) // timedelta(microseconds=1)
    moments = pc.multiply(table.column("ts"), per_second).cast(pa.timestamp("us", datatype.tz))
    return _set(table, "ts", moments.cast(datatype))


def _with_key(table: pa.Table, datatype: pa.DataType) -> pa.Table:
    """The keys with another type, and `ref`, the keys in another order."""
    ids = table.column("id").combine_chunks()
    wide = pa.types.is_int64(datatype)
    numbers = pc.multiply(ids, WIDE if wide else 1)
    text = (
        pa.types.is_dictionary(datatype) or pa.types.is_string(datatype) or pa.types.is_large_string(datatype)
    )
    keys = (
        pa.array([None if v is None else f"k{v}" for v in ids.to_pylist()], pa.string()) if text else numbers
    )
    keys = (
        keys.dictionary_encode().cast(datatype) if pa.types.is_dictionary(datatype) else keys.cast(datatype)
    )
    others = keys.take(pa.array(range(len(keys) - 1, -1, -1), pa.int64()))
    return _set(table, "id", keys).append_column("ref", others)


def _other_names(tree: Query, choices: Choices) -> Query:
    """Some variables' `id` becomes `ref`."""
    chosen: dict[str | None, str] = {}

    def renamed(part: Expression) -> Expression:
        if not isinstance(part, Attribute) or part.name != "id":
            return part
        if part.variable not in chosen:
            chosen[part.variable] = "ref" if chance(choices, 40) else "id"
        return Attribute(part.variable, chosen[part.variable])

    def changed(pattern: Pattern) -> Pattern:
        match pattern:
            case Negation(body=body) | Exists(body=body) | Repeated(body=body):
                return replace(pattern, body=changed(body))
            case Composite(components=components, predicates=predicates):
                return replace(
                    pattern,
                    components=tuple(map(changed, components)),
                    predicates=tuple(transform(p, renamed) for p in predicates),
                )
            case Primitive(predicates=predicates):
                return replace(pattern, predicates=tuple(transform(p, renamed) for p in predicates))

    where = transform(tree.where, renamed) if tree.where is not None else None
    return replace(tree, pattern=changed(tree.pattern), where=where)


def _without_what_types_lack(table: pa.Table, types: Mapping[str, tuple[str, ...]]) -> pa.Table:
    """The events with NULL for the attributes that their types do not have."""
    kinds = table.column("type").to_pylist()
    for name in ("id", "ref", "x", "f", "s", "flag"):
        if name in table.column_names:
            values = table.column(name).to_pylist()
            kept = [
                v if name in types.get(kind, (name,)) else None for v, kind in zip(values, kinds, strict=True)
            ]
            table = _set(table, name, pa.array(kept, table.schema.field(name).type))
    return table


def _to_decimal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    plain = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    return plain.cast(pa.decimal128(6, 2))


def _set(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)
