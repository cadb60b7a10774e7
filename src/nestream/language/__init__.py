"""The language: one grammar for the three spellings, one syntax tree, one printer."""

from nestream.language.ast import Dialect, Query
from nestream.language.parser import parse

__all__ = ["Dialect", "Query", "parse"]
