"""Timelines, graphs of plans and notebooks."""
