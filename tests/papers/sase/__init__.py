"""Tests of SASE's plans."""
