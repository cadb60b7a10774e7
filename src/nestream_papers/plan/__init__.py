"""Compiles a logical plan to a program of blocks, and explains it."""
