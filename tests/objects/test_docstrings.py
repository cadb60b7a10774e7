"""The examples in the docstrings of all that is public are run, and all that is public has one."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import nestream
from nestream.model.functions import FUNCTIONS

MODULES = sorted({*nestream._MODULES.values(), "compose.base"})
RUN = ("as_of", "batches", "count", "explain", "infer_types", "match", "stream", "why", "show", "with_types")
"""What users call on a query; what Spark runs has its examples in docs/guides/spark.md."""
METHODS = {"Query": RUN, "Queries": ("adding", "count", "match", "match_each", "stream")}


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_give_what_they_show(module: str) -> None:
    known = set(FUNCTIONS)
    found = doctest.testmod(import_module(f"nestream.{module}"))
    for added in set(FUNCTIONS) - known:
        del FUNCTIONS[added]
    assert found.attempted > 0
    assert found.failed == 0


def public_parts() -> Iterator[Any]:
    """The public names, and the methods of their classes that users call."""
    for name in nestream.__all__:
        part = getattr(nestream, name)
        if name not in ("Event", "Expr", "Pattern", "fn"):
            yield pytest.param(part, id=name)
        for method in METHODS.get(name, ()):
            yield pytest.param(getattr(part, method), id=f"{name}.{method}")
        if nestream._MODULES[name].startswith("objects.") and inspect.isclass(part):
            for method, value in inspect.getmembers(part, inspect.isfunction):
                if not method.startswith("_"):
                    yield pytest.param(value, id=f"{name}.{method}")


@pytest.mark.parametrize("part", list(public_parts()))
def test_all_that_is_public_has_an_example(part: Any) -> None:
    assert ">>> " in (inspect.getdoc(part) or "")
