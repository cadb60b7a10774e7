"""The bundled samples: small CSV files from the generators, read back with the generator's exact types.

`python -m nestream.data` regenerates them, byte for byte.
"""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from nestream.data.registry import GENERATORS, find

SAMPLES = Path(__file__).parent / "samples"


def sample_names() -> list[str]:
    """The names that `sample` takes."""
    return [name for name, generator in GENERATORS.items() if generator.sample is not None]


def sample_path(name: str) -> Path:
    """The CSV file of a bundled sample."""
    if find(name).sample is None:
        raise ValueError(f"{name!r} has no bundled sample; the samples are {', '.join(sample_names())}")
    return SAMPLES / f"{name}.csv"


def sample(name: str) -> pa.Table:
    """A bundled sample as a table with the schema of its generator.

    >>> sample("hospital").num_rows
    300
    """
    path = sample_path(name)
    empty = find(name)(events=0)
    plain = {
        field.name: field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in empty.schema
    }
    read = pacsv.read_csv(
        path, convert_options=pacsv.ConvertOptions(column_types=plain, strings_can_be_null=True)
    )
    columns = {
        field.name: _encoded(read[field.name].combine_chunks(), empty[field.name].combine_chunks())
        if pa.types.is_dictionary(field.type)
        else read[field.name]
        for field in empty.schema
    }
    return pa.table(columns, schema=empty.schema)


def _encoded(column: pa.Array, like: pa.DictionaryArray) -> pa.DictionaryArray:
    """The text column with the generator's dictionary, in its order."""
    index = pc.index_in(column, like.dictionary).cast(like.type.index_type)
    return pa.DictionaryArray.from_arrays(index, like.dictionary)


def csv_text(name: str) -> str:
    """The contents of the sample's file, newly generated: ISO-8601 times, empty for NULL."""
    generator = find(name)
    if generator.sample is None:
        raise ValueError(f"{name!r} has no bundled sample")
    table = generator(**generator.sample)
    columns = {}
    for field in table.schema:
        column = table[field.name]
        if pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        elif pa.types.is_timestamp(field.type):
            column = pc.replace_substring(column.cast(pa.string()), " ", "T")
        columns[field.name] = column
    out = io.BytesIO()
    pacsv.write_csv(pa.table(columns), out, pacsv.WriteOptions(quoting_style="none", quoting_header="none"))
    return out.getvalue().decode()


def write_samples() -> None:
    """Write every sample's file."""
    SAMPLES.mkdir(exist_ok=True)
    for name in sample_names():
        sample_path(name).write_text(csv_text(name), encoding="utf-8", newline="")
