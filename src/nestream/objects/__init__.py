"""Queries as Python objects, as an alternative to text: they build the same syntax tree as the parser.

Start with `build.py`: events and patterns made of them.
"""
