"""Plain values that all stages share: spans and diagnostics, expressions, windows, schemas, events."""
