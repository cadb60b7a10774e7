"""From the logical plan to the operators that run it."""
