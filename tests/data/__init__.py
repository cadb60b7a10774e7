"""Generators and samples."""
