"""Lists the files that a folder or a pattern names."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from nestream.model.formats import SUFFIXES
from nestream.source.formats import files_below, suffix_of

_WILD = frozenset("*?[")


def is_pattern(place: str) -> bool:
    """Whether a place is a pattern."""
    return bool(_WILD & set(place)) and not os.path.exists(place)


def matching_files(place: str) -> list[str]:
    """The files of a folder, or those that a pattern matches."""
    if os.path.isdir(place):
        return [str(path) for path in files_below(place)]
    hidden = () if os.path.basename(place).startswith(("_", ".")) else ("_", ".")
    found = (path for path in glob.glob(place, recursive=True) if os.path.isfile(path))
    return sorted(path for path in found if not os.path.basename(path).startswith(hidden))


def is_named_by(pattern: str, path: str) -> bool:
    """Whether a pattern names a file that may not exist yet."""
    if not is_pattern(pattern) or os.path.basename(path).startswith(("_", ".")):
        return False
    return Path(os.path.abspath(path)).match(os.path.abspath(pattern))


def names_no_files(place: str, format: str | None) -> str | None:
    """What a place is, `folder` or `pattern`, if it has no files of events now; otherwise None."""
    if "://" in place or not (os.path.isdir(place) or is_pattern(place)):
        return None
    if any(format is not None or suffix_of(path) in SUFFIXES for path in matching_files(place)):
        return None
    return "folder" if os.path.isdir(place) else "pattern"
