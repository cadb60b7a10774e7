"""Plain values that every stage shares: spans and diagnostics, expressions, windows, schemas, events."""
