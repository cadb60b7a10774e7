"""Runs a compiled query over events: in this process, or under `spark/` on Spark."""
