"""Starts the run of anything compiled: a query, a query set, or a set in layers."""

from __future__ import annotations

from typing import TypeAlias

from nestream.runtime.compiled import Compiled, CompiledLayers, CompiledSet
from nestream.runtime.layers import LayeredRun
from nestream.runtime.local import LocalRun
from nestream.runtime.query_set import SetRun

AnyRun: TypeAlias = LocalRun | SetRun | LayeredRun
"""A query or a set of them over events of one schema."""


def started(compiled: Compiled) -> AnyRun:
    """The run of a compiled query or set, before the first event."""
    match compiled:
        case CompiledLayers():
            return LayeredRun(compiled)
        case CompiledSet():
            return SetRun(compiled)
        case _:
            return LocalRun(compiled)
