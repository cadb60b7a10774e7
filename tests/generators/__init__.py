"""Random queries and histories for the property tests."""
