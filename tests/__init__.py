"""The tests of nestream."""
