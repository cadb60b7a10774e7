"""The functions of the language: each on every kind of argument, and what is said of wrong calls."""
