"""Tests of the strategies of the papers."""
