"""A query in this process: over tables, over events that keep coming, and its saved state."""
