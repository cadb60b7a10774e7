"""The language: one grammar for the three dialects, one syntax tree, one printer."""

from nestream.language.ast import Dialect, Query
from nestream.language.parser import parse
from nestream.language.printer import print_query

__all__ = ["Dialect", "Query", "parse", "print_query"]
