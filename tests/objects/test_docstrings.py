"""The examples in the docstrings of all that is public are run, and all that is public has one."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import nestream

MODULES = sorted({module for module in nestream._MODULES.values() if module.startswith("objects.")})


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_give_what_they_show(module: str) -> None:
    found = doctest.testmod(import_module(f"nestream.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


def public_parts() -> Iterator[Any]:
    """The objects that build queries, and the methods of their classes."""
    for name in nestream.__all__:
        if not nestream._MODULES[name].startswith("objects."):
            continue
        part = getattr(nestream, name)
        if inspect.isclass(part):
            methods = {**vars(part), **{k: v for base in part.__mro__[:-1] for k, v in vars(base).items()}}
            for method, value in methods.items():
                if inspect.isfunction(value) and not method.startswith("_"):
                    yield pytest.param(value, id=f"{name}.{method}")
        elif inspect.isfunction(part):
            yield pytest.param(part, id=name)


@pytest.mark.parametrize("part", list(public_parts()))
def test_all_that_builds_queries_has_an_example(part: Any) -> None:
    assert ">>> " in (inspect.getdoc(part) or "")
