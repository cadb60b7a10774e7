"""Names that are loaded on first use, so that a program starts fast: NumPy, Arrow, and those of `lazy`.

if TYPE_CHECKING:
    from nestream.show import query_html, show_matches
else:
    query_html, show_matches = lazy("nestream.show", "query_html", "show_matches")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class Lazy:
    """Stands for a module, or for a function or class of one; what was used once is kept here."""

    def __init__(self, module: str, name: str = "") -> None:
        self._place = module, name

    def __reduce__(self) -> Any:
        return Lazy, self._place

    def _found(self) -> Any:
        module, name = self._place
        found = import_module(module)
        return getattr(found, name) if name else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._found(), name)
        setattr(self, name, found)
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._found()(*arguments, **named)


def lazy(module: str, *names: str) -> tuple[Lazy, ...]:
    """Functions or classes of a module, to be called; they cannot be used with `isinstance`."""
    return tuple(Lazy(module, name) for name in names)


if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    np, pa, pc = Lazy("numpy"), Lazy("pyarrow"), Lazy("pyarrow.compute")

__all__ = ["Lazy", "lazy", "np", "pa", "pc"]
