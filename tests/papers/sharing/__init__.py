"""The shared operators against a plain evaluation of each of their expressions."""
