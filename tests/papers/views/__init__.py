"""Tests of continuous sliding views."""
