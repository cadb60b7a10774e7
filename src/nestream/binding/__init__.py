"""Binds the syntax tree to a logical plan: names, scopes, predicate placement, types."""
