"""Tests of the statistics, the cost model and the Plan-Finder."""
