"""What binding makes of a query: its diagnostics, its variables, where its predicates stand."""
