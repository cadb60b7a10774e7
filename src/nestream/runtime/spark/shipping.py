"""Sends functions to Spark's Python workers, and explains failures there.

A worker that cannot import nestream, or the strategies of nestream_papers, fails before any of our code runs,
deep in a log. So a function travels as bytes inside one that needs only Python, which reports in one sentence
what is missing.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import cloudpickle

Batches = Iterator[pa.RecordBatch]

_PATTERNS = (
    r"(?:StateError|EventError|QueryError): (.*?)\n(?=\S| SQLSTATE)",
    r"RuntimeError: (Spark's Python workers cannot .*?)\n(?=\S| SQLSTATE)",
    r"terminated with exception: (.*?)(?: SQLSTATE|\n=== )",
)
_modules = 0
"""How many modules this worker had when it last settled."""
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_NO_MODULE = re.compile(
    r"^ModuleNotFoundError: (No module named '(?:pyarrow|pandas|numpy)\b.*)$", re.MULTILINE
)
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*)"')


def shipped(function: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Wrap a function for a worker that may lack nestream."""
    data = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]  # PySpark does not type it
    here = sys.executable

    def run(batches: Batches) -> Batches:
        import importlib
        import pickle
        import sys

        shipping = None
        try:
            shipping = importlib.import_module("nestream.runtime.spark.shipping")
            yield from pickle.loads(data)(batches)
        except ImportError as problem:
            of_papers = (problem.name or "").startswith("nestream_papers")
            if shipping is not None and not of_papers:
                raise
            package = "nestream-papers" if of_papers else "nestream"
            raise RuntimeError(
                f"Spark's Python workers cannot import {package}: {problem}\n"
                f"  they run {sys.executable}, and this program runs {here}\n"
                f"  hint: set PYSPARK_PYTHON={here} before the session is made,\n"
                f"  or install {package} where the workers run"
            ) from None
        shipping.settle()

    return run


def settle() -> None:
    """Exclude the modules of this worker from garbage collection, if there are new ones.

    Spark collects garbage after every task, and with all our modules that takes longer than a small task.
    """
    global _modules
    if len(sys.modules) != _modules:
        _modules = len(sys.modules)
        gc.freeze()


def why(text: str) -> str:
    """Extract the reason of a failure from all that Spark reports."""
    for pattern in _PATTERNS:
        found = re.search(pattern, text + "\n-", re.DOTALL)
        if found is not None:
            return found[1].strip()
    missing = _NO_PYTHON.search(text)
    if missing is not None:
        return (
            f"Spark's workers cannot run the Python {missing[1]}\n"
            "  hint: set PYSPARK_PYTHON to an interpreter that the workers have, with nestream installed"
        )
    lacking = _NO_MODULE.search(text)
    if lacking is not None:
        return (
            f"the Python of Spark's workers lacks a package: {lacking[1]}\n"
            "  hint: set PYSPARK_PYTHON to an interpreter that has nestream, such as that of this program"
        )
    causes = _CAUSE.findall(text)
    if causes:
        return str(causes[-1]).strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), "Spark gave no reason")
