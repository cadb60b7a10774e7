"""Queries as Python objects."""
