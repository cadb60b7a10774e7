"""Queries as Python objects, beside the text: they build the syntax tree that the parser builds.

Start with `build.py`: events and what is made of them.
"""
