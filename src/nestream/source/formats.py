"""Which files hold events: the format by suffix, and the compressions that can be read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from nestream.model.formats import FORMATS, Format
from nestream.model.wording import listed
from nestream.source.errors import SourceError

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def compression_of(path: str) -> str | None:
    """The compression by the last suffix of a file; None if there is none."""
    return COMPRESSIONS.get(Path(path).suffix.lower())


def suffix_of(path: str) -> str:
    """The suffix of the format, before that of a compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def known_format(wanted: str) -> Format:
    """The format of that name."""
    for known in FORMATS:
        if wanted == known:
            return known
    raise SourceError(f"unknown format {wanted!r}. The formats are {', '.join(FORMATS)}")


def listed_formats() -> str:
    """The names of the formats, for a message."""
    return listed(FORMATS, "or")


def is_visible(path: Path, folder: Path) -> bool:
    """Whether a file below a folder counts: names that begin with `_` or `.` are ignored."""
    return not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)


def files_below(folder: str | os.PathLike[str]) -> list[Path]:
    """The visible files below a folder, by name."""
    root = Path(folder)
    return sorted(file for file in root.rglob("*") if is_visible(file, root) and file.is_file())


def decompressed(path: str, compression: str, size: int) -> IO[bytes]:
    """The plain bytes of a compressed file, kept in memory up to a size and on disk beyond."""
    plain: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=size)
    with pa.OSFile(path) as packed, pa.CompressedInputStream(packed, compression) as stream:
        shutil.copyfileobj(stream, plain)
    return plain


@contextmanager
def plain_copy(source: pa.NativeFile, compression: str | None) -> Iterator[str]:
    """The path of a decompressed copy of a file, for as long as it is needed."""
    with tempfile.NamedTemporaryFile(delete=True) as copy, source:
        stream = source if compression is None else pa.CompressedInputStream(source, compression)
        shutil.copyfileobj(stream, copy)
        copy.flush()
        yield copy.name
