"""Continuous sliding views: the results of inner queries, kept for the intervals they are complete for."""
