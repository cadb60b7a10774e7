"""The reference evaluator: the values of expressions, and what is true of every result."""
