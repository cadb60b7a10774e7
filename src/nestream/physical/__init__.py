"""Plans a query: from the logical plan to the operators that run it."""
