"""The Arrow types in which events are held, and the conversion from every other Arrow type.

Arrow cannot take rows of views or run-end encoded arrays, nor join dictionaries that hold NULL or nested
values. So each column is converted once, when the events arrive, to a type for which every operation works.
Values stay the same: views become strings, bytes and lists, runs are expanded, and only dictionaries of
strings remain. The chunks of a column with narrow indices share one dictionary: the words of several might
be too many.
"""

from __future__ import annotations

from typing import Any

from nestream.model.lazy import np, pa, pc


def plain_type(datatype: pa.DataType) -> pa.DataType:
    """The type in which columns of an Arrow type are held."""
    if pa.types.is_dictionary(datatype):
        words = _without_dictionaries(datatype.value_type)
        held = words == datatype.value_type and _is_text(words)
        return datatype if held else words
    return _without_dictionaries(datatype)


def _without_dictionaries(datatype: pa.DataType) -> pa.DataType:
    """The plain type of a value inside another, where dictionaries cannot be joined."""
    types = pa.types
    if types.is_dictionary(datatype) or types.is_run_end_encoded(datatype):
        return _without_dictionaries(datatype.value_type)
    if types.is_string_view(datatype):
        return pa.large_string()
    if types.is_binary_view(datatype):
        return pa.large_binary()
    if types.is_fixed_size_list(datatype):
        return pa.list_(_field(datatype.value_field), datatype.list_size)
    if types.is_list(datatype) or types.is_list_view(datatype):
        return pa.list_(_field(datatype.value_field))
    if types.is_large_list(datatype) or types.is_large_list_view(datatype):
        return pa.large_list(_field(datatype.value_field))
    if types.is_map(datatype):
        return pa.map_(_field(datatype.key_field), _field(datatype.item_field), datatype.keys_sorted)
    if types.is_struct(datatype):
        return pa.struct([_field(field) for field in datatype])
    if types.is_union(datatype):
        fields = [_field(datatype.field(place)) for place in range(datatype.num_fields)]
        return pa.union(fields, datatype.mode, datatype.type_codes)
    if isinstance(datatype, pa.BaseExtensionType):
        storage = _without_dictionaries(datatype.storage_type)
        return datatype if storage == datatype.storage_type else storage
    return datatype


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_without_dictionaries(field.type))


def _is_text(datatype: pa.DataType) -> bool:
    return bool(pa.types.is_string(datatype) or pa.types.is_large_string(datatype))


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in its plain type."""
    wanted = plain_type(column.type)
    if column.type == wanted and not pa.types.is_dictionary(wanted):
        return column
    found = pa.chunked_array([plain_array(chunk, wanted) for chunk in column.chunks], wanted)
    spacious = roomy(wanted)
    return found if wanted == spacious or has_one_dictionary(found) else found.cast(spacious)


def roomy(datatype: pa.DataType) -> pa.DataType:
    """The type, if it is a dictionary with room for at least 2^31 words."""
    if pa.types.is_dictionary(datatype) and datatype.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), datatype.value_type, datatype.ordered)
    return datatype


def has_one_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether the chunks of a column of dictionaries have the same words; true for any other column."""
    if column.num_chunks < 2 or not pa.types.is_dictionary(column.type):
        return True
    words = column.chunk(0).dictionary
    return all(chunk.dictionary.equals(words) for chunk in column.chunks[1:])


def plain_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array as `wanted`, its plain type."""
    if pa.types.is_dictionary(wanted):
        return _without_null_words(array)
    if array.type == wanted:
        return array
    match array:
        case pa.DictionaryArray():
            return plain_array(array.dictionary, wanted).take(array.indices)
        case pa.RunEndEncodedArray():
            rows = np.arange(array.offset, array.offset + len(array))
            runs = np.searchsorted(array.run_ends.to_numpy(), rows, "right")
            return plain_array(array.values, wanted).take(pa.array(runs))
        case pa.StructArray():
            children = [plain_array(array.field(n), wanted.field(n).type) for n in range(wanted.num_fields)]
            return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
        case pa.MapArray():
            return _map(array, wanted)
        case pa.FixedSizeListArray():
            return _lists_of_one_size(array, wanted)
        case pa.UnionArray():
            return _union(array, wanted)
        case pa.ExtensionArray():
            return plain_array(array.storage, wanted)
        case pa.ListArray() | pa.LargeListArray() | pa.ListViewArray() | pa.LargeListViewArray():
            return _lists(array, wanted)
    return array.cast(wanted)


def _without_null_words(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The dictionary array with NULL only among its indices."""
    if not array.dictionary.null_count:
        return array
    words = array.dictionary.drop_null()
    numbers = np.cumsum(array.dictionary.is_valid().to_numpy(zero_copy_only=False)) - 1
    renumbered = pa.array(numbers, mask=array.dictionary.is_null().to_numpy(zero_copy_only=False))
    indices = renumbered.take(array.indices).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, words, ordered=array.type.ordered)


def _lists(array: Any, wanted: pa.DataType) -> pa.Array:
    values = plain_array(array.flatten(), wanted.value_type)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    large = pa.types.is_large_list(wanted)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64 if large else np.int32)
    kind = pa.LargeListArray if large else pa.ListArray
    return kind.from_arrays(pa.array(offsets), values, type=wanted, mask=array.is_null())


def _lists_of_one_size(array: pa.FixedSizeListArray, wanted: pa.DataType) -> pa.Array:
    size = wanted.list_size
    present = array.is_valid().to_numpy(zero_copy_only=False)
    first = (np.cumsum(present) - 1) * size
    places = (first[:, None] + np.arange(size)).ravel()
    missing = np.repeat(~present, size)
    values = plain_array(array.flatten(), wanted.value_type).take(pa.array(places, mask=missing))
    return pa.FixedSizeListArray.from_arrays(values, type=wanted, mask=array.is_null())


def _map(array: pa.MapArray, wanted: pa.DataType) -> pa.Array:
    offsets = array.offsets.to_numpy()
    first, end = int(offsets[0]), int(offsets[-1])
    keys = plain_array(array.keys.slice(first, end - first), wanted.key_type)
    items = plain_array(array.items.slice(first, end - first), wanted.item_type)
    places = pa.array(offsets - first, pa.int32())
    return pa.MapArray.from_arrays(places, keys, items, type=wanted, mask=array.is_null())


def _union(array: pa.UnionArray, wanted: pa.DataType) -> pa.Array:
    children = [plain_array(array.field(n), wanted.field(n).type) for n in range(wanted.num_fields)]
    names = [wanted.field(n).name for n in range(wanted.num_fields)]
    codes = _of_slice(array, 1, np.int8)  # `type_codes` and `offsets` of a slice are those of the whole array
    if wanted.mode == "sparse":
        return pa.UnionArray.from_sparse(codes, children, names, wanted.type_codes)
    return pa.UnionArray.from_dense(codes, _of_slice(array, 2, np.int32), children, names, wanted.type_codes)


def _of_slice(array: pa.Array, buffer: int, dtype: Any) -> pa.Array:
    return pa.array(np.frombuffer(array.buffers()[buffer], dtype)[array.offset : array.offset + len(array)])


def is_uuid(datatype: pa.DataType) -> bool:
    """Whether the values are UUIDs, which are compared as text."""
    return getattr(datatype, "extension_name", "") == "arrow.uuid"


def uuid_texts(array: pa.Array) -> pa.Array:
    """UUIDs as text: 16 bytes in hexadecimal digits, with four hyphens."""
    known = array.is_valid().to_numpy(zero_copy_only=False)
    storage = b"".join(value or bytes(16) for value in array.storage.to_pylist())
    values = np.frombuffer(storage, np.uint8).reshape(-1, 16)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts = np.full((len(values), 36), ord("-"), np.uint8)
    places = [place for place in range(36) if place not in (8, 13, 18, 23)]
    texts[:, places] = digits[np.stack([values >> 4, values & 15], axis=2).reshape(-1, 32)]
    return pa.array(texts.reshape(-1).view("S36").astype("U36"), pa.large_string(), mask=~known)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows; Arrow's own fails for unions and for extension types inside others."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


def repeated_names(datatype: pa.DataType) -> set[str]:
    """The names that several children of one struct in the type share."""
    found: set[str] = set()
    if pa.types.is_struct(datatype):
        names = [field.name for field in datatype]
        found |= {name for name in names if names.count(name) > 1}
    if isinstance(datatype, pa.BaseExtensionType):
        return found | repeated_names(datatype.storage_type)
    if pa.types.is_dictionary(datatype) or pa.types.is_run_end_encoded(datatype):
        return found | repeated_names(datatype.value_type)
    for place in range(datatype.num_fields):
        found |= repeated_names(datatype.field(place).type)
    return found
