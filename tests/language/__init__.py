"""Tests of nestream.language."""
