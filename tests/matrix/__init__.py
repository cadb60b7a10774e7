"""The support matrix: what is installed and run for each version of Python and of PySpark."""
