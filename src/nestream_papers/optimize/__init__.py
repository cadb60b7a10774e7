"""Chooses how the expressions of a query share their work: statistics, a cost model, the Plan-Finder."""
