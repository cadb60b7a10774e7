"""Embedded jobs: sources, sinks, checkpoints, and what kills do to them."""
