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
    """Let Arrow look for pandas in vain.

    It looks once, when it first makes an array. Whoever imports pandas later finds it.
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
