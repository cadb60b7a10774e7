"""Shared operators: each runs several blocks of a program and does once what they have in common."""
