"""The parts of the columnar engine, each by its law."""
