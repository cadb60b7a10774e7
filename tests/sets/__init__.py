"""Query sets: many queries over one pass of the same events."""
