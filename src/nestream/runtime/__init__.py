"""Runs a plan over events: in this process."""
