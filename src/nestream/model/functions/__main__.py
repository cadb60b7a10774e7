"""`python -m nestream.model.functions` prints the table of functions for docs/reference/language.md."""

from nestream.model.functions import documented

print(documented())
