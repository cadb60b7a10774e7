"""Keeps Arrow from importing pandas, which takes a third of a second that no command needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NoPandas(MetaPathFinder):
    """Finds everything but pandas."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden", name=fullname)


def hide_pandas_from_arrow() -> None:
    """Make Arrow's search for pandas fail.

    Arrow searches once, when it first makes an array. Later imports of pandas work.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _NoPandas()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
