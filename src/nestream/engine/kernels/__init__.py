"""The loops of the engine: plain functions over arrays, compiled once there is enough work.

A kernel is an ordinary Python function over NumPy arrays, written as one loop. Called with few elements, it
is interpreted. Called with many, it is compiled by Numba, once per installation, and the compiled form runs
from then on. Both are the same source, so the tests run every kernel interpreted, where a wrong index raises,
and compiled.

`python -m nestream.engine.kernels` compiles all kernels in advance.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
"""Row numbers, or places in a stack."""

PATIENCE = 1 << 17
"""After this many elements in all, interpreted kernels have taken about as long as loading Numba takes."""

_interpreted = 0
"""How many elements interpreted kernels have processed in this process."""

_reported = False
"""Whether this process has reported that it compiles kernels."""

_compiling = threading.RLock()
"""Held while Numba prepares a kernel, so that no thread runs it before its machine code can be saved."""

_interpreting = threading.local()
"""Whether this thread is running an interpreted kernel."""


class Kernel:
    """A function that is compiled when it is first called with many elements."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self._compiled: Any = None
        self._is_saved = True
        self._ran = False

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is None:
            if getattr(_interpreting, "kernel", False):  # a kernel called by a kernel is part of its work
                return self.function(*arguments)
            if "numba" not in sys.modules and _worth_interpreting(arguments):
                _interpreting.kernel = True
                try:
                    return self.function(*arguments)
                finally:
                    _interpreting.kernel = False
            self.compile()
        try:
            found = self._compiled(*arguments)
        except OSError:  # the machine code cannot be saved, because a disk is full: each process compiles it
            found = self.compile(saved=False)(*arguments)
        if not self._ran:
            self._ran = True
            stats = getattr(self._compiled, "stats", None)  # missing where Numba's compiler is switched off
            if stats is not None and stats.cache_misses:
                _report()
        return found

    def compile(self, *, saved: bool = True) -> Any:
        """Compile the function with Numba; the machine code is saved beside the source, if that is possible.

        Otherwise it is saved in the user's folder for such files, or nowhere.
        """
        with _compiling:
            if self._compiled is None or self._is_saved > saved:
                self._compiled, self._is_saved = self._made(saved=saved), saved
            return self._compiled

    def _made(self, *, saved: bool) -> Any:
        """The compiled function, which compiles itself for each set of types when it is called."""
        import numba

        # A kernel may call others by name: the compiled one must see them compiled.
        names = {
            name: value.compile(saved=saved) if isinstance(value, Kernel) and value is not self else value
            for name, value in self.function.__globals__.items()
            if name in self.function.__code__.co_names
        }
        plain = FunctionType(self.function.__code__, {**names, "__name__": self.function.__module__})
        plain.__module__, plain.__qualname__ = self.function.__module__, self.function.__qualname__
        made = numba.njit(plain, nogil=True, boundscheck=False)
        if saved:
            from nestream.engine.kernels.saved import save_code

            save_code(made, plain)
        return made


def _report() -> None:
    """Report, once a process, that kernels are being compiled, since a first query takes seconds longer."""
    global _reported
    if not _reported:
        _reported = True
        import logging

        logging.getLogger("nestream").warning(
            "Compiling the engine, once for this installation; the first queries take a few seconds longer. "
            "To compile all of it in advance: %s -m nestream.engine.kernels",
            sys.executable,
        )


def _worth_interpreting(arguments: tuple[Any, ...]) -> bool:
    """Whether so little was done so far that loading Numba would take longer than interpreting.

    A Python integer among the arguments is a number of elements. Other numbers are passed as NumPy's.
    """
    global _interpreted
    _interpreted += sum(size if isinstance(size, int) else np.size(size) for size in arguments)
    return _interpreted < PATIENCE


def kernel(function: Callable[..., Any]) -> Kernel:
    """Declare a kernel."""
    return Kernel(function)
