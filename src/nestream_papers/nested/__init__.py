"""Iterative nested execution, the papers' baseline: joins by level, and lookups before they descend."""
