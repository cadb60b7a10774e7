"""Tests of the hospital case study."""
