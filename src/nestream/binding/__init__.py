"""From the syntax tree to the logical plan: names, scopes, predicate placement, types."""
