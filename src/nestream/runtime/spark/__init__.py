"""Runs a query on Spark: the same engine, in the partitions of a DataFrame."""
