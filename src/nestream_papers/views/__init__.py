"""Continuous sliding views: the results of inner queries, kept for intervals in which they are complete."""
