"""The strategies that tests run by kind."""

from __future__ import annotations

from nestream.strategies import PLANNERS

VIEWS = tuple(name for name in PLANNERS if name.startswith("views-"))
"""The strategies that answer inner queries from views."""
