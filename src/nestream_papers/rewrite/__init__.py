"""Rewrites a logical plan to a normal form: an OR of flat sequences, as far as that is the same query."""
