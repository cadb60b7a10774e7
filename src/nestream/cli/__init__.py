"""The command line: check, fmt, explain, run and data. Thin: what a command does is in the package."""
