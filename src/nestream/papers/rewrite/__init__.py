"""Rewrites a logical plan to a normal form: an OR of flat sequences, so far as that is the same query."""
