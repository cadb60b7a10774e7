"""Results that may not fit in memory: how much is left, and the error when a result needs more.

A result is refused only if it certainly does not fit: when memory has run out, or when the number of its
matches is known and they would need more memory than is left.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from nestream.model.counting import counted_matches

Count = Callable[[], int | None]
"""Counts the matches; None if counting takes too long."""

_FIRST_LOOK = 64 * 1024 * 1024
"""How many bytes of matches there are before memory is checked."""
_RESERVE = 64 * 1024 * 1024
"""The memory reserved for everything else."""
_MUCH = 16
"""Matches are counted once those found need this fraction of the memory that is left."""
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


class TooManyMatchesError(MemoryError):
    """The matches do not fit in memory: use `batches` to get them piece by piece, or `count` to count them.

    >>> import nestream
    >>> issubclass(nestream.TooManyMatchesError, MemoryError)
    True
    """


def first_rows(tables: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The tables up to a number of rows in total; no more are read."""
    left = limit
    for table in tables:
        yield table.slice(0, left)
        left = None if left is None else left - table.num_rows
        if left is not None and left <= 0:
            return


def collected(tables: Iterable[pa.Table], count: Count | None = None) -> pa.Table:
    """The tables as one. Raises `TooManyMatchesError` if they do not fit in memory."""
    return collected_each((("", table) for table in tables), count)[""]


def collected_each(tables: Iterable[tuple[str, pa.Table]], count: Count | None = None) -> dict[str, pa.Table]:
    """The tables of each name as one. Raises `TooManyMatchesError` if they do not fit in memory."""
    held: dict[str, list[pa.Table]] = {}
    size = rows = 0
    look_at = _FIRST_LOOK
    total: int | None = None
    try:
        for name, table in tables:
            held.setdefault(name, []).append(table)
            size, rows = size + table.nbytes, rows + table.num_rows
            if size < look_at:
                continue
            left = memory_left()
            if left is not None:
                if count is not None and size > left // _MUCH:  # counting goes through all events again
                    total, count = count(), None
                needed = 0 if total is None else (total - rows) * (size // rows)
                if left < _RESERVE + 4 * table.nbytes or needed > 2 * left:  # rows differ in size
                    raise too_many(rows, total)
            look_at = size + size // 4
        return {name: pa.concat_tables(parts) for name, parts in held.items()}
    except TooManyMatchesError:
        raise
    except MemoryError:
        held.clear()
        raise too_many(rows, total) from None


def too_many(rows: int, total: int | None = None) -> TooManyMatchesError:
    """The error for a result of which `rows` were found, or that has `total` matches in all."""
    found = counted_matches(rows if total is None else total)
    return TooManyMatchesError(
        f"{'more than ' if total is None else ''}{found} do not fit in memory\n"
        "  hint: read them in pieces with `batches`, take the first ones with LIMIT, or only `count` them"
    )


def memory_left() -> int | None:
    """How many bytes this process may still allocate; None if the system does not say."""
    left = [_of_machine(), *map(_of_control_group, _CONTROL_GROUPS), *_of_limits()]
    return min((number for number in left if number is not None), default=None)


def _of_machine() -> int | None:
    free = _entries("/proc/meminfo")
    return free["MemAvailable"] + free.get("SwapFree", 0) if "MemAvailable" in free else None


def _of_control_group(files: tuple[str, str]) -> int | None:
    try:
        most, used = (Path(name).read_text().strip() for name in files)
    except OSError:
        return None
    return int(most) - int(used) if most.isdecimal() and used.isdecimal() else None


def _of_limits() -> Iterable[int]:
    if sys.platform != "linux":
        return
    import resource  # not available on Windows

    used = _entries("/proc/self/status")
    for limit, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY and name in used:
            yield most - used[name]


def _entries(path: str) -> dict[str, int]:
    """The sizes that a file of the system lists, in bytes."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        if rest.endswith(" kB"):
            found[name] = int(rest.split()[0]) * 1024
    return found
