"""Fuzzers that run outside pytest, for a bounded time."""
