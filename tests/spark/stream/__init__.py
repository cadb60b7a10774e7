"""Streams on Spark: the matches of a batch, whatever the micro-batches, restarts and failures."""
