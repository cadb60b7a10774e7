"""Shared operators: each runs several blocks of a program and does their common work once."""
